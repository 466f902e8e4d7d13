"""Who sits where, and the sums and the intervals of a series.

That they are the same wherever bots play is in test_launched, the rest in test_crosstable.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest

from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game
from arena.engine.statistics import Sample
from arena.games import GAMES
from arena.lab.intervals import ahead, is_ahead_for_sure, of_mean, sampled_unit
from arena.lab.series import Offence, Series, Sitting, seatings, unit, units_per_match
from arena.strength.interval import student_quantile, wilson
from protocol.messages import Ending, Limits, Termination, Verdict
from protocol.strategy import find
from tests.support.not_none import not_none

AKQ = GAMES["ace_king_queen"]
SETTINGS = AKQ.vocabulary.read_settings({"hands": 10})


def played(game: Game, seed: bytes = bytes(32)) -> MatchState:
    """A match of two that always do the same."""
    match = MatchState(game, SETTINGS, seed=seed)
    one: Any = find("ace_king_queen", "honest")()
    two: Any = find("ace_king_queen", "honest")()
    drive(match, [one, two])
    return match


@pytest.mark.parametrize(
    ("seats", "first"),
    [
        (1, [(0,), (0,)]),
        (2, [(0, 1), (1, 0), (0, 1), (1, 0)]),
        (30, [tuple(range(30))]),  # without listing them all
    ],
)
def test_K1_the_first_seatings(seats: int, first: list[tuple[int, ...]]) -> None:
    assert list(islice(seatings(seats), len(first))) == first


def test_K1_four_matches_put_everyone_in_every_seat() -> None:
    first = list(islice(seatings(4), 24))

    assert {*first[:4]} == {(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)}
    assert len(set(first)) == 24


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
    assert (one.total, other.total) == (result.units.sums if result.units else result.scores)
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
    of: dict[str, Any] = {"match": "m", "game": "ace_king_queen", "bot": "ann", "seat": 1}
    told: dict[str, Any] = {"text": "what it did", "advice": "what to do", "stderr": stderr}
    return Verdict(kind=kind, bank_ms=0, limits=Limits(), **of, **told)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [("Error: no bet\n\tat Bot.main\n", "; it said: Error: no bet"), ("\n", ""), (None, "")],
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


AKQ, GIN, TCP = (GAMES[name] for name in ("ace_king_queen", "gin_rummy", "three_card_poker"))
FOUR = GAMES["high_low"]


def sample(values: list[float]) -> Sample:
    made = Sample()
    for value in values:
        made.add(value)
    return made


def sitting(*units: list[float], block: int = 1) -> Sitting:
    """What places got in unit after unit."""
    blocks = [
        [sum(scores[at : at + block]) for at in range(0, len(scores) - block + 1, block)]
        for scores in units
    ]
    gaps = [
        sample([a - b for a, b in zip(first, second, strict=True)])
        for at, first in enumerate(blocks)
        for second in blocks[at + 1 :]
    ]
    return Sitting(
        bots=tuple(range(len(units))),
        matches=1,
        scores=tuple(int(sum(scores)) for scores in units),
        points=(0,) * len(units),
        won=(0,) * len(units),
        samples=tuple(map(sample, units)),
        offence=None,
        blocks=tuple(map(sample, blocks)),
        gaps=tuple(gaps),
        blocked=block * len(blocks[0]),
    )


def test_a_share_of_games_has_wilsons() -> None:
    played = sitting([1.0] * 13 + [0.0] * 7, [0.0] * 13 + [1.0] * 7)

    found = not_none(of_mean(GIN, [(played, 0)]))
    assert (found.low, found.high) == pytest.approx((wilson(0.65, 20).low, wilson(0.65, 20).high))


def test_chips_are_sampled_in_blocks_for_bots_that_adapt() -> None:
    scores = [1.0, 1.0, -1.0, -1.0, 1.0, 2.0, 1.0, 2.0]
    found = not_none(of_mean(AKQ, [(sitting(scores, [-score for score in scores], block=2), 0)]))

    # The means of the blocks are 1, −1, 1.5, 1.5.
    assert (found.low + found.high) / 2 == pytest.approx(0.75)
    half = student_quantile(3) * (1.416666667 / 4) ** 0.5
    assert (found.high - found.low) / 2 == pytest.approx(half)


def test_how_opponents_differ_is_not_chance() -> None:
    good, bad = [10.0, 11.0] * 10, [-10.0, -11.0] * 10
    parts = [(sitting(scores, [-score for score in scores]), 0) for scores in (good, bad)]
    found = not_none(of_mean(FOUR, parts))

    assert found.high - found.low < 0.4


def test_19_matches_of_a_bankroll_are_too_few() -> None:
    scores = [float(number) for number in range(20)]

    assert of_mean(TCP, [(sitting(scores[:19]), 0)]) is None
    assert of_mean(TCP, [(sitting(scores), 0)]) is not None


@pytest.mark.parametrize("scores", [[], [3.0], [3.0, 3.0]])
def test_values_that_do_not_spread_have_no_interval(scores: list[float]) -> None:
    assert of_mean(FOUR, [(sitting(scores, scores), 0)]) is None
    assert ahead(FOUR, sitting(scores, scores), 0, 1) is None


def test_who_won_15_of_20_games_is_better_and_who_won_14_may_not_be() -> None:
    for won, sure in (15, True), (14, False):
        first = [1.0] * won + [0.0] * (20 - won)
        played = sitting(first, [1 - score for score in first])

        assert is_ahead_for_sure(GIN, played, 0) is sure
        assert not is_ahead_for_sure(GIN, played, 1)


def test_behind_is_the_negative_of_ahead() -> None:
    one = sitting([1.0, 2.0, 4.0], [0.0, 0.0, 1.0])
    first, second = ahead(AKQ, one, 0, 1), ahead(AKQ, one, 1, 0)

    assert first is not None
    assert second is not None
    assert (first.low, first.high) == pytest.approx((-second.high, -second.low))


def test_among_four_equal_bots_a_leader_is_rarely_sure() -> None:
    draw = random.Random(1)
    wrong = 0
    for _ in range(400):
        units = [[draw.gauss(0, 1) for _ in range(24)] for _ in range(4)]
        played = sitting(*units)
        leader = max(range(4), key=played.scores.__getitem__)
        wrong += is_ahead_for_sure(FOUR, played, leader)

    assert wrong <= 20  # of 400, at most 1 in 20


@pytest.mark.parametrize(
    ("game", "per_match", "name"),
    [(AKQ, 1000, "block of 50 hands"), (AKQ, 49, "match"), (GIN, 1, "game"), (TCP, 1, "match")],
)
def test_what_one_value_is(game: object, per_match: int, name: str) -> None:
    assert sampled_unit(game, per_match) == name  # type: ignore[arg-type]
