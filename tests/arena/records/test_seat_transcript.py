"""What a seat is told, from the record alone: the same as it was told then."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import arena
from arena.engine.match import Record
from arena.games import GAMES
from arena.records.check_transcript import check
from arena.records.seat_transcript import conversation, told
from arena.records.transcript import Event, Side, Transcript
from bots.ace_king_queen import Honest, Random
from protocol.errors import IllegalAnswer, UsageError
from protocol.gin_rummy import Dealt
from protocol.messages import Ending, Limits, Termination
from tests.support.sample_database import play, verdict_of, void

NAMES = ("ann", "ben", "cem", "Zoë")
EACH_SEAT = [(game, seat) for game, rules in GAMES.items() for seat in range(rules.seats)]


def made(record: Record, seat: int = 0, **more: Any) -> Transcript:
    players = NAMES[: len(record.scores)]
    return conversation(record, players, seat, f"7-1.{seat}", limits=Limits(), **more)


def said(transcript: Transcript, side: Side) -> list[Any]:
    return [msgspec.json.decode(line.text) for line in transcript.lines if line.side is side]


@pytest.mark.parametrize(("game", "seat"), EACH_SEAT)
def test_a_match_over_the_network(game: str, seat: int) -> None:
    record = play(game, note="a note of mine").record
    transcript = made(record, seat)
    asks = [one for one in said(transcript, Side.ARENA) if one["type"] == "ask"]
    hello, ready, *answers = said(transcript, Side.BOT)

    assert check(transcript) == ()
    assert hello == {"type": "hello", "protocol": 1, "name": NAMES[seat], "games": [game]}
    assert ready["nonce"] == record.nonces[seat]
    assert [one["ask"] for one in answers] == [one["ask"] for one in asks]
    assert said(transcript, Side.ARENA)[-1]["scores"] == list(record.scores)
    assert sum("note" in one for one in answers) == (told(record, seat).asked[0].answer == 0)


@pytest.mark.parametrize(("game", "seat"), EACH_SEAT)
def test_a_match_that_ended_by_an_offence(game: str, seat: int) -> None:
    result = play(game, offender=0)
    verdict = verdict_of("7-1", NAMES[: GAMES[game].seats], result)
    transcript = made(result.record, seat, verdict=verdict)
    over = said(transcript, Side.ARENA)[-1]

    assert check(transcript) == ()
    assert over["termination"]["kind"] == "illegal"
    assert (over["verdict"] is None) == (seat != 0)
    assert bool(over["termination"]["text"]) == (seat == 0)
    assert said(transcript, Side.EVENT) == [Event.UNKNOWN] * (seat == 0)


@pytest.mark.parametrize("game", GAMES)
def test_a_match_in_which_no_card_was_dealt(game: str) -> None:
    transcript = made(void(game).record)

    assert check(transcript) == ()
    assert transcript.heading.decks == ()
    assert [one["type"] for one in said(transcript, Side.ARENA)] == [*("welcome", "match", "over")]
    assert [one["type"] for one in said(transcript, Side.BOT)] == ["hello"]


def test_a_match_in_process_with_a_seed() -> None:
    record = arena.play("akq", [Honest(), Random()], settings={"hands": 9}, seed=3)
    transcript = made(record.record, 1)

    assert check(transcript) == ()
    assert transcript.heading.nonces == ()
    assert len(transcript.heading.decks) == 9
    assert said(transcript, Side.ARENA)[-1]["reveal"]["nonces"] == []


def test_a_match_with_stacked_decks() -> None:
    bots = [Honest(), Honest()]
    decks = [["A", "K"], ["Q", "A"]]
    record = arena.play("akq", bots, settings={"hands": 2}, decks=decks).record
    transcript = made(record)

    assert check(transcript) == ()
    assert transcript.heading.decks == (("A", "K"), ("Q", "A"))
    assert transcript.heading.seed is None
    assert said(transcript, Side.ARENA)[-1]["reveal"] is None


def test_a_seat_hears_what_is_its_own_alone() -> None:
    record = play("gin_rummy", settings={"max_rounds": 1}).record
    hands = []
    for seat in (0, 1):
        heard = told(record, seat)
        news = [one for asked in heard.asked for one in asked.news] + [*heard.news]
        [dealt] = [one for one in news if isinstance(one, Dealt)]
        hands.append(dealt.hand)
        [deck] = heard.decks

        assert list(dealt.hand) == deck["deck"][10 * seat : 10 * seat + 10]
    assert set(hands[0]).isdisjoint(hands[1])


def test_the_answers_of_all_seats_belong_to_somebody() -> None:
    record = play("high_low").record
    numbers = [
        one.answer
        for seat in range(4)
        for one in told(record, seat).asked
        if one.answer is not None
    ]

    assert sorted(numbers) == [*range(len(record.answers))]


def test_there_is_no_such_seat() -> None:
    record = play("ace_king_queen").record

    with pytest.raises(UsageError, match="expected a seat of 2, got 3"):
        conversation(record, ("ann", "ben"), 2, "7-1.2", limits=Limits())


WHOLE = play("ace_king_queen").record.answers
ILLEGAL = Termination(Ending.ILLEGAL, 1, "x")
OTHERWISE = "but the answers play it to its end"


@pytest.mark.parametrize(
    ("offender", "changes", "why"),
    [
        (None, {"answers": WHOLE[:1]}, "has only 1 answers"),
        (None, {"answers": (*WHOLE, "check")}, "comes after the end"),
        (None, {"answers": ("raise",)}, 'answered "raise"'),
        (None, {"seed": None}, "with a seed or decks"),
        (None, {"termination": Termination(Ending.VOID)}, f"it says void, {OTHERWISE}"),
        (None, {"termination": Termination(Ending.CRASH, 1)}, f"crash of seat 2, {OTHERWISE}"),
        (None, {"termination": ILLEGAL}, f"it says illegal of seat 2, {OTHERWISE}"),
        (0, {"termination": ILLEGAL}, "illegal of seat 2, but seat 1 was asked"),
    ],
)
def test_a_record_that_its_answers_do_not_make_is_refused(
    offender: int | None, changes: dict[str, Any], why: str
) -> None:
    record = play("ace_king_queen", offender=offender).record

    with pytest.raises((IllegalAnswer, UsageError), match=why):
        told(replace(record, **changes), 0)


def test_a_match_that_was_left_is_told_up_to_there() -> None:
    record = play("high_low").record
    ended = replace(record.termination, kind=Ending.DISCONNECT, seat=2, text="said goodbye")
    left = replace(record, answers=record.answers[:4], termination=ended, scores=(0, 0, 0, 0))
    transcript = made(left)
    [*_, ask, over] = said(transcript, Side.ARENA)

    assert check(transcript) == ()
    assert (ask["kind"], over["termination"]["kind"]) == ("bid", "disconnect")
    assert over["news"] == []
