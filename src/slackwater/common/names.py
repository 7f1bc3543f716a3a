"""Lists of names as users write them."""


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas.

    >>> split_names("ads, clicks")
    ('ads', 'clicks')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())
