"""A short piece of a line, as in the plots."""

from slackwater.report.palette import Look


def swatch(look: Look) -> str:
    """The line as HTML.

    >>> 'stroke="#123456"' in swatch(Look("#123456", (5, 2), "o"))
    True
    """
    dash = f' stroke-dasharray="{" ".join(f"{2 * part:g}" for part in look.dash)}"'
    return (
        '<svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" '
        f'y2="4" stroke="{look.colour}" stroke-width="4"{dash if look.dash else ""}/></svg>'
    )
