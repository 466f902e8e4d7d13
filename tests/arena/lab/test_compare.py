"""What two bots play in a part, what counts of it, and when they are told apart, level or alike."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

import arena
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.games.replay import replay
from arena.games.rules import Game
from arena.games.statistics import beta_sequence
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.comparison import Comparison, Standpoint
from arena.lab.in_process import Entrant, entrant, play_parts
from arena.lab.matches import MatchSpec, PlayedMatch
from arena.records.luck import luck_of
from arena.sandbox import worker_pool
from protocol.messages import Ending
from protocol.strategy import find
from tests.support.answering import Answering
from tests.support.toy_games import toy_game

AKQ, GIN, TCP, FOUR = (
    GAMES[name] for name in ("ace_king_queen", "gin_rummy", "three_card_poker", "high_low")
)
SHORT = {
    "ace_king_queen": {"hands": 100},
    "gin_rummy": {"target": 10},
    "three_card_poker": {"rounds": 20},
    "high_low": {"max_shuffles": 2},
    "blackjack": {"hands": 20},
}


def matchup(game: Game, seed: int = 1) -> Matchup:
    return Matchup(game, game.vocabulary.read_settings(SHORT[game.name]), seed)


def parts_of(
    game: Game, entrants: list[Entrant], count: int, seed: int = 1, jobs: int = 1
) -> list[MatchupPart]:
    """The first parts of a comparison."""
    found: list[MatchupPart] = []

    def on_part(part: MatchupPart) -> bool:
        found.append(part)
        return len(found) == count

    play_parts(matchup(game, seed), entrants, range(100), on_part, units=100, jobs=jobs)
    return found


def parts(game: Game, bots: tuple[str, str], count: int, **options: Any) -> list[MatchupPart]:
    return parts_of(game, [entrant(game, bot) for bot in bots], count, **options)


@pytest.mark.parametrize(("seats", "seatings"), [(1, 2), (2, 2), (3, 6), (6, 20)])
def test_each_bot_has_every_seat_equally_often(seats: int, seatings: int) -> None:
    game = toy_game(seats)
    found = Matchup(game, game.vocabulary.read_settings(None)).seatings

    assert len(set(found)) == len(found) == seatings
    for seat in range(seats):
        assert Counter(each[seat] for each in found) == {0: seatings // 2, 1: seatings // 2}


def test_at_a_table_of_four_each_has_two_seats_in_all_ways() -> None:
    found = matchup(FOUR).seatings

    assert sorted(found) == sorted(set(itertools.permutations((0, 0, 1, 1))))


def test_the_same_cards_are_dealt_in_both_seatings() -> None:
    for game, bots in (AKQ, ("nash", "random")), (FOUR, ("bold", "timid")):
        [part] = parts(game, bots, 1)
        assert len({match.record.seed for match in part.matches}) == 1
        assert {match.seats for match in part.matches} == set(matchup(game).seatings)


def without_luck(record: Record) -> list[float]:
    """What a round brought each seat in the mean, without luck."""
    luck = luck_of(record)
    return [
        (gain - lucky) / len(luck.rounds) for gain, lucky in zip(luck.gains, luck.luck, strict=True)
    ]


def test_against_the_dealer_both_have_the_same_cards() -> None:
    [part] = parts(TCP, ("q64", "always"), 1)

    assert [match.seats for match in part.matches] == [(0,), (1,)]
    assert len({match.record.seed for match in part.matches}) == 1
    first, second = (without_luck(match.record)[0] for match in part.matches)
    assert part.values == pytest.approx((first - second,))
    assert part.units == 1


def test_games_that_are_counted_have_fresh_cards() -> None:
    found = parts(GIN, ("simple", "random"), 3)
    seeds = {match.record.seed for part in found for match in part.matches}

    assert len(seeds) == 6
    for part in found:
        shares = [replay(match.record).scores[match.seats.index(0)] for match in part.matches]
        assert part.values == tuple(shares)


def test_a_gain_is_that_of_both_seatings_block_by_block() -> None:
    [part] = parts(AKQ, ("honest", "bluffer"), 1)

    assert len(part.values) == 2  # blocks of 50 of 100 hands
    total = sum(replay(match.record).scores[match.seats.index(0)] for match in part.matches)
    assert sum(part.values) / 2 == pytest.approx(total / 200)
    assert part.units == 200


def test_at_a_table_of_four_the_mean_of_its_seats_counts() -> None:
    [part] = parts(FOUR, ("bold", "timid"), 1)
    gaps = [
        sum(gain * (1 if sitter == 0 else -1) for sitter, gain in zip(seats, gains, strict=True))
        for match in part.matches
        for seats, gains in [(match.seats, without_luck(match.record))]
    ]

    assert list(part.values) == pytest.approx([sum(gaps) / 2 / 6])
    assert part.units == 6


@pytest.mark.parametrize(
    ("game", "bot"), [(AKQ, "honest"), (TCP, "q64"), (GAMES["blackjack"], "simple")]
)
def test_a_bot_that_draws_no_lots_never_differs_from_itself(game: Game, bot: str) -> None:
    assert {value for part in parts(game, (bot, bot), 5) for value in part.values} == {0}


@pytest.mark.parametrize("game", [AKQ, GIN, FOUR])
def test_any_number_of_jobs_gives_the_same(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)
    bots = {"ace_king_queen": ("nash", "random"), "gin_rummy": ("random", "simple")}
    both = bots.get(game.name, ("random", "bold"))
    one, two = (parts(game, both, 8, jobs=jobs) for jobs in (1, 2))

    assert one == two


def test_another_seed_deals_other_cards() -> None:
    both = (parts(AKQ, ("nash", "random"), 1, seed=seed) for seed in (1, 2))

    assert len({part.matches[0].record.seed for [part] in both}) == 2


def test_J3_an_offence_ends_a_part_and_names_the_bot() -> None:
    rogue = Entrant("rogue", lambda seed: Answering(lambda question: "all in"))

    [part] = parts_of(AKQ, [entrant(AKQ, "nash"), rogue], 5)
    assert part.offence is not None
    assert (part.offence.bot, part.offence.kind) == (1, Ending.ILLEGAL)
    assert part.values == ()


# ---- Without luck


def _lucky(refuses: Callable[[Any], str | None] = lambda settings: None) -> Matchup:
    assert TCP.luck is not None
    game = msgspec.structs.replace(TCP, luck=msgspec.structs.replace(TCP.luck, refuses=refuses))
    return Matchup(game, game.vocabulary.read_settings({"rounds": 20}))


def test_alone_the_gain_is_that_of_a_round_without_luck() -> None:
    lucky = _lucky()
    played = [
        PlayedMatch(
            MatchSpec(bots=(bot,), numbers=(0,), cards=b"", instances=0),
            arena.play("tcp", [find("three_card_poker", name)()], settings={"rounds": 20}, seed=1),
            [],
        )
        for bot, name in enumerate(("q64", "always"))
    ]
    part = lucky.summed(0, played)

    first, second = (without_luck(each.result.record)[0] for each in played)
    assert lucky.no_luck is None
    assert lucky.gain_of == ("ante", "round")
    assert list(part.values) == pytest.approx([first - second])


def test_luck_that_cannot_be_measured_is_not_taken_out() -> None:
    refused = _lucky(lambda settings: "the cards are riffled")

    assert refused.no_luck == "the cards are riffled"
    assert refused.gain_of == ("chip", "match")


def compared(game: Game, *values: float, level: float = 0.02) -> Comparison:
    both = "ann", "ben"
    comparison = Comparison(matchup(game), both, None, level=100 * level, most=None)
    comparison.add_part(MatchupPart(values, len(values), (0, 0), ()))
    return comparison


games, gains = partial(compared, GIN), partial(compared, TCP)


def test_nothing_is_known_before_the_first_value() -> None:
    for comparison in games(), gains():
        assert comparison.interval is None
        assert comparison.standpoint is Standpoint.OPEN
        assert comparison.more_needed() is None


def test_who_wins_all_games_is_better_as_soon_as_a_half_is_refused() -> None:
    comparison = games()
    while comparison.standpoint is Standpoint.OPEN:
        comparison.values.add(1.0)

    count = comparison.values.count
    assert comparison.standpoint is Standpoint.FIRST
    assert 5 <= count <= 15
    assert beta_sequence(count - 1, count - 1).low <= 0.5 < beta_sequence(count, count).low


EVEN = [1.0, 0.0] * 200
GAINS = [10.0, 11.0] * 10


@pytest.mark.parametrize(
    ("comparison", "standpoint"),
    [
        pytest.param(games(*[0.0] * 15), Standpoint.SECOND, id="the second may be better"),
        (gains(*[-1.0, -2.0] * 50), Standpoint.SECOND),
        pytest.param(games(*[0.5] * 100), Standpoint.OPEN, id="draws tell nobody apart"),
        pytest.param(games(*EVEN, level=0.1), Standpoint.LEVEL, id="level within the level"),
        (games(*EVEN, level=0.02), Standpoint.OPEN),
        (gains(*[1.0, -1.0] * 200, level=0.2), Standpoint.LEVEL),
        pytest.param(gains(*GAINS[:19]), Standpoint.OPEN, id="open before the 20th gain"),
        (gains(*GAINS), Standpoint.FIRST),
        pytest.param(gains(*[0.0] * 100), Standpoint.ALIKE, id="alike who never differs"),
        (gains(*[0.0] * 99), Standpoint.OPEN),
        (gains(*[0.0] * 99, 0.001), Standpoint.LEVEL),
    ],
)
def test_values_tell_two_bots_apart_or_level_or_alike(
    comparison: Comparison, standpoint: Standpoint
) -> None:
    assert comparison.standpoint is standpoint


def test_the_same_gain_every_time_is_a_gain_and_has_a_width() -> None:
    interval = gains(*[3.0] * 100).interval

    assert interval is not None
    assert 0 < interval.low < 3 < interval.high


def test_before_the_20th_gain_it_says_how_many_more_it_takes() -> None:
    assert gains(10.0, 11.0).more_needed() == 18
    assert gains(0.0, 0.0).more_needed() is None


@pytest.mark.parametrize("share", [0.55, 0.5])
def test_what_more_it_takes_is_enough_and_not_too_much(share: float) -> None:
    draw = random.Random(1)
    comparison = games(*[1.0, 0.0] * 10, level=0.05)
    for _ in range(30):
        comparison.values.add(float(draw.random() < share))
    more, count = comparison.more_needed(), comparison.values.count
    mean = comparison.values.mean
    assert more is not None
    assert mean is not None

    def is_settled(games_in_all: int) -> bool:
        found = beta_sequence(mean * games_in_all, games_in_all)
        return not found.low <= 0.5 <= found.high or max(found.high - 0.5, 0.5 - found.low) <= 0.05

    assert is_settled(count + more)
    assert not is_settled(count + more - 1)
