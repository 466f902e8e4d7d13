"""Checks for `arena check-game` whether a game keeps to the conventions, by random matches.

Conventions that a description itself breaks are reported when the game is loaded. This module
checks what only a match can show. Every broken convention is one line, with its name in
`protocol/games.md`.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import combinations_with_replacement, islice
from random import Random
from typing import Any

import msgspec

from arena.authoring.luck_check import LuckCheck
from arena.authoring.playout import (
    AnyLegal,
    Playout,
    SameAnswers,
    play_out,
    raised,
    seeded,
    strings_in,
)
from arena.authoring.round_check import MessageCheck, RoundCheck
from arena.authoring.secrecy import exchanges, first_difference, leaks, secret_cards
from arena.authoring.view_check import broken_view
from arena.games.replay import CardsDealt
from arena.games.rules import Game
from arena.games.shuffle import Stream, match_key, seed_from_int
from protocol.entry_points import points
from protocol.errors import ArenaError, one_line
from protocol.games import PACKAGES
from protocol.messages import Ending, Termination
from protocol.strategy import Strategy, house_bots
from protocol.vocabulary import Question, Range, Settings

__all__ = ["BrokenConvention", "GameReport", "check_game"]

Found = Iterator[tuple[str, str]]
"""Broken conventions, as pairs of the name and what is wrong."""

_MOST_DECISIONS = 20_000  # of a random match, which takes a second or less
_TIMES = 200  # a match of bots may have this many times the expected decisions
_FACTOR = 10  # an estimate may be wrong by this factor, as random players are not like others
_SMALL = 20  # decisions; the estimate for shorter matches is not checked
_DEALS = 1000  # that `deals` must yield
_PLACE = re.compile(r" at (\S+:\d+)")
_TEXT = 600  # characters of a line, which may contain the path of a file
_PER_LINEUP = 25  # random matches for each match of bots, which takes longer
_EXCHANGES = 4  # cards exchanged per match
_IMPORT_S = 60

_WITHOUT_ARENA = """
import importlib, sys, traceback
class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "arena":
            raise ModuleNotFoundError("No module named 'arena'", name=name)
sys.meta_path.insert(0, Refuses())
try:
    importlib.import_module(sys.argv[1])
except BaseException as error:
    places = [
        f" at {frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
    ]
    sys.exit(f"{type(error).__name__}: {error}{places[-1] if places else ''}")
