from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import factorial, sqrt
from pathlib import Path
from typing import Any

import pytest

from arena.engine.rules import Game
from arena.games import GAMES
from arena.lab import in_process
from arena.lab.crosstable import CrossTable, tables
from arena.lab.in_process import MATCHES_AT_ONCE, Entrant, derived_seed, entrant, sittings
from arena.lab.series import Sitting
from arena.sandbox import worker_pool
from protocol.messages import Ending
from protocol.strategy import find, house_bots
from protocol.vocabulary import News
from tests.support.answering import Answering

AKQ, GIN, HIGH_LOW = (GAMES[n] for n in ("ace_king_queen", "gin_rummy", "high_low"))


class Made:
    """Makes entrants and keeps their instances."""

    def __init__(self) -> None:
        self.strategies: dict[str, list[Answering]] = {}
        self.seeds: list[str] = []

    def entrant(self, name: str, choice: int = 0, rogue: bool = False) -> Entrant:
        """One that gives the first or the last of the legal answers, or no legal one."""

        def make(seed: str) -> Answering:
            self.seeds.append(seed)
            made = Answering(lambda question: "cheat" if rogue else question.legal[choice])
            self.strategies.setdefault(name, []).append(made)
            return made

        return Entrant(name, make)


@pytest.fixture
def made() -> Made:
    return Made()


def sit(
    game: Game,
    entrants: list[Entrant],
    matches: int = 1,
    report: Callable[[int], None] = lambda units: None,
    **settings: object,
) -> Sitting:
    [sitting] = sittings(
        game,
        entrants,
        [tuple(range(len(entrants)))],
        seeds=[7],
        matches=matches,
        settings=game.vocabulary.read_settings(settings),
        report=report,
    )
    return sitting


def crossed(game: Game, entrants: list[Entrant], **settings: object) -> CrossTable:
    pairings = tables(game.seats, len(entrants), itself=game.meets_itself)
    played = sittings(
        game,
        entrants,
        pairings,
        seeds=[derived_seed(7, *table) for table in pairings],
        matches=1,
        settings=game.vocabulary.read_settings(settings),
        report=lambda units: None,
    )
    return CrossTable(tuple(entrant.name for entrant in entrants), played)


def house(game: Game, *names: str) -> list[Entrant]:
    def entrant(name: str) -> Entrant:
        cls = find(game.name, name)

        def make(seed: str) -> Any:
            strategy = cls()
            strategy.seed(seed)
            return strategy

        return Entrant(name, make)

    return [entrant(name) for name in names]


@pytest.mark.parametrize(
    ("seats", "bots", "itself", "expected"),
    [
        pytest.param(
            *(2, 3, True, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]),
            id="A10 every pair and every bot with itself",
        ),
        pytest.param(2, 3, False, [(0, 1), (0, 2), (1, 2)], id="G16 every pair once"),
        pytest.param(4, 5, False, [*combinations(range(5), 4)], id="every four of five"),
        pytest.param(
            *(4, 2, False, [(0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 1)]),
            id="fewer bots than seats sit twice in every way",
        ),
        (4, 3, False, [(0, 0, 1, 2), (0, 1, 1, 2), (0, 1, 2, 2)]),
        pytest.param(1, 3, False, [(0,), (1,), (2,)], id="alone against the dealer"),
    ],
)
def test_A10_who_sits_together(
    seats: int, bots: int, itself: bool, expected: list[tuple[int, ...]]
) -> None:
    assert tables(seats, bots, itself=itself) == expected


def test_derived_seeds_differ_by_part_and_stay() -> None:
    seeds = {derived_seed(1, "match", n) for n in range(100)}

    assert len(seeds) == 100
    assert derived_seed(1, "match", 0) in seeds
    assert derived_seed(2, "match", 0) not in seeds


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


def test_A9_one_instance_plays_all_matches_and_is_reset_before_each(made: Made) -> None:
    hands: list[int] = []
    both = [made.entrant("a"), made.entrant("b")]
    sit(AKQ, both, matches=3, report=hands.append, hands=20)

    [a] = made.strategies["a"]
    assert a.resets == 3
    assert sum(hands) == 60, "every hand is reported"
    [b] = made.strategies["b"]
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


def test_the_score_of_the_same_bots_is_drawn_among_leaders(made: Made) -> None:
    sitting = sit(AKQ, [made.entrant("a"), made.entrant("a")], matches=2, hands=2)
    drawn = Sitting(
        bots=(0, 1),
        matches=2,
        scores=(0, 0),
        points=(0, 0),
        won=(1, 1),
        samples=sitting.samples,
        offence=None,
    )

    assert drawn.leaders == (0, 1)


def test_J3_an_offence_ends_the_sitting_and_the_other_wins(made: Made) -> None:
    both = [made.entrant("rogue", rogue=True), made.entrant("good")]
    sitting = sit(AKQ, both, matches=5, hands=2)

    assert sitting.offence is not None
    assert (sitting.offence.bot, sitting.offence.place) == (0, 0)
    assert sitting.offence.kind is Ending.ILLEGAL
    assert sitting.offence.match == sitting.matches == 1
    assert sitting.leaders == (1,)
    assert sitting.won == (0, 1)


def test_H13_after_an_offence_the_other_three_go_on(made: Made) -> None:
    four = [made.entrant(name, rogue=name == "c") for name in "abcd"]
    sitting = sit(HIGH_LOW, four, matches=3)

    assert sitting.leaders == (0, 1, 3)
    assert sitting.won == (0, 0, 0, 0)
    assert sitting.samples[0].count == 0


