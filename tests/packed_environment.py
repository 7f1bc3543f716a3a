"""An environment with Slackwater that works wherever it is unpacked."""

import re
import shutil
import sysconfig
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.root import ROOT

PYTHON = "./environment/bin/python"  # as it is named, relative to where it was unpacked
BROUGHT = {"pyspark", "py4j"}  # by Spark itself


def pack_environment(folder: Path) -> Path:
    """Make ``environment`` in a folder, and an archive of it; return that.

    As ``pip install slackwater`` into an empty environment, less Spark, but from what is installed
    here already.
    """
    environment = folder / "environment"
    venv.create(environment, symlinks=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    for name in _needed("slackwater", set()) - {"slackwater"}:
        for file in distribution(name).files or []:
            if ".." not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    for package in ("slackwater", "slackwater_bench"):
        shutil.copytree(ROOT / "src" / package, site / package)
    archive = folder / "environment.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in sorted(environment.rglob("*")):
            if not path.is_dir() and "lib64" not in path.parts:
                zipped.write(path, path.relative_to(environment))
    return archive


def _needed(name: str, known: set[str]) -> set[str]:
    """Return a distribution and all that it requires, without extras."""
    known.add(name)
    for text in distribution(name).requires or []:
        requirement = Requirement(text)
        normal = re.sub(r"[-_.]+", "-", requirement.name).lower()
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and normal not in known | BROUGHT:
            _needed(normal, known)
    return known
