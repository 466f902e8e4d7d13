"""Finds the tools that tests use beside Python, and says how to get those that are missing.

A test that needs some is marked `@pytest.mark.needs("node", "jq")`; a fixture, or a test that finds
out later, calls `tool("node")`. Without one of them the test is skipped, in one line that says how
to get it. Where `CI` is set it fails instead, but for want of what only root may do or permit.

As a program, before anything is installed, it prints the Debian packages that are missing.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

__all__ = ["found", "make_options", "missing", "skip_without", "tool"]

_CAP_SYS_ADMIN = 21  # linux/capability.h
_ROOT = Path(__file__).parents[2]
_GORILLA = "/usr/share/gocode/src/github.com/gorilla/websocket"
_DEBIAN: dict[str, tuple[str, ...]] = {
    "bash": ("bash", "bash"),
    "boost": ("libboost-dev", "/usr/include/boost/beast.hpp"),
    "bwrap": ("bubblewrap", "bwrap"),
    "ccache": ("ccache", "ccache"),
    # Without what draws its own windows it takes a third less time.
    "chromium": (
        "chromium-headless-shell",
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
    ),
    "g++": ("g++", "g++"),
    "git": ("git", "git"),
    "go": ("golang-go", "go"),
    "gorilla": ("golang-github-gorilla-websocket-dev", _GORILLA),
    "gson": ("libgoogle-gson-java", "/usr/share/java/gson.jar"),
    "initdb": ("postgresql", "/usr/lib/postgresql/*/bin/initdb", "initdb"),
    "ip": ("iproute2", "ip"),
    "java": ("default-jdk-headless", "java"),
    "javac": ("default-jdk-headless", "javac"),
    "jq": ("jq", "jq"),
    "keytool": ("default-jdk-headless", "keytool"),
    "make": ("make", "make"),
    "mount": ("mount", "mount"),
    "nats-server": ("nats-server", "/usr/sbin/nats-server", "nats-server"),
    "nginx": ("nginx-light", "/usr/sbin/nginx", "nginx"),
    "nlohmann": ("nlohmann-json3-dev", "/usr/include/nlohmann/json.hpp"),
    "node": ("nodejs", "node"),
    "npm": ("npm", "npm"),
    "openssl": ("openssl", "openssl"),
    "setpriv": ("util-linux", "setpriv"),
    "zip": ("zip", "zip"),
}
"""The package of each tool, where that puts it, and where else it may be found."""

_NPM = {"axe-core": "axe-core/axe.min.js", "@asyncapi/specs": "@asyncapi/specs/schemas/3.0.0.json"}
"""What `.ci/run` gets from npm, and a file of it in `.ci/node_modules`."""


def found(name: str) -> str | None:
    """The path of a tool; None if it is not there. Other names are modules of Python."""
    if name in _DEBIAN:
        return next(filter(None, map(_place, _DEBIAN[name][1:])), None)
    if name in _NPM:
        return _place(str(_ROOT / ".ci" / "node_modules" / _NPM[name]))
    spec = find_spec(name)
    return spec.origin if spec else None


def _place(place: str) -> str | None:
    if place.startswith("/"):
        newest_first = sorted(Path("/").glob(place[1:]), reverse=True)
        return str(newest_first[0]) if newest_first else None
    return shutil.which(place)


def missing(*names: str) -> str | None:
    """What of it is not here or does not work, and how to get it, in one line; None if all is."""
    return next(filter(None, map(_lack, names)), None)


def _lack(name: str) -> str | None:
    if name == "root":
        return None if _is_root() else "root is needed, who may mount and make networks"
    if found(name) is None:
        return f"{name} is not installed: {_how_to_get(name)}"
    why = None
    if name == "bwrap":
        from arena.sandbox import bubblewrap  # not where nothing is installed yet

        why = bubblewrap.probe() or bubblewrap.probe(network=False)
    return why and f"{name} does not work: {why}"


def _is_root() -> bool:
    """Whether this process has the rights of root; in many a container root has few."""
    with suppress(OSError):
        rights = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
        return bool(rights and int(rights[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False


def _how_to_get(name: str) -> str:
    if name in _DEBIAN:
        return f"apt-get install {_DEBIAN[name][0]}"
    if name in _NPM:
        return f"npm install --prefix .ci --no-save {name}"
    return "pip install '.[tests]'"


def skip_without(*names: str) -> None:
    """Skip the test for want of a tool; where `CI` is set, fail it."""
    import pytest

    for name in names:
        if why := missing(name):
            is_here = name == "root" or found(name) is not None
            is_failure = os.environ.get("CI") and (_is_root() or not is_here)
            (pytest.fail if is_failure else pytest.skip)(why)


def tool(name: str) -> str:
    """The path of a tool; without it the test is skipped, and fails where `CI` is set."""
    skip_without(name)
    path = found(name)
    assert path is not None, f"{name} has just been found"
    return path


def make_options() -> list[str]:
    """How `make` builds C++ in tests: not optimized, and with ccache what is alike once.

    One compiler at a time: two that compile the same would both find nothing in the cache.
    """
    cached = [f"CXX=flock {os.environ['CCACHE_DIR']}.lock ccache g++"] if found("ccache") else []
    return [*cached, "CXXFLAGS=-std=c++20 -O0 -Wall -Wextra"]


if __name__ == "__main__":
    packages = {package for package, place, *_ in _DEBIAN.values() if _place(place) is None}
    print(*sorted(packages))
