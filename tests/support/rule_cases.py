"""Rules as data: files NAME.cases, a paragraph for each case, played through `MatchState`.

    == H5 what it shows          a case begins with the number of its rule
    set gap=8                    settings; before the first deck
    deck As Kd 5h ...            a stacked deck; `...` is the rest of the pack, `*2` deals it again
    cuts 26 0*6                  cut points in place of decks
    keep*4 4 quit                answers, `*N` is N times; a game may have words of its own
    all KIND field=value ...     the last news of that kind that all have heard; `seat 2 KIND` that seat
    never KIND                   nobody has heard such news
    asks SEAT KIND field=value   who is asked now, and with what
    refuses VALUE words          an answer that is not legal, and what is said of it
    fails ERROR words            what the line above it raises
    scores 1 -1 | points 3 0     the result as it stands
    over | goes on               whether the match is over

Values are JSON, or words as they stand; a list is written with commas, a list of lists with
semicolons, and cards that stand together (`AsKd`) are a list. Fields that are not named are free.
Before the first case stand settings of all cases (`set`), and names of cards (`TEN = As 2s ...`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState
from arena.games.rules import EVERYONE
from protocol import errors
from protocol.cards import PACK
from tests.support.cases import paragraphs

__all__ = ["RuleCase", "Words", "cases", "rules_named", "value", "words_of"]

Words = Callable[[MatchState, str], Iterator[object] | None]
"""A game's own words: the answers that a line gives, one after another; None for a usual line."""

_CARDS = re.compile(r"([2-9TJQKA][shdc]){2,}")