"""


class BrokenConvention(msgspec.Struct, frozen=True):
    """A convention that a game breaks: its name in `protocol/games.md`, and what is wrong."""

    convention: str
    text: str

    def __str__(self) -> str:
        return f"{self.convention}: {self.text}"


class GameReport(msgspec.Struct, frozen=True):
    """What a check of a game has found.

    Attributes:
        package: the package that it comes from, None for ours.
        decisions: of a random match, on average.
    """

    game: str
    package: str | None
    matches: int
    seed: int
    decisions: float
    broken: tuple[BrokenConvention, ...]


def check_game(
    game: Game, *, matches: int, seed: int, tick: Callable[[], object] = lambda: None
) -> GameReport:
    """Play `matches` random matches, and report each broken convention once.

    `tick` is called after every match.
    """
    found: dict[tuple[str, str], BrokenConvention] = {}
    places = set[str]()  # where exceptions were raised, to skip repeated reports of one place

    def note(broken: Found) -> None:
        for convention, text in broken:
            if (place := _PLACE.search(text)) and not places.isdisjoint(place.groups()):
                continue
            places.update(place.groups() if place else ())
            # Compare letters only: a mistake shows other numbers and cards in every match.
            kind = "".join(filter(str.isalpha, text))[:30]
            found.setdefault(
                (convention, kind), BrokenConvention(convention, one_line(text, _TEXT))
            )

    note(_imports(game))
    note(_deals(game, seed))
    decided = []
    luck = LuckCheck(game, game.vocabulary.read_settings(game.short))
    seats = [f"seat {seat + 1}" for seat in range(game.seats)]
    for number in range(matches):
        trial = _Trial(game, game.short, seed, number)
        note(trial.check())
        decided.append(len(trial.played.match.answers))
        tick()
        if trial.played.error is not None:
            break
        note(luck.check(trial.played, seats))
    average = sum(decided) / max(len(decided), 1)  # random matches only
    note(_settings(game, seed))
    if not any(convention in ("deals", "rules", "seats") for convention, _ in found):
        note(_house(game))  # else the bots might be blamed for a fault of the rules
        note(_lineups(game, seed, 1 + matches // _PER_LINEUP, luck, decided))
    note(luck.means())
    note(_estimate(game, decided))
    if not found:  # else the view may not be at fault
        note(broken_view(game, seed))
    package = PACKAGES.get(game.name)
    return GameReport(
        game=game.name,
        package=None if package is None else str(package),
        matches=matches,
        seed=seed,
        decisions=average,
        broken=tuple(found.values()),
    )


class _Trial:
    """A match with random answers, and the checks of it."""

    def __init__(self, game: Game, settings: Mapping[str, object], seed: int, number: int) -> None:
        self._game = game
        self._settings = game.vocabulary.read_settings(settings)
        self._key = match_key(seed_from_int(seed), (str(number),))
        self._chance = Random(f"{seed}:{number}")
        self.played = self._play(AnyLegal(self._chance))

    def check(self) -> Found:
        """Yield everything that is wrong with the match."""
        if self.played.error is not None:
            yield "rules", f"a match with {_shown(self._settings)} {self.played.error}"
            return
        yield from RoundCheck(self._game).check(self.played)
        yield from MessageCheck(self._game).check(self.played)
        yield from self._again()
        try:
            for leak in leaks(self._game, self.played):
                yield "secrecy", leak
            yield from self._exchanged()
        except Exception as error:  # raised by the game's own `hidden`
            yield "secrecy", f"`hidden` raised {raised(error)}"

    def _deals(self) -> Iterator[Any]:
        yield from self._game.deals(self._settings, Stream(self._key))

    def _play(self, player: Strategy, deals: Iterator[Any] | None = None) -> Playout:
        players = [player] * self._game.seats
        deals = self._deals() if deals is None else deals
        return play_out(self._game, self._settings, deals, players, _MOST_DECISIONS)

    def _again(self) -> Found:
        """Check that the same cards and answers give the same match."""
        state = random.getstate()
        random.seed()  # so that a game that uses `random` draws other numbers
        try:
            again = self._play(SameAnswers(self.played.match.answers))
        finally:
            random.setstate(state)
        if _heard(self.played) != _heard(again):
            yield (
                "rules",
                "the same cards and answers gave another match: the rules or `deals` draw from "
                "the time, from `random` or from what they kept of another match",
            )

    def _exchanged(self) -> Found:
        """Check by exchanging a card that nobody but its holder learns anything about it."""
        pack = set(strings_in(list(islice(self._deals(), 20))))
        secrets = list(secret_cards(self._game, self.played))
        for secret in self._chance.sample(secrets, min(len(secrets), _EXCHANGES)):
            shown = set(strings_in(self.played.events[secret.start]))
            others = secret.unseen or tuple(sorted(pack - shown))
            if not others:
                continue
            other = self._chance.choice(others)
            same = SameAnswers(self.played.match.answers)
            again = self._play(same, exchanges(self._deals(), secret, other))
            told = first_difference(self._game, secret, self.played.events, again.events)
            if told is not None:
                yield "secrecy", told


def _heard(played: Playout) -> tuple[object, ...]:
    """Return all events except the deals, which need not be comparable, and the scores."""
    told = [event for event in played.events if not isinstance(event, CardsDealt)]
    return told, played.match.scores


def _imports(game: Game) -> Found:
    """Check that bots and vocabulary do not import the arena, which other machines may lack."""
    for group in ("protocol.games", "arena.bots"):
        for point in points(group, game.name):
            try:
                done = subprocess.run(
                    [sys.executable, "-P", "-c", _WITHOUT_ARENA, point.module],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=_IMPORT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                yield "imports", f"{point.module} is not imported after {_IMPORT_S} seconds"
                continue
            if done.returncode:
                why = done.stderr.strip().rpartition("\n")[2]
                yield "imports", f"{point.module} cannot be imported without `arena`: {why}"


def _deals(game: Game, seed: int) -> Found:
    settings = game.vocabulary.read_settings(None)
    try:
        deals = game.deals(settings, Stream(match_key(seed_from_int(seed))))
        count = sum(1 for _ in islice(deals, _DEALS))
    except Exception as error:
        yield "deals", f"raised {raised(error)}"
        return
    if count < _DEALS:
        yield "deals", f"ended after {count} deals, expected deals without end"


def _settings(game: Game, seed: int) -> Found:
    """Check that the matches that other commands play come to an end."""
    settings: dict[str, Mapping[str, object]] = {
        "short": game.short,
        "for_people": game.for_people,
        "cross": game.cross.settings,
        "demo": game.demo.settings,
    }
    read = game.vocabulary.read_settings
    for number, (field, chosen) in enumerate(settings.items()):
        estimate = game.decisions(read(chosen))
        played = _Trial(game, chosen, seed, number).played
        is_long = len(played.match.answers) > _FACTOR * estimate
        if played.error is not None and (is_long or not played.is_endless):
            yield field, f"a match with {_shown(read(chosen))} {_fault(played, estimate)}"


def _fault(played: Playout, estimate: float) -> str:
    """Describe the fault of a match's rules; for an endless match, with the estimate."""
    more = f", expected about {estimate:,.0f} by `decisions`" if played.is_endless else ""
    return f"{played.error}{more}"


