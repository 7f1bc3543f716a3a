"""Tables that all workloads share: numbers as input, and a place for results."""


def number_source(rate: int, rows: int | None, more: str = "", **options: str) -> str:
    """Rows with a column ``id``: random numbers without end, or those below ``rows`` in order.

    Parameters
    ----------
    rate
        Rows per second.
    more
        Definitions of further columns, each with a comma before it.
    options
        Of the generator, with two underscores for a dot and one for a hyphen.
    """
    settings = {"connector": "datagen", "rows-per-second": str(rate)}
    if rows is None:
        settings |= {"fields.id.min": "0", "fields.id.max": "1000000000"}
    else:
        settings |= {"fields.id.kind": "sequence", "fields.id.start": "0"}
        settings |= {"fields.id.end": str(rows - 1)}
    settings |= {k.replace("__", ".").replace("_", "-"): v for k, v in options.items()}
    return f"CREATE TABLE events (id BIGINT{more}) WITH ({options_text(settings)})"


def result_sink(columns: dict[str, str], printing: bool) -> str:
    """A table that prints what it gets, or forgets it."""
    connector = "print" if printing else "blackhole"
    definitions = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return f"CREATE TABLE results ({definitions}) WITH ('connector' = '{connector}')"


def options_text(options: dict[str, str]) -> str:
    """As they stand in a ``WITH`` clause.

    >>> options_text({"connector": "datagen", "rows-per-second": "5"})
    "'connector' = 'datagen', 'rows-per-second' = '5'"
    """
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
