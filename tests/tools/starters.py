"""Every starter in every language, as a student uses it: `python -m tests.tools.starters [--game
GAME] [--lang LANGUAGE]`.

Each is written by `arena new` into a folder of its own, and there its commands are run as they were
printed: build, test, try, check; then it is connected to an arena on a free port and plays a
competition, and at last another one as if it had been handed in. It takes some minutes: what is tried on every commit is in tests/e2e/test_new.py. A
line for each starter; the exit status is 1 if one did not do what it should. Where a language's
tools are missing its starters are left out, and it says so. With PYTHONPATH a game from outside is
one of them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from arena.authoring.starter import ADDRESS, starter
from arena.competitions.live_arena import LiveArena
from arena.games.catalogue import GAMES
from arena.sandbox.languages import Language
from arena.storage.store import Store
from protocol.errors import ArenaError
from tests.support.needs import missing
from tests.support.submitted import play, submitted

__all__ = ["NEEDS", "CommandFailed", "StarterTrial", "main"]

LINE_S = 300  # any one command; a compiler beside other work takes a minute
START_S = 60  # an arena, until it says where it is
STEPS = ("build", "test", "try", "check", "connect", "hand in")
NEEDS = {
    Language.PYTHON: (),
    Language.JAVASCRIPT: ("node",),
    Language.JAVA: ("javac", "make"),
    Language.CPP: ("g++", "make"),
    Language.GO: ("go", "make"),
    Language.BASH: ("bash", "jq"),
}
_ABOUT = """
import json, sys
from arena.games.catalogue import GAMES
from protocol.strategy import house_bots
game = GAMES[sys.argv[1]]
short = [f"--set {name}={json.dumps(value)}" for name, value in game.short.items()]
print(json.dumps([game.seats, list(house_bots(game.name)), " ".join(short)]))
"""
"""What a trial must know of a game, which may be there for its commands only."""

BIN = Path(sys.executable).parent  # not resolved: in a virtual environment it is a link


class CommandFailed(Exception):
    """A command did not do what it should; the text is what it showed."""


class StarterTrial:
    """One starter, from its making to a competition.

    Args:
        folder: where it is to be; new.
        game: what it plays.
        language: what it is written in.
        rounds: how many `arena check` plays; None for as many as it does by itself.
        make_flags: what `make` is told beside its file, as `MAKEFLAGS`.
        packages: the folder of a game from outside.
    """

    def __init__(
        self,
        folder: Path,
        game: str,
        language: Language,
        rounds: int | None = None,
        make_flags: str = "",
        packages: Path | None = None,
    ) -> None:
        self.folder = folder
        self.game = game
        self._language = language
        self._rounds = rounds
        self._environment = os.environ | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MAKEFLAGS": make_flags,
            **({} if packages is None else {"PYTHONPATH": str(packages)}),
        }
        made = self._run(
            f"arena new {game} --lang {language} --json {shlex.quote(str(folder))}", folder.parent
        )
        self.made: dict[str, Any] = json.loads(made)
        self.lines: dict[str, str] = {
            command["purpose"]: command["line"] for command in self.made["commands"]
        }

    def step(self, purpose: str) -> str:
        """Do one of `STEPS`; what it showed.

        Raises:
            Failed: its exit status is not 0, or the bot was put out.
        """
        if purpose == "hand in":
            return asyncio.run(self._hand_in())
        if purpose not in self.lines:
            return ""
        line = self.lines[purpose]
        if purpose == "connect":
            return self._connect(line)
        if purpose == "check" and self._rounds is not None:
            line = line.replace("check", f"check --rounds {self._rounds}", 1)
        return self._run(line, self.folder)

    def _run(self, line: str, folder: Path) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LINE_S,
            check=False,
        )
        if done.returncode:
            raise CommandFailed(f"{line}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _connect(self, line: str) -> str:
        """Have it play a competition in an arena that is there for it, with house bots in the other
        chairs.
        """
        seats, bots, short = json.loads(
            self._run(f"python -c {shlex.quote(_ABOUT)} {self.game}", self.folder)
        )
        rivals = [
            f"arena connect {self.game} {bot} --name rival{number} --url {ADDRESS}"
            for number, bot in enumerate(islice(cycle(bots), seats - 1))
        ]
        rivals.append(line)
        options = f"--players {seats} {short} --db arena.db"
        serve = f"arena serve {self.game} --port 0 --once {options}"
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(self._started(serve))
            url = _address(server, serve)
            rivals = [bot.replace(ADDRESS, url) for bot in rivals]
            bots = [stack.enter_context(self._started(bot)) for bot in rivals]
            shown, said = server.communicate(timeout=LINE_S)
            if server.returncode or " is out " in shown or "eliminated" in shown:
                raise CommandFailed(f"{serve}: {server.returncode}\n{shown}{said}")
            for bot, command in zip(bots, rivals, strict=True):
                out, err = bot.communicate(timeout=LINE_S)
                if bot.returncode:
                    raise CommandFailed(f"{command}: {bot.returncode}\n{out}{err}")
        return str(shown)

    async def _hand_in(self) -> str:
        """Have it built, sealed off and played with, as an arena does with what is handed in."""
        game = GAMES[self.game]
        files = starter(game, self._language, "mine").files
        with tempfile.TemporaryDirectory() as name, Store(Path(name) / "arena.db") as store:
            async with asyncio.timeout(LINE_S), LiveArena(store) as host:
                try:
                    report = await play(host, game, await submitted(files, Path(name)))
                except (ArenaError, AssertionError) as error:
                    raise CommandFailed(f"handed in: {error}") from None
            await store.flushed()
        if report.verdicts:
            raise CommandFailed(f"handed in: {report.verdicts}")
        return ""

    @contextlib.contextmanager
    def _started(self, line: str) -> Iterator[subprocess.Popen[str]]:
        """A program that is stopped in the end, with all that it has started."""
        with subprocess.Popen(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _address(server: subprocess.Popen[str], line: str) -> str:
    """Where an arena listens that has just been started by this line, as its first words say.

    Raises:
        Failed: it says something else, or nothing.
    """
    assert server.stderr is not None, "it is a pipe"
    # Without the arena what is read here has an end.
    stops = threading.Timer(START_S, os.killpg, (server.pid, signal.SIGKILL))
    stops.start()
    try:
        first = server.stderr.readline()
    finally:
        stops.cancel()
    found = re.match(r"arena at (\S+)", first)
    if found is None:
        raise CommandFailed(f"{line}: {first or f'nothing within {START_S} s'}")
    return found[1]


def _try_out(folder: Path, game: str, language: Language, title: str) -> str:
    """All steps of one starter; what is wrong with it, or nothing."""
    try:
        trial = StarterTrial(folder, game, language)
        for step in STEPS:
            _show(f"{title} {step} …")
            trial.step(step)
    except CommandFailed as failure:
        return str(failure)
    except subprocess.TimeoutExpired as late:
        return f"{late.cmd}: not done after {late.timeout:.0f} s"
    return ""


def _show(text: str) -> None:
    """What is being done, on a terminal, in a line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Read the command line and try the starters out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--game", choices=[*GAMES], action="append")
    parser.add_argument("--lang", choices=[*Language], action="append", type=Language)
    options = parser.parse_args()
    chosen = [
        (language, game) for language in options.lang or Language for game in options.game or GAMES
    ]
    failed = left_out = 0
    with tempfile.TemporaryDirectory() as parent:
        for number, (language, game) in enumerate(chosen, start=1):
            title = f"{number:2}/{len(chosen)} {language:10} {game:16}"
            if absent := missing(*NEEDS[language]):
                left_out += 1
                result = f"left out: {absent}"
            else:
                began_s = time.monotonic()
                folder = Path(parent) / f"{language}-{game}"
                wrong = _try_out(folder, game, language, title)
                failed += bool(wrong)
                took = f"{time.monotonic() - began_s:.0f} s"
                result = f"FAILED after {took}: {wrong}" if wrong else f"ok, {took}"
                shutil.rmtree(folder, ignore_errors=True)
            _show("")
            print(f"{title} {result}", flush=True)
    print(f"{len(chosen)} starters: {failed} failed, {left_out} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
