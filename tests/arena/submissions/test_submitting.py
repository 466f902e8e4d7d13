"""The cases in `submitting.cases`: submitters without sockets, at a service that runs."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest

from arena.storage import quota
from arena.storage.roster import Roster
from arena.submissions import socket, uploads
from protocol.submitting import Enter, Piece
from tests.support.page_sockets import PageSocketStage
from tests.support.rule_cases import value, words_of
from tests.support.scripts import Case, cases, fields
from tests.support.submitting import (
    FakeSubmitterConnection,
    SubmitterSurroundings,
    bot_zip,
    in_submissions,
    strategy,
)

PLACES = {"quota": quota, "socket": socket, "uploads": uploads}
PROGRAMS = {
    "hello": b"hello",
    "noise": b"PK no zip",
    "unbuildable": bot_zip(
        bot_toml='build = "sh -c \'echo all-wrong; exit 3\'"\nrun = "python3 bot.py"',
        bot_py="import sys",
    ),
    "unstartable": bot_zip(bot_toml="run = './bot'\nbuild = 'true'\n"),
}


def program(words: str) -> bytes:
    """One of `PROGRAMS`, or else a strategy with words in it: `akq+more`."""
    return PROGRAMS.get(words) or strategy(*words.replace("akq", "ace_king_queen").split("+"))


class SubmitStage(PageSocketStage[FakeSubmitterConnection]):
    """Submitters by their names; whoever is named first enters then, if it has a token."""

    def __init__(
        self,
        arena: SubmitterSurroundings,
        patch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        super().__init__(arena)
        self._arena = arena
        self._patch = patch
        self._caplog = caplog

    def opened(self, name: str) -> FakeSubmitterConnection:
        owner = name.rstrip("0123456789")
        return (
            self._arena.enters(owner)
            if owner in self._arena.running.tokens
            else super().opened(name)
        )

    def do_set(self, text: str) -> None:
        name, _, number = text.partition(" ")
        place, _, attribute = name.partition(".")
        self._patch.setattr(PLACES[place], attribute, value(number))

    def do_break(self, path: str) -> None:
        owner, _, name = path.rpartition(".")
        self._patch.setattr(attrgetter(owner)(self._arena), name, None)

    def do_revoke(self, owner: str) -> None:
        Roster(self._arena.running.store.engine).revoke(owner)
        self._arena.roster_changes()

    async def do_close(self, _: str) -> None:
        await self._arena.sockets.close()

    def by_enters(self, name: str, owner: str) -> None:
        self.of(name).says(Enter(self._arena.running.tokens[owner]))

    def by_sends(self, name: str, text: str) -> None:
        """Send a piece: a program, or so many bytes."""
        for word in words_of(text):
            self.of(name).says(Piece(b"#" * int(word) if word.isdigit() else program(word)))

    async def by_hands(self, name: str, text: str) -> None:
        _, words, *more = text.split(" ")
        options = fields(" ".join(more))
        number = await self.of(name).hands_in(program(words), options.get("file", "bot.py"))
        assert number == options.get("as", number)

    async def by_has(self, name: str, words: str) -> None:
        """Hand a program in, and wait until it is a version."""
        await self.of(name).hands_in(program(words))
        await self.by_awaits(name, "progress state=accepted")

    def do_empty(self, folder: str) -> None:
        assert [*(self._arena.running.folder / folder).iterdir()] == []

    def do_logged(self, text: str) -> None:
        assert text in self._caplog.text


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("submitting.cases")))
async def test_what_happens_at_the_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    async with in_submissions(tmp_path, **case.given) as arena:
        await SubmitStage(arena, monkeypatch, caplog).play(case)