def test_J3_an_offender_counts_for_nobody_and_plays_no_more(made: Made) -> None:
    entrants = [made.entrant("a"), made.entrant("b", -1), made.entrant("z", rogue=True)]
    table = crossed(AKQ, entrants, hands=20)

    assert table.offences.keys() == {2}
    assert [sitting.bots for sitting in table.sittings] == [(0, 0), (0, 1), (0, 2), (1, 1)]
    assert [sitting.bots for sitting in table.counting()] == [(0, 0), (0, 1), (1, 1)]
    last = table.standings(AKQ)[-1]
    assert (last.bot, last.units, last.total) == (2, 0, 0)
    assert last.mean is last.total_error is last.mean_error is None
    assert last.offence is not None


def test_A9_against_itself_a_bot_is_two_instances(made: Made) -> None:
    [alone] = crossed(AKQ, [made.entrant("a")], hands=20).standings(AKQ)

    assert (alone.units, alone.total, alone.mean) == (0, 0, None)
    assert len(made.strategies["a"]) == 2
    assert len(set(made.seeds)) == 2


def test_totals_are_sums_and_errors_join(made: Made) -> None:
    entrants = [made.entrant("a"), made.entrant("b", -1), made.entrant("c", -1)]
    table = crossed(AKQ, entrants, hands=50)

    best = table.standings(AKQ)[0]
    mine = [s for s in table.counting() if s.bots in [(0, 1), (0, 2)]]
    errors = [s.samples[0].error_of_total or 0 for s in mine]
    assert best.bot == 0
    assert best.units == 100
    assert best.total == sum(s.scores[0] for s in mine)
    assert best.mean == best.total / 100
    assert best.total_error == pytest.approx(sqrt(sum(e * e for e in errors)))
    assert best.mean_error == pytest.approx((best.total_error or 0) / 100)


def test_G16_gin_counts_games(made: Made) -> None:
    sitting = sit(GIN, house(GIN, "random", "simple"), games=4)

    assert sum(sitting.won) <= 4
    assert sitting.won == sitting.scores
    assert [sample.count for sample in sitting.samples] == [4, 4]
    assert tuple(sample.total for sample in sitting.samples) == sitting.scores


def test_high_low_counts_matches() -> None:
    four = house(HIGH_LOW, "random", "timid", "bold", "counter")
    sitting = sit(HIGH_LOW, four, matches=4, max_shuffles=2)

    assert [sample.count for sample in sitting.samples] == [4] * 4
    assert tuple(sample.total for sample in sitting.samples) == sitting.scores
    assert sum(sitting.won) <= 4


def test_two_bots_fill_a_table_of_high_low() -> None:
    table = crossed(HIGH_LOW, house(HIGH_LOW, "timid", "bold"), max_shuffles=1)

    assert [standing.units for standing in table.standings(AKQ)] == [6, 6]


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
    monkeypatch.setattr(in_process, "MATCHES_AT_ONCE", 2 * MATCHES_AT_ONCE)
    whole = sit(AKQ, both, matches=MATCHES_AT_ONCE + 2, hands=10)

    assert (parts.matches, parts.scores, parts.won) == (26, whole.scores, whole.won)
    for part, sample in zip(parts.samples, whole.samples, strict=True):
        assert (part.count, part.total) == (sample.count, sample.total) == (260, sample.total)
        assert part.variance == pytest.approx(sample.variance)


def test_K1_a_part_has_all_seatings_of_up_to_four() -> None:
    assert all(MATCHES_AT_ONCE % factorial(seats) == 0 for seats in range(1, 5))


def test_J3_an_offence_in_a_later_part_tells_its_match_and_ends_the_table(made: Made) -> None:
    def make(seed: str) -> Answering:
        made.seeds.append(seed)
        return Answering(lambda question: "cheat" if len(made.seeds) > 2 else question.legal[0])

    both = [made.entrant("a"), Entrant("late", make)]
    sitting = sit(AKQ, both, matches=3 * MATCHES_AT_ONCE, hands=1)

    assert sitting.offence is not None
    assert sitting.offence.match == sitting.matches == MATCHES_AT_ONCE + 1


OFFENDS = """
import random

class Mine:
    game = {game!r}

    def __init__(self):
        self.left = random.randrange(400)

    def decide(self, question):
        self.left -= 1
        if self.left < 0:
            raise ValueError("no such card")
        legal = question.legal
        return random.choice(legal) if isinstance(legal, tuple) else legal.min

    def hear(self, news): pass
    def reset(self): pass
"""


@pytest.mark.parametrize(
    ("game", "settings"),
    [(AKQ, {"hands": 20}), (GAMES["blackjack"], {"hands": 10})],
    ids=["2", "1"],
)
def test_J3_any_number_of_processes_plays_the_same_also_with_an_offender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: Game, settings: dict[str, object]
) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)
    path = tmp_path / "mine.py"
    path.write_text(OFFENDS.format(game=game.name))
    # Two offenders: the one that is out first is at tables with the other.
    second = tmp_path / "second.py"
    second.write_text(OFFENDS.format(game=game.name))
    house = list(house_bots(game.name))[:2]

    def cross(jobs: int) -> object:
        bots = [entrant(game, bot) for bot in (house[0], str(path), str(second), house[1])]
        pairings = tables(game.seats, 4, itself=game is AKQ)
        played = sittings(
            game,
            bots,
            pairings,
            seeds=[derived_seed(3, *table) for table in pairings],
            matches=60,
            settings=game.vocabulary.read_settings(settings),
            report=lambda units: None,
            jobs=jobs,
        )
        return [
            (s.bots, s.matches, s.scores, s.won, s.offence, [x.error_of_total for x in s.samples])
            for s in played
        ]

    here = cross(jobs=1)

    assert "no such card" in str(here)
    assert cross(jobs=3) == here
