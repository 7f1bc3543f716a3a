"""Measures the figures of the documentation that are missing, and writes them into its pages."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slackwater.common.files import replace_text
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater_bench.figures.conditions import conditions_now, wait_for_quiet, watched
from slackwater_bench.figures.pages import pages_of, results_of, shown, written
from slackwater_bench.figures.plan import PLAN, Figure, chosen
from slackwater_bench.time_left import TimeLeft

DISTURBED = 1  # times that a run beside other load is repeated, before it is marked


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="make figures",
        description=__doc__,
        epilog="Figures: " + ", ".join(figure.name for figure in PLAN),
    )
    parser.add_argument("names", nargs="*", help="which; default: all that are missing")
    parser.add_argument("--again", action="store_true", help="also those that are there")
    parser.add_argument(
        "--quick", action="store_true", help="in an hour: shorter runs, shown beside the others"
    )
    parser.add_argument("--pages", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the checkout")
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except UsageError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 2
    except SlackwaterError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    root: Path = options.root
    kept = root / "docs" / "figures"
    if not kept.parent.is_dir():
        raise UsageError(f"{root} is no checkout: it has no folder docs")
    kept.mkdir(exist_ok=True)
    if options.quick:
        _measure(chosen(options.names), root, root / "docs" / "_build" / "figures", quick=True)
        return
    if not options.pages:
        figures = chosen(options.names)
        done = () if options.again else results_of(kept)
        _measure([one for one in figures if one.name not in done], root, kept, quick=False)
    write_pages(root)


def write_pages(root: Path) -> None:
    """Write the tables of all result files into the pages that have a place for them."""
    results = results_of(root / "docs" / "figures")
    for page in pages_of(root):
        before = page.read_text()
        if (after := written(before, results)) != before:
            replace_text(page, after)
            print(f"written: {page.relative_to(root)}")


def _measure(figures: Sequence[Figure], root: Path, folder: Path, *, quick: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    left = TimeLeft()
    left.expect(*(60 * (one.quick_minutes if quick else one.minutes) for one in figures))
    earlier = results_of(root / "docs" / "figures")
    for figure in figures:
        print(left.step(figure.name), flush=True)
        result = _measured(figure, root, quick)
        path = folder / f"{figure.name}.json"
        replace_text(path, json.dumps(result, indent=1) + "\n")
        print(shown(figure, result), flush=True)
        if quick and figure.name in earlier:
            print("as it stands in the pages:", shown(figure, earlier[figure.name]), sep="\n")


def _measured(figure: Figure, root: Path, quick: bool) -> dict[str, Any]:
    """Run the command of a figure; once more if others used the machine."""
    for _ in range(1 + DISTURBED):
        result = _once(figure, root, quick)
        if not result["conditions"]["disturbed"]:
            break
        print(f"{figure.name}: other load on this machine", flush=True)
    return result


def _once(figure: Figure, root: Path, quick: bool) -> dict[str, Any]:
    """Run a command, going on with what an interrupted run has left."""
    arguments, conditions = figure.arguments(quick), conditions_now(root)
    folder, name = root / "docs" / "_build", f"{figure.name}{'-quick' if quick else ''}"
    raw = folder / f"{name}.{conditions.commit}.raw.json"  # other code is measured anew
    folder.mkdir(parents=True, exist_ok=True)
    resume = ["--resume"] if raw.exists() else []
    conditions.busy_before = wait_for_quiet()
    with watched(conditions, outside=figure.outside):
        command = [sys.executable, "-m", "slackwater.cli", *arguments, "--json", str(raw), *resume]
        status = subprocess.run(command, cwd=root, check=False).returncode
    if status not in (0, 1) or not raw.exists():  # 1: some of it failed, and its rows say so
        raise SlackwaterError(f"slackwater {' '.join(arguments)} ended with status {status}")
    rows = figure.reduce(json.loads(raw.read_text()))
    for old in folder.glob(f"{name}.*.raw.json"):
        old.unlink()
    return {"command": " ".join(arguments), "conditions": conditions.to_json(), "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
