"""What a table plays, part by part, and the sums and the intervals of its sittings.

That they are the same wherever bots play is in test_launched.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from math import factorial
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState, drive
from arena.games.rules import Game
from arena.games.statistics import student_quantile, wilson
from arena.lab import sittings
from arena.lab.in_process import Entrant, play_parts
from arena.lab.intervals import ahead, is_ahead_for_sure, of_mean, sampled_unit
from arena.lab.matches import MatchSpec, Offence, PlayedMatch, SampledGame, unit, units_per_match
from arena.lab.sittings import MATCHES_AT_ONCE, Sitting, TableMatches, TablePart, seatings
from protocol.messages import Ending, Limits, Termination, Verdict
from protocol.strategy import find
from protocol.vocabulary import News
from tests.support.answering import Answering
from tests.support.entrants import Made, house
from tests.support.not_none import not_none

AKQ, GIN, TCP = (GAMES[name] for name in ("ace_king_queen", "gin_rummy", "three_card_poker"))
HIGH_LOW = GAMES["high_low"]


@pytest.fixture
def made() -> Made:
    return Made()


def sit(
    game: Game,
    entrants: list[Entrant],
    matches: int = 1,
    report: Callable[[int], None] = lambda units: None,
    *,
    duplicate: bool = False,
    **settings: object,
) -> Sitting:
    """The sitting of these at one table."""
    experiment = TableMatches(
        game, game.vocabulary.read_settings(settings), duplicate=duplicate, keeps_records=True
    )
    parts = experiment.parts({tuple(range(len(entrants))): 7}, matches)
    played: list[Sitting] = []
    play_parts(experiment, entrants, parts, played.append, units=matches, report=report)
    first, *later = played
    for sitting in later:
        first = first.followed_by(sitting)
    return first


# ---- Who sits where


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


def test_K1_a_part_has_all_seatings_of_up_to_four() -> None:
    assert all(MATCHES_AT_ONCE % factorial(seats) == 0 for seats in range(1, 5))


def test_K1_later_matches_of_a_table_go_on_with_the_seatings() -> None:
    table = tuple(range(6))
    experiment = TableMatches(AKQ, AKQ.vocabulary.read_settings({}))
    specs = [spec for part in experiment.parts({table: 1}, 48) for spec in experiment.specs(part)]

    assert [spec.numbers for spec in specs] == list(islice(seatings(6), 48))
    assert len({spec.numbers for spec in specs}) == 48


def test_the_same_cards_are_dealt_in_all_seats_to_new_instances(made: Made) -> None:
    four = [made.entrant(name) for name in "abcd"]
    sitting = sit(HIGH_LOW, four, matches=8, duplicate=True, max_shuffles=1)

    seeds = [match.record.seed for match in sitting.records]
    assert [seeds.index(seed) for seed in seeds] == [0] * 4 + [4] * 4
    assert [bot.resets for bot in made.strategies["a"]] == [1, 1, 1, 2, 1, 1, 1]
    assert sitting.blocks[0].count == 2
    assert sitting.blocked == 8


# ---- Units


@pytest.mark.parametrize("game", GAMES)
def test_the_unit_is_what_the_game_samples_or_a_match(game: str) -> None:
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(None)
    expected = ("match", 1)
    if rules.unit is not None:
        expected = rules.unit.name, getattr(settings, rules.unit.setting)

    assert (unit(rules), units_per_match(rules, settings)) == expected


@pytest.mark.parametrize(("hands", "blocks", "blocked"), [(130, 2, 100), (50, 1, 50), (20, 1, 20)])
def test_a_match_is_sampled_in_whole_blocks_or_as_one(
    hands: int, blocks: int, blocked: int
) -> None:
    sitting = sit(AKQ, house(AKQ, "honest", "bluffer"), hands=hands)
    [one, other], [gap] = sitting.blocks, sitting.gaps

    assert (one.count, sitting.blocked) == (blocks, blocked)
    if hands != 130:
        assert (one.total, other.total) == sitting.scores
    assert gap.total == one.total - other.total


def test_what_is_told_again_to_a_bot_that_comes_back_counts_once() -> None:
    ticks: list[None] = []
    sampled = SampledGame(AKQ, lambda: ticks.append(None))
    settings = AKQ.vocabulary.read_settings({"hands": 10})
    match, alone = (MatchState(game, settings, seed=bytes(32)) for game in (sampled.game, AKQ))
    for each in match, alone:
        drive(each, [find("ace_king_queen", "honest")() for _ in range(2)])
    again = list(match.history_for(0))

    assert again
    assert len(ticks) == len(sampled.payoffs) == 10
    assert tuple(map(sum, zip(*sampled.payoffs, strict=True))) == match.scores
    assert match.result().record.to_json() == alone.result().record.to_json(), "nobody notices"


class FailsAtNews(Answering):
    """Fails at some news of a match, when that changes nothing any more."""

    def __init__(self, fails: Callable[[FailsAtNews], bool]) -> None:
        super().__init__()
        self.fails = fails

    def hear(self, news: News) -> None:
        super().hear(news)
        if self.fails(self):
            raise ValueError


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(
    ("game", "settings", "fails", "units"),
    [
        pytest.param(AKQ, {"hands": 5}, lambda bot: len(bot.heard) == 5, 5, id="the last news"),
        pytest.param(
            *(GIN, {"max_rounds": 1, "max_turns": 1}),
            *(lambda bot: bot.heard[-1].kind == "round_over", 1),
            id="just before a game is over",
        ),
    ],
)
def test_J2_who_fails_at_the_end_skews_no_sample(
    game: Game, settings: dict[str, Any], fails: Callable[[Any], bool], units: int, seat: int
) -> None:
    both = [Entrant("stays", lambda seed: Answering())]
    both.insert(seat, Entrant("leaves", lambda seed: FailsAtNews(fails)))
    sitting = sit(game, both, **settings)

    assert sitting.offence is None
    assert [sample.count for sample in sitting.samples] == [units, units]
    assert tuple(sample.total for sample in sitting.samples) == sitting.scores


# ---- Sums


def test_A9_one_instance_plays_all_matches_and_is_reset_before_each(made: Made) -> None:
    hands: list[int] = []
    sit(AKQ, [made.entrant("a"), made.entrant("b")], matches=3, report=hands.append, hands=20)

    [a], [b] = made.strategies["a"], made.strategies["b"]
    assert a.resets == 3
    assert sum(hands) == 60, "every hand is reported"
    assert len(a.heard) == 60
    assert a.heard == b.heard, "listening changes nothing for the bots"
    cards = [news.cards for news in a.heard]
    assert cards[:20] != cards[20:40], "matches have different cards"


def test_scores_follow_the_bots_when_seats_rotate(made: Made) -> None:
    # "checks" checks and folds: it can only win a check, "bets" bets and calls.
    both = [made.entrant("bets"), made.entrant("checks", -1)]
    sitting = sit(AKQ, both, matches=10, hands=100)

    assert sitting.scores[0] > 100
    assert sum(sitting.scores) == 0
    assert (sitting.won, sitting.matches, sitting.leaders) == ((10, 0), 10, (0,))
    assert [sample.count for sample in sitting.samples] == [1000, 1000]
    assert tuple(sample.total for sample in sitting.samples) == sitting.scores


@pytest.mark.parametrize(
    ("game", "bots", "settings", "units"),
    [
        pytest.param(GIN, ("random", "simple"), {}, 4, id="G16 gin counts games"),
        (HIGH_LOW, ("random", "timid", "bold", "counter"), {"max_shuffles": 2}, 4),
    ],
)
def test_what_is_won_is_a_unit_or_a_match(
    game: Game, bots: tuple[str, ...], settings: dict[str, Any], units: int
) -> None:
    sitting = sit(game, house(game, *bots), matches=4, **settings)

    assert [sample.count for sample in sitting.samples] == [units] * game.seats
    assert tuple(sample.total for sample in sitting.samples) == sitting.scores
    assert sum(sitting.won) <= 4
    if game.is_count:
        assert sitting.won == sitting.scores


def test_who_has_won_and_scored_the_same_shares_first_place() -> None:
    drawn = Sitting((0, 1), 2, (0, 0), (0, 0), won=(1, 1), samples=(), offence=None)

    assert drawn.leaders == (0, 1)


def test_J3_an_offence_ends_the_sitting_and_the_other_wins(made: Made) -> None:
    both = [made.entrant("rogue", rogue=True), made.entrant("good")]
    sitting = sit(AKQ, both, matches=5, hands=2)

    assert sitting.offence is not None
    assert (sitting.offence.bot, sitting.offence.place) == (0, 0)
    assert sitting.offence.kind is Ending.ILLEGAL
    assert sitting.offence.match == sitting.matches == 1
    assert (sitting.leaders, sitting.won) == ((1,), (0, 1))


def test_H13_after_an_offence_the_other_three_go_on(made: Made) -> None:
    sitting = sit(HIGH_LOW, [made.entrant(name, rogue=name == "c") for name in "abcd"], matches=3)

    assert sitting.leaders == (0, 1, 3)
    assert sitting.won == (0, 0, 0, 0)
    assert sitting.samples[0].count == 0


# ---- Tables of more matches than are played at once


def test_A9_new_instances_play_every_part_of_a_long_table(made: Made) -> None:
    sit(AKQ, [made.entrant("a"), made.entrant("b")], matches=MATCHES_AT_ONCE + 2, hands=1)

    assert [bot.resets for bot in made.strategies["a"]] == [MATCHES_AT_ONCE, 2]
    assert len(set(made.seeds)) == 4


def test_parts_of_a_table_add_up_as_if_they_were_one(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [made.entrant("bets"), made.entrant("checks", -1)]
    parts = sit(AKQ, both, matches=MATCHES_AT_ONCE + 2, hands=10)
    monkeypatch.setattr(sittings, "MATCHES_AT_ONCE", 2 * MATCHES_AT_ONCE)
    whole = sit(AKQ, both, matches=MATCHES_AT_ONCE + 2, hands=10)

    assert (parts.matches, parts.scores, parts.won) == (26, whole.scores, whole.won)
    for part, sample in zip(parts.samples, whole.samples, strict=True):
        assert (part.count, part.total) == (sample.count, sample.total) == (260, sample.total)
        assert part.variance == pytest.approx(sample.variance)


def test_J3_an_offence_in_a_later_part_tells_its_match_and_ends_the_table(made: Made) -> None:
    def make(seed: str) -> Answering:
        made.seeds.append(seed)
        return Answering(lambda question: "cheat" if len(made.seeds) > 2 else question.legal[0])

    both = [made.entrant("a"), Entrant("late", make)]
    sitting = sit(AKQ, both, matches=3 * MATCHES_AT_ONCE, hands=1)

    assert sitting.offence is not None
    assert sitting.offence.match == sitting.matches == MATCHES_AT_ONCE + 1


# ---- Why a bot is out


def verdict(kind: Ending, stderr: str | None) -> Verdict:
    of: dict[str, Any] = {"match": "m", "game": "ace_king_queen", "bot": "ann", "seat": 1}
    told: dict[str, Any] = {"text": "what it did", "advice": "what to do", "stderr": stderr}
    return Verdict(kind=kind, bank_ms=0, limits=Limits(), **of, **told)


@pytest.mark.parametrize(
    ("kind", "stderr", "text", "advice"),
    [
        (Ending.CRASH, "Error: no bet\n\tat Bot.main\n", "ended; it said: Error: no bet", ""),
        (Ending.CRASH, "\n", "ended", ""),
        (Ending.CRASH, None, "ended", ""),
        (Ending.ILLEGAL, "thinking\n", "ended", "what to do"),
    ],
)
def test_an_offence_is_told_with_its_advice_or_the_line_that_says_what_it_was(
    kind: Ending, stderr: str | None, text: str, advice: str
) -> None:
    offence = Offence.of(Termination(kind, 1, "ended"), verdict(kind, stderr), 4, 1, 3)

    assert offence == Offence(4, 1, kind, text, 3, advice, (stderr or "").strip())


def test_without_a_verdict_there_is_only_what_happened() -> None:
    ended = Termination(Ending.ABSENT, 0, "did not come")

    assert Offence.of(ended, None) == Offence(0, 0, Ending.ABSENT, "did not come", 1)


# ---- Intervals


def sitting(game: Game, *units: list[float]) -> Sitting:
    """What places got in unit after unit of one match."""
    places = tuple(range(len(units)))
    no_record: Any = None
    result = MatchResult(
        tuple(int(sum(scores)) for scores in units),
        (0,) * len(units),
        Termination(Ending.COMPLETED),
        record=no_record,
    )
    spec = MatchSpec(bots=places, numbers=places, cards=b"", instances=0)
    match = PlayedMatch(spec, result, [*zip(*units, strict=True)])
    experiment = TableMatches(game, game.vocabulary.read_settings({}))
    return experiment.summed(TablePart(places, 0, range(1)), [match])


def test_a_share_of_games_has_wilsons() -> None:
    played = sitting(GIN, [1.0] * 13 + [0.0] * 7, [0.0] * 13 + [1.0] * 7)

    found = not_none(of_mean(GIN, [(played, 0)]))
    assert (found.low, found.high) == pytest.approx((wilson(0.65, 20).low, wilson(0.65, 20).high))


def test_chips_are_sampled_in_blocks_for_bots_that_adapt() -> None:
    scores = [1.0, 1.0, -1.0, -1.0, 1.0, 2.0, 1.0, 2.0]
    assert AKQ.unit is not None
    pairs = msgspec.structs.replace(AKQ, unit=msgspec.structs.replace(AKQ.unit, block=2))
    played = sitting(pairs, scores, [-score for score in scores])
    found = not_none(of_mean(AKQ, [(played, 0)]))

    # The means of the blocks are 1, −1, 1.5, 1.5.
    assert (found.low + found.high) / 2 == pytest.approx(0.75)
    half = student_quantile(3) * (1.416666667 / 4) ** 0.5
    assert (found.high - found.low) / 2 == pytest.approx(half)


def test_how_opponents_differ_is_not_chance() -> None:
    good, bad = [10.0, 11.0] * 10, [-10.0, -11.0] * 10
    parts = [(sitting(HIGH_LOW, scores, [-score for score in scores]), 0) for scores in (good, bad)]
    found = not_none(of_mean(HIGH_LOW, parts))

    assert found.high - found.low < 0.4


def test_19_matches_of_a_bankroll_are_too_few() -> None:
    scores = [float(number) for number in range(20)]

    assert of_mean(TCP, [(sitting(TCP, scores[:19]), 0)]) is None
    assert of_mean(TCP, [(sitting(TCP, scores), 0)]) is not None


@pytest.mark.parametrize("scores", [[], [3.0], [3.0, 3.0]])
def test_values_that_do_not_spread_have_no_interval(scores: list[float]) -> None:
    assert of_mean(HIGH_LOW, [(sitting(HIGH_LOW, scores, scores), 0)]) is None
    assert ahead(HIGH_LOW, sitting(HIGH_LOW, scores, scores), 0, 1) is None


def test_who_won_15_of_20_games_is_better_and_who_won_14_may_not_be() -> None:
    for won, sure in (15, True), (14, False):
        first = [1.0] * won + [0.0] * (20 - won)
        played = sitting(GIN, first, [1 - score for score in first])

        assert is_ahead_for_sure(GIN, played, 0) is sure
        assert not is_ahead_for_sure(GIN, played, 1)


def test_behind_is_the_negative_of_ahead() -> None:
    one = sitting(HIGH_LOW, [1.0, 2.0, 4.0], [0.0, 0.0, 1.0])
    first, second = (not_none(ahead(HIGH_LOW, one, at, 1 - at)) for at in (0, 1))

    assert (first.low, first.high) == pytest.approx((-second.high, -second.low))


def test_among_four_equal_bots_a_leader_is_rarely_sure() -> None:
    draw = random.Random(1)
    wrong = 0
    for _ in range(400):
        units = [[draw.gauss(0, 1) for _ in range(24)] for _ in range(4)]
        played = sitting(HIGH_LOW, *units)
        leader = max(range(4), key=played.scores.__getitem__)
        wrong += is_ahead_for_sure(HIGH_LOW, played, leader)

    assert wrong <= 20  # of 400, at most 1 in 20


@pytest.mark.parametrize(
    ("game", "per_match", "name"),
    [(AKQ, 1000, "block of 50 hands"), (AKQ, 49, "match"), (GIN, 1, "game"), (TCP, 1, "match")],
)
def test_what_one_value_is(game: object, per_match: int, name: str) -> None:
    assert sampled_unit(game, per_match) == name  # type: ignore[arg-type]
