"""Names that users write: in Python, in files and on the command line."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from slackwater import core, enforce, policies, progress, sampling, spark
from slackwater.cli.extensions import Extension
from slackwater.cli.main import app
from slackwater.engines import outside
from slackwater.quality import accuracies
from slackwater_bench.simulate import experiments
from slackwater_bench.workloads.catalog import WORKLOADS, workload_class
from tests.golden.comparing import compare_lines

FAMILIES = {
    "accuracy": accuracies,
    "experiment": experiments,
    "estimator": progress,
    "outside driver": outside,
    "policy": policies,
    "sampler": sampling,
    "translator": enforce,
}
NEEDED: dict[str, Any] = {
    "outside driver process": {"operators": {"worker": {"command": "worker"}}},
    "outside driver spark": {"rest": "http://127.0.0.1:4040"},
}


def test_what_users_of_spark_import() -> None:
    compare_lines("names/spark.txt", (line for name in spark.__all__ for line in described(name)))


def test_the_vocabulary() -> None:
    compare_lines("names/core.txt", sorted(core.__all__))


def test_members_of_families() -> None:
    lines = [f"{kind} {name}" for kind, family in FAMILIES.items() for name in family.names()]
    lines += [f"workload {name}" for name in WORKLOADS]
    compare_lines("names/families.txt", sorted(lines))


def test_parameters_of_members() -> None:
    """What a fleet file or a command line may pass to them."""
    lines = [
        f"{kind} {name}{signature(type(family.load(name, **NEEDED.get(f'{kind} {name}', {}))))}"
        for kind, family in FAMILIES.items()
        for name in family.names()
    ]
    lines += [f"workload {name}{signature(workload_class(name))}" for name in WORKLOADS]
    compare_lines("names/parameters.txt", sorted(lines))


def test_commands_and_their_options() -> None:
    compare_lines("names/commands.txt", commands(typer.main.get_command(app), "slackwater"))


def described(name: str) -> Iterator[str]:
    """A public function, or a class with its public members."""
    value = getattr(spark, name)
    yield f"{name}{signature(value)}"
    if not inspect.isclass(value):
        return
    for member in sorted(dir(value)):
        if not member.startswith("_"):
            found = getattr(value, member)
            kind = type(inspect.getattr_static(value, member)).__name__
            yield f"{name}.{member}{signature(found) if inspect.isroutine(found) else f': {kind}'}"


def signature(value: Any) -> str:
    found = inspect.signature(value)
    result = "" if found.return_annotation is inspect.Signature.empty else found.return_annotation
    shown = ", ".join(_parameter(each) for each in found.parameters.values())
    return f"({shown})" + (f" -> {_annotation(result)}" if result != "" else "")


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    mark = "keyword " if parameter.kind is parameter.KEYWORD_ONLY else ""
    text = f"{mark}{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += f" = {re.sub('<.*>', '<object>', repr(parameter.default))}"
    return text


def _annotation(annotation: Any) -> str:
    """Without the modules, which are nobody's business."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    plain = re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text)
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", plain)  # as newer Pythons write it


def commands(command: Any, path: str) -> Iterator[str]:
    """A command with its arguments and options, then those below it."""
    if isinstance(command, Extension):
        command = command.load()
    for parameter in command.params:
        if "completion" in parameter.name:
            continue  # the command line library's own
        if parameter.param_type_name == "argument":
            yield f"{path} {parameter.name.upper()}"
        else:
            names = "/".join([*parameter.opts, *parameter.secondary_opts])
            yield f"{path} {names}" + (" ..." if parameter.multiple else "")
    below = getattr(command, "commands", {})
    if below:
        command.list_commands(None)  # finds those of other packages
    if not below and not command.params:
        yield path
    for name in sorted(below):
        yield from commands(below[name], f"{path} {name}")
