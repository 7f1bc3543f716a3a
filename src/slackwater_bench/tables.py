"""Tables of results for the terminal."""

from rich.table import Table


def figures_table(title: str, columns: str, *more: str, names: int = 1) -> Table:
    """Return an empty table: the first columns hold names, the others figures.

    Parameters
    ----------
    columns, more
        Headings, by comma; further ones that may hold commas.
    names
        How many columns hold names.

    >>> found = figures_table("costs", "arm, mean s", "p99")
    >>> [(column.header, column.justify) for column in found.columns]
    [('arm', 'left'), ('mean s', 'right'), ('p99', 'right')]
    """
    found = Table(title=title, title_justify="left")
    for place, heading in enumerate([*filter(None, columns.split(", ")), *more]):
        found.add_column(heading, justify="left" if place < names else "right")
    return found
