"""`arena check-game`: whether a game keeps to the conventions, by random matches.

What the description itself breaks is told when a game is loaded. Here stands what only a match can
show. Every broken convention is one line, with the name that `protocol/games.md` has for it.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import combinations_with_replacement, islice
from random import Random
from typing import Any

import msgspec

from arena.authoring.luck_check import LuckCheck
from arena.authoring.playout import NoAnswer, Playout, SeatDecided, play_out, raised, strings_in
from arena.authoring.round_check import MessageCheck, RoundCheck
from arena.authoring.secrecy import SecretCard, exchanges, first_difference, leaks, secret_cards
from arena.authoring.view_check import broken_view
from arena.games.match import MatchState, drive
from arena.games.rules import NOBODY, Game, TellSeat
from arena.games.shuffle import Stream, match_key, seed_from_int
from protocol.entry_points import points
from protocol.errors import ArenaError, IllegalAnswer, one_line
from protocol.games import PACKAGES
from protocol.messages import Ending, Termination
from protocol.strategy import house_bots
from protocol.vocabulary import Question, Range, Settings

__all__ = ["BrokenConvention", "GameReport", "check_game"]

Found = Iterator[tuple[str, str]]
"""Broken conventions: the name of each, and what is wrong."""

_MOST_DECISIONS = 20_000  # of a match, which takes a second or less
_TIMES = 200  # the expected decisions, at most, in a match of bots
_FACTOR = 10  # an estimate may be wrong by so much: random players are not like others
_SMALL = 20  # decisions: of shorter matches an estimate need not be any good
_DEALS = 1000  # that `deals` must give
_PLACE = re.compile(r" at (\S+:\d+)")
_TEXT = 600  # characters of a line, which may have the path of a file
_PER_LINEUP = 25  # random matches for each of two bots, which take longer
_EXCHANGES = 4  # cards that are exchanged in a match
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
    """Play so many random matches and say which conventions are broken, each once.

    `tick` is called after every match.
    """
    found: dict[tuple[str, str], BrokenConvention] = {}
    places = set[str]()  # where something was raised: what follows from it says no more

    def note(broken: Found) -> None:
        for convention, text in broken:
            if (place := _PLACE.search(text)) and not places.isdisjoint(place.groups()):
                continue
            places.update(place.groups() if place else ())
            # The same mistake has other numbers and cards in every match.
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
        decided.append(len(trial.played.answers))
        tick()
        if trial.is_broken:
            break
        note(luck.check(trial.played, seats))
    average = sum(decided) / max(len(decided), 1)  # the house bots have other matches
    note(_settings(game, seed))
    if not any(convention in ("deals", "rules", "seats") for convention, _ in found):
        note(_house(game))  # who could else be blamed for what the rules do
        lineups = _Lineups(game, seed, luck)
        note(lineups.check(1 + matches // _PER_LINEUP))
        decided += lineups.decided
    note(luck.means())
    note(_estimate(game, decided))
    if not found:  # else it may be no fault of the view
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
    """A match with random answers, and what is wrong with it."""

    def __init__(self, game: Game, settings: Mapping[str, object], seed: int, number: int) -> None:
        self._game = game
        self._settings = game.vocabulary.read_settings(settings)
        self._key = match_key(seed_from_int(seed), (str(number),))
        self._messages = MessageCheck(game)
        self._chance = Random(f"{seed}:{number}")
        self.played = self._play(self._random_answer)

    @property
    def is_broken(self) -> bool:
        """Whether its rules raised something, or did not end."""
        decided = len(self.played.answers)
        return self.played.error is not None or (
            decided == _MOST_DECISIONS and not self.played.is_over
        )

    def check(self) -> Found:
        """All that is wrong with it."""
        if self.is_broken:
            what = f"is not over after {_MOST_DECISIONS:,} decisions"
            if self.played.error is not None:
                what = _raised(self.played.error)
            yield "rules", f"a match with {_shown(self._settings)} {what}"
            return
        yield from RoundCheck(self._game).check(self.played)
        yield from self._messages.check(self.played)
        yield from self._again()
        try:
            for leak in leaks(self._game, self.played):
                yield "secrecy", leak
            yield from self._exchanged()
        except Exception as error:  # of the game's own `hidden`
            yield "secrecy", f"`hidden` raised {raised(error)}"

    def _deals(self) -> Iterator[Any]:
        yield from self._game.deals(self._settings, Stream(self._key))

    def _play(
        self, answer: Callable[[Question[Any]], Any], deals: Iterator[Any] | None = None
    ) -> Playout:
        return play_out(self._game, self._settings, deals or self._deals(), answer, _MOST_DECISIONS)

    def _random_answer(self, question: Question[Any]) -> Any:
        legal = question.choices
        if isinstance(legal, Range):
            value: Any = self._chance.randint(legal.min, max(legal.min, legal.max))
        elif isinstance(legal, tuple) and legal:
            value = self._chance.choice(legal)
        else:
            raise NoAnswer
        try:
            return question.check(value)
        except IllegalAnswer:
            return value  # `MessageCheck` says so

    def _again(self) -> Found:
        """The same cards and answers must give the same match."""
        with _another_random():
            again = self._play(_Same(self.played.answers))
        told, told_again = _heard(self.played), _heard(again)
        if told != told_again or self.played.scores[-1:] != again.scores[-1:]:
            yield (
                "rules",
                "the same cards and answers gave another match: the rules or `deals` draw from "
                "the time, from `random` or from what they kept of another match",
            )

    def _exchanged(self) -> Found:
        """A seat must not learn of a card that only another may know, by exchanging that card."""
        pack = set(strings_in(list(islice(self._deals(), 20))))
        secrets = list(secret_cards(self._game, self.played))
        for secret in self._chance.sample(secrets, min(len(secrets), _EXCHANGES)):
            others = secret.unseen or tuple(sorted(pack - self._all_cards(secret)))
            if not others:
                continue
            other = self._chance.choice(others)
            again = self._play(_Same(self.played.answers), exchanges(self._deals(), secret, other))
            told = first_difference(self._game, secret, self.played.events, again.events)
            if told is not None:
                yield "secrecy", told

    def _all_cards(self, secret: SecretCard) -> set[str]:
        event = self.played.events[secret.start]
        assert isinstance(event, TellSeat), "it is a deal"
        return set(strings_in(event.news))


class _Same:
    """Gives the answers of another match, in order, as long as they are legal."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = iter(answers)

    def __call__(self, question: Question[Any]) -> Any:
        for value in self._answers:
            return question.check(value)
        raise NoAnswer


