"""Matches in this process; and strategies that do all they can to disturb them."""

from __future__ import annotations

import asyncio
import itertools
import math
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import arena
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.games.replay import replay
from arena.lab.in_process import entrant, play
from protocol.ace_king_queen import HandOver
from protocol.errors import UnknownBot, UsageError
from protocol.messages import Ending
from protocol.strategy import find
from tests.support.answering import Answering


class ScriptedStrategy:
    """Gives these answers, then checks and calls for ever; keeps what happened to it, in order."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.seen: list[Any] = []

    def __repr__(self) -> str:
        return "Scripted"  # in the names of tests, which are the same in every process

    def decide(self, question: Any) -> object:
        self.seen.append(question.kind)
        if self.answers:
            return self.answers.pop(0)
        return "check" if question.kind == "open" else "call"

    def hear(self, news: Any) -> None:
        self.seen.append(news)

    def reset(self) -> None:
        self.seen.append("reset")


def against(villain: Any, hands: int = 4, decks: Iterable[Any] | None = None) -> arena.MatchResult:
    """A match in which somebody has seat 1, against a peaceful opponent."""
    return play(
        "ace_king_queen",
        [ScriptedStrategy(), villain],
        settings={"hands": hands},
        decks=decks or itertools.repeat("AK"),
    )


# ---- Playing


def test_a_bot_that_changes_the_directory_is_found_by_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bots").mkdir()
    lines = ["import os", "os.chdir(os.path.dirname(__file__))", "class Bot:"]
    lines += [f"    {name} = 'ace_king_queen'" for name in ("game", "decide", "hear", "reset")]
    Path("bots/mine.py").write_text("\n".join(lines))
    maker = entrant(GAMES["ace_king_queen"], "bots/mine.py", {"no": "such argument"}).make
    again = pickle.loads(pickle.dumps(maker))

    with pytest.raises(UnknownBot, match=r"^bots/mine\.py cannot be started: TypeError"):
        again("a seed")


def test_strategies_are_reset_then_asked_and_told() -> None:
    first, second = ScriptedStrategy("bet"), ScriptedStrategy("fold")

    result = play("akq", [first, second], settings={"hands": 1}, decks=[["A", "K"]])
    told = HandOver(1, 0, ("A", "K"), "bet", "fold", (1, -1), (1, -1))
    assert first.seen == ["reset", "open", told]
    assert second.seen == ["reset", "respond", told]
    assert result.scores == (1, -1)
    assert result.termination.kind == "completed"
    assert result.termination.seat is None


def test_a_seat_hears_only_what_it_is_told() -> None:
    seats = [Answering() for _ in range(4)]
    play("high_low", seats, settings={"max_shuffles": 1, "gap": 10**9}, seed=1)
    dealt = [[news for news in seat.heard if news.kind == "dealt"] for seat in seats]

    assert all(len(own) >= 10 for own in dealt)
    assert len({own[0].card for own in dealt}) == 4


def test_the_same_seed_gives_the_same_match_byte_for_byte() -> None:
    def record(seed: int | None) -> bytes:
        return play("akq", [ScriptedStrategy(), ScriptedStrategy()], seed=seed).record.to_json()

    assert record(7) == record(7)
    assert record(7) != record(8)
    assert record(None) != record(None)


def test_settings_have_the_rulebooks_defaults() -> None:
    result = play("akq", (ScriptedStrategy() for _ in range(2)), seed=1)  # any iterable

    assert result.record.settings == {"hands": 1000}


def test_decks_are_dealt_whatever_the_seed() -> None:
    def scores(seed: int | None) -> tuple[int, ...]:
        seats = [ScriptedStrategy("bet"), ScriptedStrategy("call")]
        settings = {"hands": 1}
        return play("akq", seats, settings=settings, decks=["AK"], seed=seed).scores

    assert scores(1) == scores(2) == scores(None) == (2, -2)


# ---- Wrong calls


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"game": "chess"}, "unknown game 'chess'"),
        ({"game": None}, "unknown game None"),
        ({"strategies": []}, "needs 2 strategies, got 0"),
        ({"strategies": [ScriptedStrategy()]}, "needs 2 strategies, got 1"),
        ({"strategies": [ScriptedStrategy()] * 3}, "needs 2 strategies, got 3"),
        ({"strategies": [ScriptedStrategy()] * 2}, "A9"),
        (
            {"strategies": ["nash", ScriptedStrategy()]},
            "of a bot's class for each seat, got 'nash'",
        ),
        ({"strategies": [ScriptedStrategy, ScriptedStrategy()]}, "an object of a bot's class"),
        ({"settings": {"hands": -1}}, "settings of ace_king_queen"),
        ({"settings": {"card": 1}}, "unknown field `card`"),
        ({"decks": []}, "another deck"),
        ({"decks": [["A", "K"]]}, "another deck"),
        ({"decks": [["A", "A"]]}, "twice"),
        ({"decks": [["A"]]}, "at least 2 cards"),
        ({"decks": [["As", "Ks"]]}, "no card of this game"),
        ({"decks": [5]}, "expected a list of cards, got 5"),
        ({"decks": 5}, "expected a list of decks, got 5"),
        ({"seed": True}, "whole number for a seed, got True"),
        ({"seed": 7.0}, "whole number for a seed, got 7.0"),
        ({"seed": "7"}, "whole number for a seed, got '7'"),
    ],
    ids=str,
)
def test_a_wrong_call_is_a_value_error_that_says_why(change: dict[str, Any], text: str) -> None:
    call: dict[str, Any] = {
        "game": "akq",
        "strategies": [ScriptedStrategy(), ScriptedStrategy()],
        "settings": {"hands": 2},
        **change,
    }

    with pytest.raises(ValueError, match=text) as refused:
        play(**call)
    assert isinstance(refused.value, UsageError)


# ---- J1: strange answers


class Equal:
    """Says that it equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("fold")


