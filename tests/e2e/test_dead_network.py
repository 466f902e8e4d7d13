"""What only kernels show of lost time (J7): a network that drops packets, and a process that stops.

All else about bots that are away is in `tests/arena/server/test_absent_bots.py`, in virtual time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import arena_process, independent_audit
from tests.support.network_namespace import NamespaceNetwork

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="no network namespaces"),
]

WAIT_S = 120.0  # for what takes seconds
AWAY_S = 5.0  # longer than a decision may take, and shorter than the grace
GAME = "three_card_poker"
CONFIG = """
[serve]
port = {port}
host = "0.0.0.0"
db = "class.db"
open = true
[limits]
decision_ms = 1000
bank_ms = 3000
hard_ms = 4000
grace_ms = 15000
silence_ms = 15000
"""
RUN = """
[[run]]
name = "{0}"
game = "three_card_poker"
players = ["{0}"]
settings = {{ rounds = 100000, stake = 1000000 }}
"""


class ServedArena:
    """`arena serve` with a long run for each of these bots, and the bots as processes."""

    def __init__(self, folder: Path, *bots: str, network: NamespaceNetwork | None = None) -> None:
        self._folder, self._network = folder, network
        self._port = arena_process.free_port()
        text = CONFIG.format(port=self._port) + "".join(map(RUN.format, bots))
        (folder / "class.toml").write_text(text)
        self.processes: list[subprocess.Popen[bytes]] = []
        words = ("-m", "arena", "serve", "--config", "class.toml")
        self.arena = self._start("arena.err", "arena", *words)
        self.until(lambda: "arena at " in self.said(), "listens")

    def said(self) -> str:
        return (self._folder / "arena.err").read_text(encoding="utf-8")

    def until(self, holds: Callable[[], object], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not holds():
            assert self.arena.poll() is None, self.said()
            assert time.monotonic() < end, f"it never {what}: {self.said()}"
            time.sleep(0.05)

    def bot(self, name: str, *words: str, line: str = "") -> subprocess.Popen[bytes]:
        """A bot, once it plays, at the end of a line."""
        host = self._network.arena_from(line) if self._network else "127.0.0.1"
        fixed = ("--url", f"ws://{host}:{self._port}", "--game", GAME)
        words = ("-m", "tests.support.plain_bot", *fixed, *words, name)
        process = self._start(f"{name}.err", line, *words)
        self.until(lambda: f"{name}: 1 bot competes" in self.said(), "began")
        return process

    def _start(self, errors: str, where: str, *words: str) -> subprocess.Popen[bytes]:
        within = self._network.within(where) if self._network else ()
        self.processes.append(arena_process.start(self._folder, errors, *words, within=within))
        return self.processes[-1]

    def verdicts(self) -> list[tuple[str, str]]:
        """End the arena: who is out in its database, and for what."""
        self.arena.send_signal(signal.SIGINT)
        self.arena.wait(WAIT_S)
        assert "Traceback" not in self.said()
        book = independent_audit.read(self._folder / "class.db")
        return [(name, word) for _, name, word, _ in book.verdicts]


@contextmanager
def served(
    folder: Path, *bots: str, network: NamespaceNetwork | None = None
) -> Iterator[ServedArena]:
    arena = ServedArena(folder, *bots, network=network)
    try:
        yield arena
    finally:
        for process in arena.processes:
            process.kill()  # also one that is stopped
            process.wait()


def test_J7_an_outage_is_no_timeout_and_a_sleeping_laptop_is_disconnected(tmp_path: Path) -> None:
    with (
        NamespaceNetwork("short", "long") as network,
        served(tmp_path, "awake", "asleep", network=network) as arena,
    ):
        asleep = arena.bot("asleep", "--freeze", line="long")
        arena.until(lambda: arena_process.state(asleep.pid) == "T", "asked")
        awake = arena.bot("awake", line="short")
        network.cut("short")
        network.cut("long")
        time.sleep(AWAY_S)
        network.mend("short")
        arena.until(lambda: "eliminated" in arena.said(), "gave up on who sleeps")

        assert awake.poll() is None
        assert arena.verdicts() == [("asleep", "disconnect")]


def test_J7_a_client_whose_keepalive_closed_while_the_arena_stood_still_plays_on(
    tmp_path: Path,
) -> None:
    with served(tmp_path, "ann") as arena:
        bot = arena.bot("ann", "--impatient")
        arena.arena.send_signal(signal.SIGSTOP)
        time.sleep(AWAY_S)
        arena.arena.send_signal(signal.SIGCONT)
        lost = tmp_path / "ann.err"
        arena.until(lambda: "keepalive ping timeout" in lost.read_text(), "lost its bot")
        arena.until(lambda: "welcome again" in lost.read_text(), "let its bot in")

        assert bot.poll() is None
        assert arena.verdicts() == []