@contextmanager
def _another_random() -> Iterator[None]:
    """Draw other numbers from the module `random` than before, and go on with it as it was."""
    state = random.getstate()
    random.seed()
    try:
        yield
    finally:
        random.setstate(state)


def _heard(played: Playout) -> list[object]:
    """All but the deals, which need not be comparable."""
    return [e for e in played.events if isinstance(e, SeatDecided) or e.seat != NOBODY]


def _imports(game: Game) -> Found:
    """Bots and vocabulary must do without the arena, as bots elsewhere have none."""
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
    """The matches that other commands play must end."""
    settings: dict[str, Mapping[str, object]] = {
        "short": game.short,
        "for_people": game.for_people,
        "cross": game.cross.settings,
        "demo": game.demo.settings,
    }
    read = game.vocabulary.read_settings
    for number, (field, chosen) in enumerate(settings.items()):
        estimate = game.decisions(read(chosen))
        trial = _Trial(game, chosen, seed, number)
        decided = len(trial.played.answers)
        if trial.played.error is not None:
            yield field, f"a match with {_shown(read(chosen))} {_raised(trial.played.error)}"
        elif not trial.played.is_over and decided > _FACTOR * estimate:
            yield (
                field,
                f"a match with {_shown(read(chosen))} is not over after {decided:,} decisions, "
                f"expected about {estimate:,.0f} by `decisions`",
            )


def _estimate(game: Game, decided: list[int]) -> Found:
    """`decisions` must be of the size that matches have, of random players or of house bots."""
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
    """The house bots must be there, and one be `random`."""
    try:
        house = house_bots(game.name)
    except ArenaError as error:
        yield "bots", str(error)
        return
    if not house:
        yield "bots", f"expected house bots of {game.name} in the group arena.bots, found none"
    elif "random" not in house and game.seats > 1:
        yield "bots", f"expected a house bot `random`, found {', '.join(house)}"


