"""Matches as text: complete, in the words of people, and to one seat only what it saw."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

import arena
from arena.games.blackjack.script import drive
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.games.replay import SeatAnswered, events_of
from arena.records.captions import seat_names
from arena.records.narrative import tell
from bots.blackjack import Simple
from protocol.errors import ArenaError, UsageError
from tests.support.sample_database import from_outside, missing, play, verdict_of

NAMES = ("ann", "ben", "cem", "dee")
SHUFFLES = [{"hands": 30, "shuffle": shuffle} for shuffle in ("riffle", "uniform")]


def players(record: Record) -> tuple[str, ...]:
    return NAMES[: len(record.scores)]


def text(record: Record, **options: Any) -> list[str]:
    return list(tell(record, players(record), **options))


# ---- All of it


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("seed", range(4))
def test_the_vocabulary_alone_has_words_for_a_whole_match(
    game: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a game with a script, as the page has no use for that."""
    monkeypatch.setitem(GAMES, game, replace(GAMES[game], script=None))
    record = play(game, seed).record
    lines = text(record)

    names = "|".join(players(record))
    decided = [line for line in lines if line.endswith(" ms]")]
    assert len(decided) == len(record.answers)
    assert all(re.match(rf"  ({names}) .*: \S.* \[\S.*; [\d,]+ ms\]$", line) for line in decided)
    assert lines[2].startswith("round 1") or lines[3].startswith("round 1")
    assert len(set(decided)) > 1
    assert not any(re.search(r"[{}()<>]|None|True|False|_", line) for line in lines[2:])
    for seat in range(GAMES[game].seats):
        own = [line for line in text(record, seat=seat) if line.endswith(" ms]")]
        assert set(own) == {line for line in decided if line.split()[0] == players(record)[seat]}


def test_names_that_do_not_tell_seats_apart() -> None:
    assert seat_names(("ann", "ben"), 2) == ("ann", "ben")
    assert seat_names(("ann", "ann"), 2) == ("ann (seat 1)", "ann (seat 2)")
    assert seat_names((), 2) == ("seat 1", "seat 2")


def test_one_round_alone() -> None:
    record = play("ace_king_queen", 2).record

    assert text(record, round_number=3)[0] == "round 3"
    assert text(record, round_number=3) == [
        line
        for number in [text(record).index("round 3")]
        for line in text(record)[number : number + 4]
    ]
    with pytest.raises(UsageError, match="expected a round of the match, 1 to 4, got 5"):
        text(record, round_number=5)
    with pytest.raises(UsageError, match="expected a seat from 1 to 2, got 3"):
        text(record, seat=2)


# ---- One seat


@pytest.mark.parametrize("game", ["ace_king_queen", "gin_rummy", "high_low"])
@pytest.mark.parametrize("seat", [0, 1])
def test_one_seat_is_told_what_its_bot_was_told(game: str, seat: int) -> None:
    """Nothing of the others' cards and notes."""
    record = play(game, 5, note="secret").record
    lines = text(record, seat=seat)
    own = players(record)[seat]

    decided = [line for line in lines if " ms]" in line]
    assert decided
    assert all(line.startswith(f"  {own} has ") for line in decided)
    assert len(decided) < len(record.answers)
    assert any("secret" in line for line in text(record))
    first = next(event for event in events_of(record) if isinstance(event, SeatAnswered))
    assert any("secret" in line for line in lines) == (seat == first.seat)
    for other in players(record):
        if other != own:
            assert not any(line.startswith(f"  {other} is dealt") for line in lines)
            assert not any(line.startswith(f"{other} took") for line in lines)


def test_the_others_learn_one_word_of_it() -> None:
    result = play("high_low", 2, offender=1)
    verdict = verdict_of("m-1", players(result.record), result)
    lines = text(result.record, verdict=verdict, seat=0)

    assert "ben is out: illegal" in lines
    assert not any('"no"' in line for line in lines)


def test_a_match_that_is_told_by_another_version_says_so() -> None:
    with from_outside("ace_king_queen"):
        record = play("ace_king_queen").record
        assert not any("other rules" in line for line in text(record))
    with from_outside("ace_king_queen", version="2.0"):
        assert text(record)[2] == (
            "told by other rules: ace_king_queen was played by package leduc 1.0, "
            "and here it is of package leduc 2.0"
        )
    with missing("ace_king_queen"), pytest.raises(ArenaError, match=r"package leduc 1\.0 is not"):
        text(record)


# ---- Blackjack


@pytest.mark.parametrize("seed", [*range(5), None])
def test_B13_blackjack_is_told_in_the_words_of_the_driver(seed: int | None) -> None:
    """Also with cuts that were given."""
    cuts, hands = (None, 40) if seed is not None else ([26, 0, 0, 0, 0, 0, 0], 1)
    settings = {"bankroll": 50, "hands": hands}
    result = arena.play("blackjack", [Simple()], settings=settings, seed=seed, decks=cuts)
    lines = list(tell(result.record, ("ann",)))

    transcript = list(drive(50, hands, Simple(), seed=seed, cuts=cuts))
    assert lines[2 : 2 + len(transcript)] == transcript


@pytest.mark.parametrize("settings", SHUFFLES)
def test_B11_a_seat_does_not_see_the_cuts(settings: dict[str, Any]) -> None:
    record = play("blackjack", 4, settings={**settings, "bankroll": 10**6}).record
    whole, seen = text(record), text(record, seat=0)

    cuts = [line for line in whole if line.startswith("cut at")]
    shuffles = [line for line in whole if line == "Shuffling the deck"]
    assert len(shuffles) > 1
    assert len(cuts) == (7 * len(shuffles) if settings["shuffle"] == "riffle" else 0)
    assert [line for line in whole if line not in cuts] == [
        line for line in seen if line != "as ann saw it"
    ]


def test_B6_a_reshuffle_comes_after_the_line_of_its_hand() -> None:
    record = play("blackjack", 4, settings={**SHUFFLES[1], "bankroll": 10**6}).record
    lines = text(record)

    again = [n for n, line in enumerate(lines) if line == "Shuffling the deck"][1:]
    assert again
    assert all(lines[n - 1].startswith("Hand ") for n in again)
    assert all(lines[n + 1].startswith("Player bets ") for n in again)


# ---- Records that are broken


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "poker"},
        {"seed": "zz"},
        {"seed": None},
        {"settings": {"hands": "x"}},
        {"answers": ("raise",)},
        {"answers": ("bet", "call") * 40},
        {"nonces": ("x" * 70_000, "")},
    ],
)
def test_a_broken_record_is_a_line(changes: dict[str, Any]) -> None:
    record = replace(play("ace_king_queen").record, **changes)

    with pytest.raises(ArenaError, match=r"^the record cannot be played again: .+$"):
        list(tell(record, ("ann", "ben")))


def test_what_a_bot_notes_does_not_reach_the_terminal_as_it_is() -> None:
    record = play("ace_king_queen", note="\x1b[2J\nx" + "y" * 999).record

    [line] = [line for line in text(record) if "notes" in line]
    assert line.isprintable()
    assert len(line) < 300
