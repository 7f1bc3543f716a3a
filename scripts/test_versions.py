"""Runs the contract of tests/versions on every Spark version, and writes the table of the docs.

``python scripts/test_versions.py [--quick | --lake] [VERSION …]``: in the environments that
scripts/versions.sh has made; 4.3 is the virtual environment itself. A version that is not named, or
has no environment, keeps its column of the table. With ``--quick`` only what is marked so runs, and
no table is written. With ``--lake`` the tests of tests/lake run instead, on the one version that
they are for.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = Path(os.environ.get("VENV", ".venv")).absolute()
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- table: make test-versions -->", "<!-- end of the table -->"
PINNED = "4.3"
VERSIONS = ("3.5", "4.0", "4.1", "4.2", PINNED)
LAKE = "4.1"  # the newest that Delta, Iceberg and hadoop-aws all support
LIMIT_S = 900  # for one version

Features = dict[str, str]


def python_of(version: str) -> Path:
    """Return the interpreter of a version's environment."""
    folder = VENV if version == PINNED else VENV / f"spark-{version}"
    return folder / "bin" / "python"


def results_of(version: str) -> Path:
    """Return the file with what a version's last whole run found."""
    return VENV / f"features-{version}.json"


def has_environment(version: str) -> bool:
    """Tell whether there is an environment of a version; say so if not."""
    if python_of(version).exists() and (python_of(version).parents[1] / "ready").exists():
        return True
    print(f"Spark {version} is skipped: it has no environment (scripts/versions.sh {version})")
    return False


def run(version: str, marks: str, tests: str, *, keep: bool = False) -> bool:
    """Run tests on one version; True if all that ran have passed.

    With ``keep`` it is noted what the version can do.
    """
    command = [str(python_of(version)), "-m", "pytest", "-q", "-m", marks, tests]
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    environment = dict(os.environ, PYTHONPATH=paths, VENV=str(VENV))  # where jars are
    environment.pop("SLACKWATER_FEATURES", None)
    environment.pop("SPARK_HOME", None)  # of another version
    if keep:
        results_of(version).unlink(missing_ok=True)
        environment["SLACKWATER_FEATURES"] = str(results_of(version))
    began_s = time.monotonic()
    print(f"Spark {version}: {python_of(version)}", flush=True)
    try:
        status = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, timeout=LIMIT_S
        ).returncode
    except subprocess.TimeoutExpired:
        status = 124
    print(f"Spark {version}: status {status}, {time.monotonic() - began_s:.0f} s", flush=True)
    return status == 0


def table(found: dict[str, Features]) -> str:
    """Write features by version; reasons stand below.

    >>> print(table({"3.5.9": {"gate": "from 4.0 on"}, "4.0.1": {"gate": "yes"}}))
    | | 3.5.9 | 4.0.1 |
    |---|:-:|:-:|
    | gate | – ¹ | yes |
    <BLANKLINE>
    ¹ from 4.0 on
    """
    names = list(dict.fromkeys(name for features in found.values() for name in features))
    reasons: list[str] = []
    lines = [f"| | {' | '.join(found)} |", f"|---|{':-:|' * len(found)}"]
    for name in names:
        cells = [cell(features.get(name, "not run"), reasons) for features in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    notes = [f"{mark(number)} {reason}" for number, reason in enumerate(reasons)]
    return "\n".join([*lines, "", "  \n".join(notes)])


def cell(text: str, reasons: list[str]) -> str:
    """Return what a cell shows; a reason is noted."""
    if text in ("yes", "failed", "not run"):
        return text
    if text not in reasons:
        reasons.append(text)
    return f"– {mark(reasons.index(text))}"


def mark(number: int) -> str:
    """Return the sign of a note."""
    return "¹²³⁴⁵⁶⁷⁸⁹"[number]


def read_table(text: str) -> dict[str, Features]:
    """Read what :func:`table` has written.

    >>> found = {"3.5.9": {"gate": "from 4.0 on"}, "4.0.1": {"gate": "yes"}}
    >>> read_table(table(found)) == found
    True
    """
    notes = dict(re.findall(r"^([¹²³⁴⁵⁶⁷⁸⁹]) (.*?) *$", text, re.MULTILINE))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    head, _, *lines = [row for row in rows if row]
    return {
        release: {row[0]: notes.get(row[number][-1], row[number]) for row in lines}
        for number, release in enumerate(head)
        if release
    }


def write_table(versions: Sequence[str]) -> None:
    """Put what the last runs of these versions found between the marks of the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    written, _, after = rest.partition(END)
    known = read_table(written)
    found: dict[str, Features] = {}
    for version in VERSIONS:
        if version in versions and results_of(version).exists():
            told = json.loads(results_of(version).read_text())
            found[told["spark"]] = told["features"]
        else:
            found |= {each: known[each] for each in known if each.startswith(f"{version}.")}
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}")
    print(f"written: {PAGE.relative_to(ROOT)}")


def lake() -> int:
    """Run the tests with table formats, if their jars are there."""
    if not (VENV / "lake" / "complete").exists():
        print("no Delta, Iceberg and S3 (scripts/lake.sh): their tests are skipped")
        return 0
    return 0 if run(LAKE, "lake", "tests/lake") else 1


def main(arguments: list[str]) -> int:
    if "--lake" in arguments:
        return lake()
    quick = "--quick" in arguments
    named = [each for each in arguments if each != "--quick"] or list(VERSIONS)
    if unknown := set(named) - set(VERSIONS):
        print(f"no contract for Spark {', '.join(unknown)}; there are {', '.join(VERSIONS)}")
        return 2
    versions = [each for each in named if has_environment(each)]
    marks = "versions and quick" if quick else "versions"
    passed = [run(version, marks, "tests/versions", keep=not quick) for version in versions]
    if not quick:
        write_table(versions)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
