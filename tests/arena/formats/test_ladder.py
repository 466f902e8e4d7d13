from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.formats import ladder as ladder_module
from arena.formats.ladder import Ladder, LadderRow, RatingHistory, pairings
from arena.formats.schedule import Outcome, Pairing
from arena.games.match import Result
from protocol.messages import Ending, Termination
from tests.support.cases import CaseFile, StepByStep

CASES = CaseFile(Path(__file__).with_name("ladder.cases"))


def outcome(
    players: str | tuple[str, ...], *scores: int, ended: Termination | None = None
) -> Outcome:
    """A match told as `outcome("ann ben", 3, -3)`."""
    names = tuple(players.split()) if isinstance(players, str) else players
    termination = ended or Termination(Ending.COMPLETED)
    return Outcome(Pairing(1, names), Result(scores, (0,) * len(scores), termination))


def ladder(*outcomes: Outcome, players: str = "") -> Ladder:
    standings = Ladder(players.split())
    for played in outcomes:
        standings.add(played)
    return standings


def rows(*outcomes: Outcome, players: str = "") -> dict[str, LadderRow]:
    return {row.name: row for row in ladder(*outcomes, players=players).rows()}


def free(names: Iterable[str], tables: int = 1) -> dict[str, int]:
    return dict.fromkeys(names, tables)


def stands(row: LadderRow) -> str:
    counts = f"{row.rank or '-'} {row.name} {row.wins}-{row.draws}-{row.losses} of {row.played}"
    return counts + f", {row.offences} by offence" * bool(row.offences)


class LadderCase(StepByStep):
    """A ladder, by the lines of a case."""

    def __init__(self) -> None:
        super().__init__()
        self.ladder = Ladder()

    def shows(self) -> Iterator[str]:
        if rows := self.ladder.rows():
            yield "; ".join(map(stands, rows))

    def does(self, *words: str) -> Iterator[str]:
        if words[0] == "free":
            yield from self._dealt(*words[1:])
            return
        if words[0] == "players":
            self.ladder = Ladder(words[1:])
            return
        names = [word for word in words if word.isalpha() and word not in ("void", "unplayed")]
        scores = [int(word) for word in words if word.isdigit()]
        offender = [Termination(Ending.CRASH, int(word[3:])) for word in words if word[:3] == "by="]
        ended = Termination(Ending.VOID) if "void" in words else offender[0] if offender else None
        played = outcome(tuple(names), *scores, ended=ended)
        if "unplayed" in words:
            played = Outcome(played.pairing, None)
        for _ in range(int(words[-1][1:]) if words[-1][0] == "*" else 1):
            self.ladder.add(played)

    def _dealt(self, *words: str) -> Iterator[str]:
        seats = int(words[-1][6:]) if words[-1].startswith("seats=") else 2
        groups = " ".join(word for word in words if "=" not in word and word != "rematch")
        names, *now = (group.split() for group in groups.split(" now "))
        slow = [name for word in words if word.startswith("slow=") for name in word[5:].split(",")]
        tables = pairings(
            free(names), seats, self.ladder, [*map(tuple, now)], "rematch" in words, slow
        )
        yield ", ".join(" v ".join(table) for table in tables) or "nobody plays"


@pytest.mark.parametrize("title", CASES.titles)
def test_a_ladder_goes(title: str) -> None:
    CASES.check(title, LadderCase().step)


# --- ratings ---


def test_K4_a_new_version_keeps_mu_and_is_known_half_as_well_as_a_beginner_at_most() -> None:
    standings = ladder(*[outcome("ann ben", 3, 1), outcome("ann ben", 1, 3)] * 40)
    known = standings.climber("ann")
    mu, sigma, beginner = known.mu, known.sigma, LadderRow(rank=None, name="zoe")
    assert sigma < beginner.sigma / 2
    standings.version_changed("ann")

    assert (known.mu, known.sigma) == (mu, beginner.sigma / 2)
    assert [row.played for row in standings.rows()] == [80, 80]


def test_K4_of_a_bot_that_is_known_less_a_new_version_changes_nothing() -> None:
    standings = ladder(outcome("ann ben", 3, 1), players="zoe")
    before = standings.rows()
    for name in ("ann", "zoe", "nobody"):
        standings.version_changed(name)

    assert standings.rows() == before
    assert "nobody" not in standings


def test_K4_a_win_raises_and_a_loss_lowers_and_both_are_known_better() -> None:
    table = rows(outcome("ann ben", 3, 1))
    start = LadderRow(rank=1, name="zoe")

    assert table["ann"].mu > start.mu > table["ben"].mu
    assert table["ann"].sigma == table["ben"].sigma < start.sigma
    assert (table["ann"].rank, table["ben"].rank) == (1, 2)


def test_K4_the_rating_is_what_a_bot_is_almost_sure_to_be_worth() -> None:
    table = rows(outcome("ann ben", 3, 1), players="cem")

    assert table["cem"].rating == 0
    for row in table.values():
        assert row.rating == row.mu - 3 * row.sigma