class _Lineups:
    """Matches of two kinds of bots: house bots, and those that take the first or last answer.

    Attributes:
        decided: how many decisions the matches of house bots had.
    """

    def __init__(self, game: Game, seed: int, luck: LuckCheck) -> None:
        self._game, self._seed, self._luck = game, seed, luck
        self._settings = game.vocabulary.read_settings(game.short)
        expected = max(game.decisions(self._settings), _SMALL)
        self._most = int(min(_TIMES * expected, _FACTOR * _MOST_DECISIONS))  # it may be wrong
        self._house: Mapping[str, Callable[[], Any]] = {}
        with suppress(ArenaError):  # `_house` says so
            self._house = house_bots(game.name)
        self._players: Mapping[str, Callable[[], Any]] = {**self._house, **_TAKERS}
        self._is_broken = False  # whether the rules raised something, or did not end
        self.decided: list[int] = []

    def check(self, matches: int) -> Found:
        """Play this many matches of each two, and stop at the first that does not end."""
        pairs = [*combinations_with_replacement(self._players, min(self._game.seats, 2))]
        for number, pair in enumerate(pairs * matches):
            match = MatchState(self._game, self._settings, seed=self._drawn(number))
            lineup = [pair[seat % len(pair)] for seat in range(self._game.seats)]
            yield from self._play(match, lineup, " against ".join(pair))
            if self._is_broken:
                return
            if match.termination == Termination(Ending.COMPLETED):
                deals = self._game.deals(self._settings, Stream(match_key(self._drawn(number))))
                played = play_out(
                    self._game, self._settings, deals, _Same(match.answers), self._most
                )
                yield from self._luck.check(played, lineup)

    def _drawn(self, number: int) -> bytes:
        return seed_from_int(self._seed + number)

    def _play(self, match: MatchState, lineup: list[str], who: str) -> Found:
        """Play to the end, unless the rules raise or do not end."""
        seated = []
        for seat, name in enumerate(lineup):
            try:
                seated.append(_Seated(self._players[name], seat, match, self._most))
            except Exception as error:
                yield "bots", f"{name} cannot play: {raised(error)}"
                match.end(Ending.CRASH, seat, "it could not be made")
                return
        try:
            drive(match, seated)
        except Exception as error:  # what a bot raises is its crash
            self._is_broken = True
            yield "rules", f"a match of {who} raised {raised(error)}"
            return
        if len(match.answers) >= self._most:
            self._is_broken = True
            settings, expected = _shown(self._settings), self._game.decisions(self._settings)
            yield (
                "rules",
                f"a match of {who} with {settings} is not over after {self._most:,} decisions, "
                f"expected about {expected:,.0f} by `decisions`",
            )
            return
        if {*lineup} <= {*self._house}:
            self.decided.append(len(match.answers))
        ended = match.termination
        if ended is not None and ended.kind is not Ending.COMPLETED:
            offender = lineup[ended.seat or 0]
            yield "bots", f"{offender} ended a match with {ended.kind}: {ended.text}"


class _Takes:
    """Always gives the first or the last answer that is legal."""

    def __init__(self, place: int) -> None:
        self._place = place

    def reset(self) -> None: ...

    def hear(self, news: object) -> None: ...

    def decide(self, question: Question[Any]) -> object:
        legal = question.choices
        answers = (legal.min, legal.max) if isinstance(legal, Range) else legal
        return answers[self._place]


class _Seated:
    """A bot at its seat; it breaks off a match that does not end."""

    def __init__(self, cls: Callable[[], Any], seat: int, match: MatchState, most: int) -> None:
        self._bot, self._match, self._most = cls(), match, most
        if callable(seeding := getattr(self._bot, "seed", None)):
            seeding(str(seat))
        self.hear, self.reset = self._bot.hear, self._bot.reset

    def decide(self, question: Question[Any]) -> object:
        if len(self._match.answers) >= self._most:
            raise RuntimeError("the match does not end")
        return self._bot.decide(question)


_TAKERS = {"the first of `legal`": partial(_Takes, 0), "the last of `legal`": partial(_Takes, -1)}


def _shown(settings: Settings) -> str:
    values = msgspec.to_builtins(settings)
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "no settings"


def _raised(error: str) -> str:
    return error if error.startswith(("yielded", "told")) else f"raised {error}"
