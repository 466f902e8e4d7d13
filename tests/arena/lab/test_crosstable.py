"""Who meets whom, and how all tables together rank the bots; any number of processes plays the same."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from pathlib import Path

import pytest

from arena.games.catalogue import GAMES
from arena.games.rules import Game
from arena.lab.crosstable import CrossTable, table_seeds, tables
from arena.lab.in_process import Entrant, derived_seed, entrant, play_parts
from arena.lab.sittings import TableMatches
from arena.sandbox import worker_pool
from protocol.strategy import house_bots
from tests.support.entrants import Made, house

AKQ, HIGH_LOW = GAMES["ace_king_queen"], GAMES["high_low"]


@pytest.fixture
def made() -> Made:
    return Made()


def crossed(
    game: Game, entrants: list[Entrant], matches: int = 1, jobs: int = 1, **settings: object
) -> CrossTable:
    table = CrossTable(game, [each.name for each in entrants])
    experiment = TableMatches(game, game.vocabulary.read_settings(settings))
    parts = experiment.parts(table_seeds(game, len(entrants), 7, duplicate=False), matches)
    play_parts(experiment, entrants, parts, table.add, units=1000, jobs=jobs)
    return table


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


def test_J3_an_offender_counts_for_nobody_and_plays_no_more(made: Made) -> None:
    entrants = [made.entrant("a"), made.entrant("b", -1), made.entrant("z", rogue=True)]
    table = crossed(AKQ, entrants, hands=20)

    assert table.offences.keys() == {2}
    assert [sitting.bots for sitting in table.sittings] == [(0, 0), (0, 1), (0, 2), (1, 1)]
    assert [sitting.bots for sitting in table.counting()] == [(0, 0), (0, 1), (1, 1)]
    last = table.scores()[-1]
    assert (last.bot, last.units, last.total) == (2, 0, 0)
    assert last.mean is last.total_error is last.mean_error is None
    assert last.offence is not None


def test_A9_against_itself_a_bot_is_two_instances(made: Made) -> None:
    [alone] = crossed(AKQ, [made.entrant("a")], hands=20).scores()

    assert (alone.units, alone.total, alone.mean) == (0, 0, None)
    assert len(made.strategies["a"]) == 2
    assert len(set(made.seeds)) == 2


def test_totals_are_sums_and_errors_join(made: Made) -> None:
    entrants = [made.entrant("a"), made.entrant("b", -1), made.entrant("c", -1)]
    table = crossed(AKQ, entrants, hands=50)

    best = table.scores()[0]
    mine = [s for s in table.counting() if s.bots in [(0, 1), (0, 2)]]
    errors = [s.samples[0].error_of_total or 0 for s in mine]
    assert best.bot == 0
    assert best.units == 100
    assert best.total == sum(s.scores[0] for s in mine)
    assert best.mean == best.total / 100
    assert best.total_error == pytest.approx(sqrt(sum(e * e for e in errors)))
    assert best.mean_error == pytest.approx((best.total_error or 0) / 100)


def test_two_bots_fill_a_table_of_high_low() -> None:
    table = crossed(HIGH_LOW, house(HIGH_LOW, "timid", "bold"), max_shuffles=1)

    assert [standing.units for standing in table.scores()] == [6, 6]


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
    # Two offenders: the one that is out first is at tables with the other.
    files = [tmp_path / "mine.py", tmp_path / "second.py"]
    for file in files:
        file.write_text(OFFENDS.format(game=game.name))
    first, second, *_ = house_bots(game.name)
    bots = [entrant(game, str(bot)) for bot in (first, *files, second)]
    here, there = (
        [
            (s.bots, s.matches, s.scores, s.won, s.offence, [x.error_of_total for x in s.samples])
            for s in crossed(game, bots, matches=60, jobs=jobs, **settings).sittings
        ]
        for jobs in (1, 3)
    )

    assert "no such card" in str(here)
    assert here == there