def value(text: str) -> Any:
    """What is written in a case, as JSON would have it."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    for comma in ";,":
        if comma in text:
            return [value(one) for one in text.strip(comma).split(comma)]
    return re.findall("..", text) if _CARDS.fullmatch(text) else text


def words_of(text: str) -> Iterator[str]:
    """Its words; one with `*3` comes three times."""
    for written in text.split():
        word, _, times = written.partition("*")
        yield from [word] * int(times or 1)


def _decks(text: str) -> list[list[str]]:
    text, _, times = text.partition("*")
    cards = text.replace("...", "").split()
    rest = [card for card in PACK if card not in cards] if "..." in text else []
    return [cards + rest] * int(times or 1)


class RuleCase:
    """A paragraph of a file."""

    def __init__(self, game: str, title: str, lines: list[str], words: Words) -> None:
        self.title = title
        self._game = GAMES[game]
        self._lines = lines
        self._words = words

    def __repr__(self) -> str:
        return f"{self._game.name}:{self.title.replace(' ', '_')}"

    def play(self) -> None:
        """Play it, and fail at the first line that is not so."""
        settings: dict[str, Any] = {}
        decks: list[Any] = []
        lines = list(self._lines)
        while lines and lines[0].split()[0] in ("set", "deck", "cuts"):
            first, _, rest = lines.pop(0).partition(" ")
            if first == "deck":
                decks += _decks(rest)
            elif first == "cuts":
                decks += map(int, words_of(rest))
            else:
                pairs = (one.split("=") for one in rest.split())
                settings |= {name: value(text) for name, text in pairs}
        self._heard: list[tuple[int, dict[str, Any]]] = []
        has_failed = self._fails(lines, partial(self._begin, settings, decks))
        while lines and not has_failed:
            has_failed = self._fails(lines, partial(self._step, lines.pop(0)))
        assert not lines, f"{self.title}: nothing follows what fails"

    def _begin(self, settings: dict[str, Any], decks: list[Any]) -> None:
        read = self._game.vocabulary.read_settings(settings)
        if decks:
            self.match = MatchState(self._game, read, decks=decks)
        else:
            self.match = MatchState(self._game, read, seed=b"any cards do")
        self._listen()

    def _fails(self, lines: list[str], act: Callable[[], None]) -> bool:
        """Take a step. True if the next line says that it fails, and it has."""
        if not (lines and lines[0].startswith("fails ")):
            act()
            return False
        _, error, why = lines.pop(0).split(" ", 2)
        with pytest.raises(getattr(errors, error), match=re.escape(why)):
            act()
        return True

    def _step(self, line: str) -> None:
        first, _, rest = line.partition(" ")
        at = f"{self.title}: {line}"
        pending = self.match.pending
        if first in ("all", "seat"):
            everyone = {EVERYONE} if self._game.seats > 1 else {EVERYONE, 0}
            seats = everyone if first == "all" else {EVERYONE, int(rest.split()[0])}
            kind, *fields = rest.split()[first == "seat" :]
            told = [news for who, news in self._heard if who in seats]
            of_kind = [news for news in told if news["kind"] == kind]
            assert of_kind, f"{at}: not told"
            self._fits(of_kind[-1], fields, at)
        elif first == "never":
            assert rest not in [news["kind"] for _, news in self._heard], at
        elif first == "asks":
            asked, kind, *fields = rest.split()
            assert pending is not None, f"{at}: it is over"
            question = msgspec.json.decode(msgspec.json.encode(pending.question))
            assert (pending.seat, question["kind"]) == (int(asked), kind), at
            self._fits(question, fields, at)
        elif first == "refuses":
            answer, _, why = rest.partition(" ")
            before = pending, [*self.match.answers], [*self.match.news], self.match.scores
            with pytest.raises(errors.IllegalAnswer, match=re.escape(why)):
                self.match.answer(next(self._answers(answer)))
            now = self.match.pending, self.match.answers, self.match.news, self.match.scores
            assert before == now, f"{at}: something has changed"
        elif first in ("scores", "points"):
            stand = self.match.scores if first == "scores" else self.match.points
            assert stand == tuple(map(int, rest.split())), f"{at}: {stand}"
        elif line in ("over", "goes on"):
            assert (pending is None) == (line == "over"), at
        else:
            for each in self._answers(line):
                assert self.match.pending is not None, f"{at}: it is over"
                self.match.answer(each)
                self._listen()

    def _answers(self, line: str) -> Iterator[object]:
        own = self._words(self.match, line)
        return map(value, words_of(line)) if own is None else own

    def _listen(self) -> None:
        for told in self.match.take_news():
            self._heard.append((told.seat, msgspec.json.decode(msgspec.json.encode(told.news))))

    def _fits(self, told: dict[str, Any], fields: list[str], at: str) -> None:
        for field in fields:
            name, _, expected = field.partition("=")
            # As text, in which `true` is not 1.
            assert json.dumps(told[name]) == json.dumps(value(expected)), f"{at}: {told}"


def _no_words(match: MatchState, line: str) -> None:
    return None


def cases(file: Path, words: Words = _no_words) -> list[RuleCase]:
    """The cases of a file, which is named after its game."""
    blocks = paragraphs(file)
    head = blocks.pop("")
    common = [line for line in head if line.startswith("set ")]
    names = dict(re.findall(r"^([A-Z_]+) = (.*)$", "\n".join(head), re.MULTILINE))

    def named(line: str) -> str:
        apart = line.startswith("deck ")
        for name, cards in names.items():
            line = re.sub(rf"\b{name}\b", cards if apart else cards.replace(" ", ""), line)
        return line

    found = []
    for title, lines in blocks.items():
        steps = [named(line) for line in lines if line and not line.startswith("#")]
        found.append(RuleCase(file.parent.name, title, common + steps, words))
    return found


def rules_named(folder: Path) -> set[str]:
    """The rules that cases in a folder are named after: `H5`."""
    found: set[str] = set()
    for file in folder.rglob("*.cases"):
        found |= set(re.findall(r"^== ([A-Z]\d+) ", file.read_text(encoding="utf-8"), re.MULTILINE))
    return found
