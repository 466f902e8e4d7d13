"""The bots, competitions and moments of the kills of `tests/tools/powercut.py`.

There are bots of every kind: house bots of a run, programs that the arena launches with a
connection and on pipes, programs that connect by themselves, and students who share a process. They
have one table or more, and play in one competition or in both.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.student_bots import student

__all__ = ["KINDS", "ONE_TABLE", "Moment", "PowercutPlan"]

KINDS = ("start", "connect", "play", "commit", "stage")
"""When a kill comes: before the arena listens, while its bots connect, in play, at a write to the
database, at the end of a table of the elimination (in play, if that is over). The last kills come
at the very end: at `end` of the round robin, and when all is `over`."""
ONE_TABLE = {"stan", "rita"}
"""The bots that cannot meet themselves in the round robin."""

_LAST = (("end", 2), ("end", 0), ("over", 0))  # with the matches left then
_STUDENTS = 22
_IN_BOTH = 3  # students
_MANY = 10  # kills
_HANDS, _FEW_HANDS = 1000, 200  # of a match, for many kills and for few
_MATCHES_PER_KILL = 5  # of the round robin, so that there is enough to interrupt
_COMING_S = 1.5  # an arena starts and its bots connect in that time
_LATER_S = {"play": 0.5, "commit": 0.004, "stage": 0.02}
_END_S = 0.01

# A whole bot on pipes.
_STDIO = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
say(type="hello", protocol=1, name="x", games=["ace_king_queen", "high_low"])
for line in sys.stdin:
    it = json.loads(line)
    if it["type"] == "match":
        say(type="ready", match=it["match"], nonce="n")
    elif it["type"] == "ask":
        say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])
"""

_CONFIG = """
[serve]
port = {port}
db = "powercut.db"
log = "matches.log"
once = true

[[bot]]
name = "stan"
command = "stdio: {python} stan.py"

[[bot]]
name = "wilma"
command = "{python} -m bots ace_king_queen honest --tables 2 --quiet --no-session"

[[run]]
name = "cup"
game = "high_low"
players = ["stan", "rosa", {all}]
house = ["bold", "timid", "counter"]
settings = {{ gap = 20, max_shuffles = 8 }}

[[run]]
name = "robin"
game = "ace_king_queen"
players = ["stan", "wilma", "rita", {some}]
matches = {matches}
house = ["nash", "bluffer"]
settings = {{ hands = {hands} }}
"""


class Moment(NamedTuple):
    """A kill `after_s` seconds after an event of a kind.

    `matches` of the round robin must be written before.
    """

    kind: str
    after_s: float
    matches: int


class PowercutPlan:
    """What is played, and when it is killed; `seed` draws the moments."""

    def __init__(self, kills: int, seed: int) -> None:
        self._kills = kills
        self._random = random.Random(seed)
        self._matches = 4 + _MATCHES_PER_KILL * kills // 28  # of each two of eight
        self._names = [f"student-{number}" for number in range(1, _STUDENTS + 1)]

    @property
    def matches(self) -> int:
        """How many the round robin has: of eight bots, of which six meet themselves."""
        return self._matches * (8 * 7 // 2 + 8 - len(ONE_TABLE))

    def write(self, folder: Path, port: int) -> None:
        """Write the files that the arena and the bots read."""
        (folder / "stan.py").write_text(_STDIO)
        config = _CONFIG.format(
            port=port,
            python=sys.executable,
            some=", ".join(f'"{name}"' for name in self._names[:_IN_BOTH]),
            all=", ".join(f'"{name}"' for name in self._names),
            matches=self._matches,
            hands=_HANDS if self._kills >= _MANY else _FEW_HANDS,
        )
        (folder / "arena.toml").write_text(config)
        bots = {"ace_king_queen": "random", "high_low": "random"}
        students = [student(name, bots) for name in self._names]
        (folder / "students.json").write_text(json.dumps(students))

    @staticmethod
    def actors(url: str) -> dict[str, tuple[str, ...]]:
        """The command lines of the bots that connect by themselves."""
        here = ("--url", url)
        rest = (*here, "--quiet", "--no-session", "--name")
        connect = ("-m", "arena", "connect")
        return {
            "students": ("-m", "tests.support.student_bots", "students.json", *here),
            "rita": (*connect, "ace_king_queen", "learner", *rest, "rita"),
            "rosa": (*connect, "high_low", "counter", *rest, "rosa"),
        }

    def moments(self) -> Iterator[Moment]:
        """All kills, in their order: those in play are spread over the whole round robin."""
        last = min(len(_LAST), max(1, self._kills // 3))
        first = self._kills - last
        kinds = [KINDS[number % len(KINDS)] for number in range(first)]
        self._random.shuffle(kinds)
        playing = sum(kind in _LATER_S for kind in kinds)
        due = sorted(self._random.sample(range(1, self.matches - 3), playing))
        for kind in kinds:
            later_s = _LATER_S.get(kind, _COMING_S)
            matches = due.pop(0) if kind in _LATER_S else 0
            yield Moment(kind, self._random.uniform(0, later_s), matches)
        for kind, left in _LAST[-last:]:
            yield Moment(kind, self._random.uniform(0, _END_S), self.matches - left)
