"""Which languages a program can be handed in here: each tool and library is tried, not guessed."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import msgspec

from arena.sandbox.command import search_path
from arena.sandbox.languages import LANGUAGES, Language, LanguageNeed
from protocol.version import __version__

__all__ = ["Toolchain", "installed"]

_TRY_S = 20.0  # the first start of a JDK on a loaded machine
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_PYTHON_LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "torch")  # reported if installed


class Toolchain(msgspec.Struct, frozen=True):
    """A language of the starters, on this machine.

    Attributes:
        name: as `arena new` takes it.
        title: for display.
        version: what is installed of it: `Java 17.0.15, Gson, GNU Make 4.3`.
        missing: the Debian packages that are still needed to build and play a starter; empty if
            none are.
    """

    name: str
    title: str
    version: str
    missing: str = ""


def installed() -> tuple[Toolchain, ...]:
    """Each language of the starters; this takes a second or two."""
    with ThreadPoolExecutor() as tries:
        return tuple(tries.map(_toolchain, Language))


def _toolchain(language: Language) -> Toolchain:
    found = _python() if language is Language.PYTHON else []
    missing = []
    for need in LANGUAGES[language].needs:
        version = _version_of(need)
        if version is None or _numbers(version) < need.oldest:
            least = f" (version {'.'.join(map(str, need.oldest))} or later)" if need.oldest else ""
            missing.append(need.package + least)
        else:
            found.append(f"{need.name} {version}".rstrip())
    return Toolchain(language.value, language.shown, ", ".join(found), ", ".join(missing))


def _python() -> list[str]:
    """Python and the libraries of this process, with which our client runs a FILE.py."""
    found = [f"Python {platform.python_version()}", f"card-arena {__version__}"]
    for name in _PYTHON_LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _version_of(need: LanguageNeed) -> str | None:
    """The version that a probe prints, "" if it prints none; None if it fails."""
    path = search_path()
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                need.probe,
                input=need.source,
                cwd=folder,
                env={**os.environ, "HOME": folder, "PATH": path, **need.environment},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TRY_S,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    version = _VERSION.search(done.stdout.partition("\n")[0])
    return version[0] if version else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if version else ()