class Unequal:
    """Raises whatever is done to it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


class Evil:
    """Says of itself what no line and no record may have."""

    def __repr__(self) -> str:
        return "\x1b[2J\n\ud800"


STRANGE = [
    "raise", "CALL", "call\n", "", 0, 1, -1, 1 << 70, 10**5000, True, None, 1.0, math.nan, math.inf,
    b"call", Equal(), Unequal(), Evil(), ["call"], ("call",), {"call"}, {"value": "call"},
    {"discard": Equal(), "knock": Unequal(), "melds": [[Equal()]]}, [[Unequal()]], [[[[]]]], {1: 2}, {None: 1},
    object(), len, ScriptedStrategy, ScriptedStrategy(), lambda: "call", iter(["call"]), range(5), Ellipsis, NotImplemented,
]  # fmt: skip


NEVER_LEGAL = [
    value for value in STRANGE if value is not None and (type(value) is not int or value > 1000)
]
# In ace-king-queen all of them are.
EVERYWHERE = [("ace_king_queen", value) for value in STRANGE]
EVERYWHERE += [(game, value) for game in GAMES for value in NEVER_LEGAL if game != EVERYWHERE[0][0]]


@pytest.mark.parametrize(("game", "value"), EVERYWHERE, ids=lambda each: type(each).__name__)
def test_J1_a_strange_answer_is_illegal_and_ends_the_match(game: str, value: object) -> None:
    for kind in GAMES[game].vocabulary.questions:
        seats = [SpoiltAt(game, kind, value) for _ in range(GAMES[game].seats)]
        result = play(game, seats, seed=1)

        ended, seat = result.termination, result.offender
        assert seat is not None
        assert (ended.kind, ended.seat) == ("illegal", seat)
        assert ended.text.startswith(f"seat {seat + 1} answered ")
        assert f" to {kind}; legal: " in ended.text
        assert ended.text.isprintable()
        assert result.winner == (1 - seat if len(seats) == 2 else None)
        assert replay(Record.from_json(result.record.to_json())).scores == result.scores


HOUSE = {"gin_rummy": "simple", "blackjack": "simple"}  # knocks soon; is the only kind


class SpoiltAt:
    """Plays as a house bot does until a question of one kind, then gives an answer that is none."""

    def __init__(self, game: str, kind: str, value: object) -> None:
        self.kind = kind
        self.value = value
        self.bot = find(game, HOUSE.get(game, "random"))()
        self.bot.seed(1)

    def decide(self, question: Any) -> object:
        return self.value if question.kind == self.kind else self.bot.decide(question)

    def hear(self, news: Any) -> None:
        self.bot.hear(news)

    def reset(self) -> None:
        self.bot.reset()


# ---- J2: strategies that fail


def failing(where: str, error: Callable[[], BaseException]) -> ScriptedStrategy:
    """A strategy that raises in one of its methods."""

    def fail(*_: object) -> None:
        raise error()

    strategy = ScriptedStrategy()
    setattr(strategy, where, fail)
    return strategy


class BrokenError(Exception):
    """Cannot say what went wrong."""

    def __str__(self) -> str:
        raise RuntimeError


class LeavingError(Exception):
    """Leaves when it is asked what went wrong."""

    def __str__(self) -> str:
        raise SystemExit(0)


WHERE = pytest.mark.parametrize("where", ["reset", "hear", "decide"])


LEAVES = [SystemExit, RecursionError, MemoryError, StopIteration, GeneratorExit]
LEAVES += [asyncio.CancelledError, BaseException, KeyError]


@WHERE
@pytest.mark.parametrize("error", LEAVES)
def test_J2_whatever_is_raised_is_a_crash_of_that_seat(
    where: str, error: type[BaseException]
) -> None:
    result = against(failing(where, lambda: error("ace")))

    assert (result.termination.kind, result.termination.seat) == (Ending.CRASH, 1)
    said = "'ace'" if error is KeyError else "ace"
    assert result.termination.text.startswith(f"seat 2 raised {error.__name__}: {said} at ")
    assert "test_in_process.py:" in result.termination.text
    assert arena.replay(result.record) == result


@WHERE
def test_ctrl_c_is_not_the_strategys_fault(where: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        against(failing(where, KeyboardInterrupt))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenError(), "BrokenError"),
        (LeavingError(), "LeavingError"),
        (ValueError(), "ValueError"),
        (ValueError("a\x1b[2J\nb\u202e\ud800"), "ValueError: a�[2J�b��"),
        (ValueError("x" * 10**6), "ValueError: " + "x" * 187 + "…"),
    ],
    ids=["broken", "leaving", "silent", "controls", "long"],
)
def test_J2_whatever_an_exception_says_fits_a_line_and_a_record(
    error: Exception, said: str
) -> None:
    result = against(failing("decide", lambda: error))

    assert result.termination.text.startswith(f"seat 2 raised {said} at ")
    assert result.termination.text.isprintable()
    assert result.record.to_json()


def test_J2_where_it_was_raised_fits_a_line_and_a_record() -> None:
    def raising(question: object) -> None:
        exec(compile("1 / 0", "a\x1b[2J\n\u202e.py", "exec"))

    result = against(Answering(raising))

    assert result.termination.text.endswith("by zero at a�[2J" + 2 * "�" + ".py:1")
    assert result.record.to_json()


@WHERE
def test_J2_a_method_that_cannot_be_had_is_a_crash(where: str) -> None:
    def raising(self: object) -> None:
        raise ValueError("no such method")

    elusive = against(type("Elusive", (ScriptedStrategy,), {where: property(raising)})())

    assert (elusive.termination.kind, elusive.termination.seat) == ("crash", 1)
    assert "ValueError: no such method at " in elusive.termination.text
    assert against(object()).termination.text == (
        "seat 2 raised AttributeError: 'object' object has no attribute 'reset'"
    )


def test_J2_the_first_to_fail_is_blamed() -> None:
    seats = [failing("hear", ValueError), failing("hear", KeyError)]
    result = play("akq", seats, settings={"hands": 2}, decks=["AK", "AK"])

    assert (result.termination.kind, result.termination.seat) == ("crash", 0)


# ---- Meddling


@pytest.mark.parametrize(
    "meddle",
    [
        lambda question: setattr(question, "legal", ("raise",)),
        lambda question: setattr(question, "card", "A"),
        lambda question: delattr(question, "legal"),
        lambda question: question.legal.append("raise"),
        lambda question: question.legal.__setitem__(0, "raise"),
        lambda question: setattr(question, "check", lambda value: value),
        lambda question: setattr(question, "extra", 1),
    ],
    ids=range(7),
)
def test_J1_a_question_cannot_be_changed_by_who_is_asked(meddle: Callable[[Any], object]) -> None:
    result = against(Answering(meddle))

    assert (result.termination.kind, result.termination.seat) == ("crash", 1)


def test_what_a_strategy_keeps_does_not_change_later() -> None:
    kept: list[tuple[object, str]] = []

    class KeepsEverything(ScriptedStrategy):
        def decide(self, question: Any) -> object:
            self.hear(question)
            return super().decide(question)

        def hear(self, news: Any) -> None:
            kept.append((news, repr(news)))

    against(KeepsEverything(), hands=20)

    assert len(kept) > 20
    assert all(repr(thing) == shown for thing, shown in kept)