def test_K4_the_margin_and_the_seats_count_for_nothing() -> None:
    one = rows(outcome("ann ben cem dan", 9, 5, 5, 1))
    other = rows(outcome("dan cem ann ben", -1000, 7, 8, 7))

    for name, row in one.items():
        assert (row.mu, row.sigma) == pytest.approx((other[name].mu, other[name].sigma))


def test_K4_who_is_struck_leaves_no_trace_in_the_others_ratings() -> None:
    standings = Ladder()
    gone = Termination(Ending.REMOVED, None, "removed by Eva")
    standings.eliminate("cem", gone)
    played = [outcome("ann ben", 1, 0), outcome("ben ann", 1, 0)]
    for match in (played[0], outcome("cem ann", 1, 0), played[1]):
        standings.add(match)
    standings.add(outcome("dan cem", 0, 1))

    *rest, dan, cem = standings.rows()
    assert {row.name: row for row in rest} == rows(*played)
    assert dan == LadderRow(rank=None, name="dan")
    assert cem == LadderRow(rank=None, name="cem", eliminated=gone)
    assert "cem" in standings
    assert len(standings) == 4


def test_K4_a_draw_brings_unequal_bots_together() -> None:
    before = [outcome("ann ben", 1, 0)] * 5
    then, now = rows(*before), rows(*before, outcome("ann ben", 1, 1))

    assert now["ann"].mu < then["ann"].mu
    assert now["ben"].mu > then["ben"].mu


@pytest.mark.parametrize("seats", [3, 4, 6, 10])
def test_K4_a_large_table_is_as_much_news_as_one_of_two(seats: int) -> None:
    large = rows(outcome(tuple("abcdefghij"[:seats]), *range(seats, 0, -1)))
    two = rows(outcome("a b", 1, 0))

    assert large["a"].sigma == pytest.approx(two["a"].sigma)
    assert large["a"].mu == pytest.approx(two["a"].mu)
    assert list(large) == list("abcdefghij"[:seats]), "every place counts"


def test_K4_an_upset_moves_more_than_what_was_expected() -> None:
    before = [outcome("ann ben", 1, 0)] * 8
    then = rows(*before)
    expected = rows(*before, outcome("ann ben", 1, 0))
    upset = rows(*before, outcome("ann ben", 0, 1))

    rise = expected["ann"].mu - then["ann"].mu
    assert upset["ben"].mu - then["ben"].mu > 2 * rise > 0


