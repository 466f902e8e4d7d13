"""Who sits where, and the sums of a series.

That they are the same wherever bots play is in test_launched, the rest in test_crosstable.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game
from arena.games import GAMES
from arena.lab.series import Offence, Series, seatings, unit, units_per_match
from protocol.messages import Ending, Limits, Termination, Verdict
from protocol.strategy import find

AKQ = GAMES["ace_king_queen"]
SETTINGS = AKQ.vocabulary.read_settings({"hands": 10})


def played(game: Game, seed: bytes = bytes(32)) -> MatchState:
    """A match of two that always do the same."""
    match = MatchState(game, SETTINGS, seed=seed)
    one: Any = find("ace_king_queen", "honest")()
    two: Any = find("ace_king_queen", "honest")()
    drive(match, [one, two])
    return match


def test_K1_two_seats_alternate() -> None:
    assert list(islice(seatings(2), 4)) == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_K1_four_matches_put_everyone_in_every_seat() -> None:
    first = list(islice(seatings(4), 4))

    assert Counter(zip(*first, strict=True)) == Counter(
        {(0, 1, 2, 3): 1, (1, 2, 3, 0): 1, (2, 3, 0, 1): 1, (3, 0, 1, 2): 1}
    )


def test_K1_twenty_four_matches_are_all_orders() -> None:
    assert len(set(islice(seatings(4), 24))) == 24


def test_one_seat_is_always_the_same() -> None:
    assert list(islice(seatings(1), 2)) == [(0,), (0,)]


def test_the_seats_of_a_large_table_are_found_without_listing_them_all() -> None:
    assert next(seatings(30)) == tuple(range(30))


def test_K1_later_matches_of_a_table_go_on_with_the_seatings() -> None:
    table = tuple(range(6))
    parts = [Series(AKQ, table, range(n, n + 24), lambda: None) for n in (0, 24)]

    assert [*parts[0], *parts[1]] == list(islice(seatings(6), 48))
    assert len(set(islice(seatings(6), 48))) == 48


@pytest.mark.parametrize("game", GAMES)
def test_the_unit_is_what_the_game_samples_or_a_match(game: str) -> None:
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(None)
    expected = ("match", 1)
    if rules.unit is not None:
        expected = rules.unit.name, getattr(settings, rules.unit.setting)

    assert (unit(rules), units_per_match(rules, settings)) == expected


def series(ticks: list[None] | None = None) -> Series:
    """A series of one match, which has begun."""
    begun = Series(AKQ, (0, 1), range(1), lambda: None if ticks is None else ticks.append(None))
    next(iter(begun))
    return begun


def test_J5_a_match_that_is_played_again_counts_once() -> None:
    twice, once = series(), series()
    played(twice.begin(), seed=bytes(32))
    twice.add(played(twice.begin(), seed=b"again").result())
    once.add(played(once.begin(), seed=b"again").result())

    assert twice.sitting().matches == 1
    assert twice.sitting().scores == once.sitting().scores
    assert [(s.count, s.total) for s in twice.sitting().samples] == [
        (s.count, s.total) for s in once.sitting().samples
    ]


@pytest.mark.parametrize(("hands", "blocks", "blocked"), [(130, 2, 100), (50, 1, 50), (20, 1, 20)])
def test_a_match_is_sampled_in_whole_blocks_or_as_one(
    hands: int, blocks: int, blocked: int
) -> None:
    counting = series()
    settings = AKQ.vocabulary.read_settings({"hands": hands})
    match = MatchState(counting.begin(), settings, seed=bytes(32))
    drive(match, [find("ace_king_queen", name)() for name in ("honest", "bluffer")])
    result = match.result()
    counting.add(result)
    [one, other], [gap] = counting.sitting().blocks, counting.sitting().gaps

    assert (one.count, counting.sitting().blocked) == (blocks, blocked)
    if result.units is not None:
        assert (one.total, other.total) == result.units.sums
    else:
        assert (one.total, other.total) == result.scores
    assert gap.total == one.total - other.total


def test_what_is_told_again_to_a_bot_that_comes_back_counts_once() -> None:
    ticks: list[None] = []
    counting = series(ticks)
    match = played(counting.begin())
    again = list(match.history_for(0))
    counting.add(match.result())

    assert again
    assert len(ticks) == 10
    assert [s.count for s in counting.sitting().samples] == [10, 10]


def test_the_rules_are_none_the_worse_for_being_heard() -> None:
    match, alone = played(series().begin()), played(AKQ)

    assert match.result().record.to_json() == alone.result().record.to_json()


def verdict(kind: Ending, stderr: str | None) -> Verdict:
    return Verdict(
        kind=kind,
        match="m",
        game="ace_king_queen",
        bot="ann",
        seat=1,
        text="what it did",
        advice="what to do",
        stderr=stderr,
        bank_ms=0,
        limits=Limits(),
    )


PYTHON = """Traceback (most recent call last):
  File "bot.py", line 3, in <module>
    x = 1 / 0
ZeroDivisionError: division by zero
"""
NODE = """/tmp/bot.js:5
  x.y.z
TypeError: Cannot read properties of undefined (reading 'z')
    at Object.<anonymous> (/tmp/bot.js:5:7)

Node.js v20.20.2
"""
JAVA = """thinking
Exception in thread "main" java.lang.ArithmeticException: / by zero
\tat MyBot.main(MyBot.java:3)
"""


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (PYTHON, "; it said: ZeroDivisionError: division by zero"),
        (NODE, "; it said: TypeError: Cannot read properties of undefined (reading 'z')"),
        (JAVA, '; it said: Exception in thread "main" java.lang.ArithmeticException: / by zero'),
        ("one\nSegmentation fault\n", "; it said: Segmentation fault"),
        ("\x1b[2Jred", "; it said: \N{REPLACEMENT CHARACTER}[2Jred"),
        ("\n", ""),
        (None, ""),
    ],
)
def test_a_crash_is_told_with_the_line_that_says_what_it_was(stderr: str | None, said: str) -> None:
    ended = Termination(Ending.CRASH, 1, "crashed: exit status 1")
    offence = Offence.of(ended, verdict(Ending.CRASH, stderr), bot=4, place=1, match=3)

    assert offence.text == "crashed: exit status 1" + said
    assert offence.stderr == (stderr or "").strip()
    assert (offence.advice, offence.bot, offence.match) == ("", 4, 3)


def test_any_other_offence_is_told_with_its_advice() -> None:
    ended = Termination(Ending.ILLEGAL, 1, "answered 4")
    offence = Offence.of(ended, verdict(Ending.ILLEGAL, "thinking\n"))

    assert (offence.text, offence.advice) == ("answered 4", "what to do")
    assert offence.stderr == "thinking"


def test_without_a_verdict_there_is_only_what_happened() -> None:
    ended = Termination(Ending.ABSENT, 0, "did not come")

    assert Offence.of(ended, None) == Offence(0, 0, Ending.ABSENT, "did not come", 1)
