"""Where the processes of a Flink run: on loopback, or on two nodes made of this machine."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from slackwater.core.errors import UsageError


@dataclass(frozen=True)
class Host:
    """A node."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()  # of every command that runs there


@contextmanager
def two_nodes() -> Iterator[tuple[Host, Host]]:
    """Use this machine as two nodes: a CPU each, a network namespace for the second.

    They reach each other over a pair of virtual links, and a process sees the addresses and ports
    of its own node only.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise UsageError("two nodes take two CPUs")
    name, subnet = f"slackwater-{os.getpid()}", f"10.207.{os.getpid() % 256}"
    near, far = (f"sw{os.getpid()}{end}" for end in "ab")
    inside = ("ip", "netns", "exec", name)
    with ExitStack() as stack:
        _run("ip", "netns", "add", name)
        stack.callback(_run, "ip", "netns", "delete", name)  # and the links with it
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        for prefix, link, number in (((), near, 1), (inside, far, 2)):
            _run(*prefix, "ip", "address", "add", f"{subnet}.{number}/30", "dev", link)
            _run(*prefix, "ip", "link", "set", link, "up")
        _run(*inside, "ip", "link", "set", "lo", "up")
        yield (
            Host(f"{subnet}.1", ("taskset", "-c", str(cpus[0]))),
            Host(f"{subnet}.2", (*inside, "taskset", "-c", str(cpus[1]))),
        )


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"two nodes take the commands ip and taskset: {error}") from None
    if done.returncode:
        raise UsageError(f"two nodes take the right to make namespaces: {done.stderr.strip()}")