def test_openskill_is_loaded_with_the_first_match_only() -> None:
    program = (
        "import sys, arena.formats.formats; from arena.formats.ladder import Ladder;"
        "Ladder(['ann']).rows(); sys.exit('openskill' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- who plays next ---


@pytest.mark.parametrize("seats", [2, 3, 4, 6])
def test_K4_the_seats_at_a_table_are_the_best_of_all_orders(seats: int) -> None:
    random = Random(seats)
    names = "abcdef"[:seats]
    for _ in range(20):
        past = [random.sample(names, seats) for _ in range(random.randrange(8))]
        standings = ladder(*(outcome(tuple(table), *[0] * seats) for table in past))

        def often(order: tuple[str, ...], sat: Ladder = standings) -> int:
            return sum(sat.climber(name).chairs[seat] for seat, name in enumerate(order))

        [table] = pairings(free(names), seats, standings)
        assert often(table) == min(map(often, permutations(names)))


def test_K4_the_largest_table_is_seated_without_trying_all_its_orders() -> None:
    [table] = pairings(free("abcdefghij"), 10, ladder(outcome(tuple("abcdefghij"), *range(10))))

    assert sorted(table) == list("abcdefghij")
    assert all(table[seat] != name for seat, name in enumerate("abcdefghij"))


some = st.dictionaries(st.sampled_from("abcdefghi"), st.integers(-1, 4))


@settings(deadline=None)
@given(
    some,
    st.lists(st.permutations("abcdefghi"), max_size=8),
    st.lists(st.permutations("abcdefghi"), max_size=4),
    st.integers(2, 6),
    st.booleans(),
)
def test_K4_nobody_plays_itself_or_more_than_it_would(
    tables: dict[str, int], past: list[list[str]], now: list[list[str]], seats: int, rematch: bool
) -> None:
    standings = ladder(*(outcome(tuple(names[:seats]), *range(seats)) for names in past))
    playing = [tuple(names[:seats]) for names in now]
    before = standings.rows()
    made = list(pairings(tables, seats, standings, playing, rematch))

    assert made == list(pairings(tables, seats, standings, playing, rematch))
    assert standings.rows() == before
    left = Counter(tables)
    for table in made:
        assert len(set(table)) == len(table) == seats
        left.subtract(table)
    assert all(left[name] >= 0 for table in made for name in table)
    if rematch:
        assert sum(number > 0 for number in left.values()) < seats


# --- a season ---


@cache
def season(
    seats: int, matches: int, tables: int = 1, bots: int = 20
) -> tuple[list[str], Ladder, Counter[frozenset[str]]]:
    """Bots of known strength and their random matches; the true order, weakest first."""
    random = Random(4)
    strength = {f"bot {number}": 1.5 * number for number in range(bots)}
    names = list(strength)
    random.shuffle(names)
    standings, room, met = Ladder(), free(names, tables), Counter[frozenset[str]]()
    playing: list[tuple[float, tuple[str, ...]]] = []
    now = 0.0
    for _ in range(matches):
        for table in pairings(room, seats, standings, [one for _, one in playing]):
            playing.append((now + random.expovariate(1), table))
            room = {name: n - (name in table) for name, n in room.items()}
        now, table = min(playing)
        playing.remove((now, table))
        room = {name: n + (name in table) for name, n in room.items()}
        met[frozenset(table)] += 1
        # the better of two that are 4.2 apart wins about three times of four
        scores = (int(1000 * random.gauss(strength[name], 4.2)) for name in table)
        standings.add(outcome(table, *scores))
    return list(strength), standings, met


@pytest.mark.parametrize(
    ("seats", "matches", "tables"),
    [(2, 1000, 1), (2, 1500, 4), (3, 800, 1), (4, 600, 1), (6, 400, 1)],
)
def test_K4_after_a_season_the_ladder_knows_who_is_strong(
    seats: int, matches: int, tables: int
) -> None:
    strengths, standings, met = season(seats, matches, tables)
    ranked = {row.name: row.rank or 0 for row in standings.rows()}
    count = len(strengths)
    squares = sum((ranked[name] - (count - place)) ** 2 for place, name in enumerate(strengths))

    assert 1 - 6 * squares / (count * (count**2 - 1)) > 0.95  # Spearman's
    if seats == 2:
        assert len(met) > 0.9 * count * (count - 1) / 2, "it has fallen apart"


def chairs(standings: Ladder, seats: int) -> Iterable[list[int]]:
    """By bot, how often it has sat in each seat."""
    for row in standings.rows():
        yield standings.climber(row.name).chairs[:seats]


@pytest.mark.parametrize(("seats", "matches"), [(2, 1000), (3, 800), (4, 600), (6, 400)])
def test_K4_matches_and_seats_are_spread_evenly(seats: int, matches: int) -> None:
    _, standings, _ = season(seats, matches, 1)
    played = [row.played for row in standings.rows()]
    mean = seats * matches / len(played)

    assert sum(played) == seats * matches
    assert 0.8 * mean < min(played) <= max(played) < 1.2 * mean
    for sat in chairs(standings, seats):
        assert max(sat) - min(sat) <= 2 * seats - 2


def test_K4_when_all_are_free_at_the_same_time_all_have_played_as_often() -> None:
    standings = Ladder()
    names = [f"bot {number}" for number in range(9)]
    random = Random(1)
    for _ in range(45):
        for table in pairings(free(names), 2, standings):
            standings.add(outcome(table, random.randrange(9), random.randrange(9)))

    played = [row.played for row in standings.rows()]
    assert sum(played) == 2 * 45 * 4
    assert max(played) - min(played) <= 1


def test_K4_who_comes_late_catches_up_and_also_meets_the_old_hands() -> None:
    old = [f"old {number}" for number in range(6)]
    new = [f"new {number}" for number in range(3)]
    standings = Ladder()
    met: Counter[int] = Counter()
    for number in range(120):
        names = old if number < 90 else [*old, *new]
        table = next(pairings(free(names), 2, standings))
        met[len(set(table) & set(new))] += 1
        standings.add(outcome(table, 1, 1))

    assert met[0] == 90, "since they came it has always been their turn"
    assert met[1] >= met[2]


@pytest.mark.parametrize("others", [(), ("ann",)])
def test_the_names_of_one_owner_are_not_all_tried_when_nobody_else_is_free(
    monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]
) -> None:
    tried: list[str] = []
    nearest = ladder_module._FreeBots._nearest

    def counted(hall: ladder_module._FreeBots, name: str) -> list[str]:
        tried.append(name)
        return nearest(hall, name)

    monkeypatch.setattr(ladder_module._FreeBots, "_nearest", counted)
    names = [*(f"eve/{number}" for number in range(200)), *others]
    made = list(pairings(free(names), 2, Ladder()))

    assert len(made) == len(tried) == len(others)


def test_the_history_of_a_ladder_is_thinned_and_marks_versions() -> None:
    history = RatingHistory()
    for match in range(5000):
        history.add("ann", float(match), match / 100, "v1" if match < 700 else "v2")

    points = history.ratings["ann"]
    assert len(points) <= 1000
    assert points == sorted(points)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (4999.0, 49.99)
    assert history.versions["ann"] == [(0.0, "v1"), (700.0, "v2")]