def _estimate(game: Game, decided: list[int]) -> Found:
    """Check `decisions` against the lengths of matches of random players or of house bots."""
    settings = game.vocabulary.read_settings(game.short)
    estimate = game.decisions(settings)
    least, most = min(decided), max(decided)
    is_small = least > _SMALL and estimate * _FACTOR < least
    if is_small or estimate > _FACTOR * max(most, _SMALL):
        yield (
            "decisions",
            f"matches with {_shown(settings)} had {least:,} to {most:,} decisions, expected about "
            f"{estimate:,.0f}",
        )


def _house(game: Game) -> Found:
    """Check that there are house bots, and one called `random`."""
    try:
        house = house_bots(game.name)
    except ArenaError as error:
        yield "bots", str(error)
        return
    if not house:
        yield "bots", f"expected house bots of {game.name} in the group arena.bots, found none"
    elif "random" not in house and game.seats > 1:
        yield "bots", f"expected a house bot `random`, found {', '.join(house)}"


def _lineups(game: Game, seed: int, matches: int, luck: LuckCheck, decided: list[int]) -> Found:
    """Play this many matches of each two kinds of bots, and stop at the first that does not end.

    The kinds are the house bots, and bots that always give the first or last answer. The numbers
    of decisions in matches of house bots are added to `decided`.
    """
    settings = game.vocabulary.read_settings(game.short)
    expected = game.decisions(settings)
    most = int(min(_TIMES * max(expected, _SMALL), _FACTOR * _MOST_DECISIONS))  # it may be wrong
    house: Mapping[str, Callable[[], Any]] = {}
    with suppress(ArenaError):  # `_house` reports it
        house = house_bots(game.name)
    kinds: Mapping[str, Callable[[], Any]] = {**house, **_TAKERS}
    pairs = [*combinations_with_replacement(kinds, min(game.seats, 2))]
    for number, pair in enumerate(pairs * matches):
        lineup = [pair[seat % len(pair)] for seat in range(game.seats)]
        players = []
        try:
            for seat, name in enumerate(lineup):
                players.append(seeded(kinds[name](), str(seat)))
        except Exception as error:
            yield "bots", f"{name} cannot play: {raised(error)}"
            continue
        deals = game.deals(settings, Stream(match_key(seed_from_int(seed + number))))
        played = play_out(game, settings, deals, players, most)
        who, ended = " against ".join(pair), played.match.termination
        if played.error is not None:
            having = f" with {_shown(settings)}" if played.is_endless else ""
            yield "rules", f"a match of {who}{having} {_fault(played, expected)}"
            return
        if {*lineup} <= {*house}:
            decided.append(len(played.match.answers))
        if ended == Termination(Ending.COMPLETED):
            yield from luck.check(played, lineup)
        elif ended is not None:
            yield "bots", f"{lineup[ended.seat or 0]} ended a match with {ended.kind}: {ended.text}"


class _Takes(AnyLegal):
    """Always gives the first or the last legal answer."""

    def __init__(self, place: int) -> None:
        self._place = place

    def decide(self, question: Question[Any]) -> object:
        legal = question.choices
        answers = (legal.min, legal.max) if isinstance(legal, Range) else legal
        return answers[self._place]


_TAKERS = {"the first of `legal`": partial(_Takes, 0), "the last of `legal`": partial(_Takes, -1)}


def _shown(settings: Settings) -> str:
    values = msgspec.to_builtins(settings)
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "no settings"
