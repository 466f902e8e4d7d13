"""Submitters without sockets: who may enter, how programs come, and who is disconnected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arena.sandbox.build import LOG_BYTES
from arena.storage.roster import Roster
from arena.storage.submissions import MOST_STDERR, STDERR_BYTES
from arena.submissions import socket, uploads
from protocol.codec import Encoding
from protocol.errors import Oversize
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Refused
from protocol.submitting import (
    PIECE_BYTES,
    Abort,
    Enter,
    GetLog,
    Got,
    ListSubmissions,
    LogText,
    Piece,
    Progressing,
    Rules,
    Send,
    StderrOf,
    SubmissionList,
    Submit,
    UploadTurn,
    encode_to_submitter,
)
from tests.support.submitting import RunningSubmissions, SubmitterSurroundings, strategy

NASH = strategy("ace_king_queen")
OWNERS = ("ann", "bob", "cem", "dan", "eve", "fay")


@pytest.fixture
async def arena(tmp_path: Path) -> AsyncIterator[SubmitterSurroundings]:
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", owners=OWNERS) as running:
        arena = SubmitterSurroundings(running)
        yield arena
        await arena.sockets.close()


# ---- Who may enter


async def test_an_owner_enters_with_a_token_of_the_roster(arena: SubmitterSurroundings) -> None:
    rules = await arena.enters("ann").hears(Rules)

    assert (rules.owner, rules.left_today) == ("ann", 20)
    assert rules.games == ("ace_king_queen",)
    assert [language.missing for language in rules.languages] == ["", "golang-go"]


async def test_an_instructor_enters_without_a_name_of_the_roster(
    arena: SubmitterSurroundings,
) -> None:
    rules = await arena.enters("Eva").hears(Rules)

    assert (rules.owner, rules.left_today) == (None, None)


async def test_a_wrong_token_is_refused_and_counted(arena: SubmitterSurroundings) -> None:
    stranger = arena.opens().says(Enter("guessed"))

    assert stranger.closed is not None
    assert stranger.closed[0] == CLOSE_REFUSED
    assert [message.code for message in stranger.heard] == ["token"]
    assert arena.blamed == 1


async def test_nothing_is_said_before_the_token(arena: SubmitterSurroundings) -> None:
    stranger = arena.opens().says(ListSubmissions())

    assert stranger.closed == (CLOSE_PROTOCOL, "expected enter, as the first message")


async def test_one_enters_once(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(Enter(arena.running.tokens["bob"]))

    assert ann.closed == (CLOSE_PROTOCOL, "expected enter, once")


async def test_who_does_not_enter_in_time_is_disconnected(arena: SubmitterSurroundings) -> None:
    silent, ann = arena.opens(), arena.enters("ann")

    arena.passes(11)

    assert silent.closed is not None
    assert ann.closed is None


async def test_a_request_that_is_no_websocket_is_not_counted(arena: SubmitterSurroundings) -> None:
    plain = arena.opens(**{"Sec-WebSocket-Key": ""})

    plain.says(Enter(arena.running.tokens["ann"]))

    assert plain.heard == []


async def test_an_address_has_so_many_connections(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.submissions.socket._MOST_NEAR", 2)
    first, _ = arena.opens(), arena.opens()

    refused = arena.opens()
    first.leaves()
    welcome = arena.opens()

    assert (refused.status, refused.is_open) == (503, False)
    assert welcome.is_open


async def test_a_token_opens_so_many_connections(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.submissions.socket._MOST_OF_ONE", 2)
    first, second, third = (arena.enters("ann") for _ in range(3))
    first.leaves()
    fourth, bob = arena.enters("ann"), arena.enters("bob")

    assert third.closed == (CLOSE_REFUSED, "expected at most 2 connections with one token")
    assert second.closed is fourth.closed is bob.closed is None


async def test_numbers_that_no_database_knows_are_no_numbers(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(GetLog(2**31))

    assert ann.closed == (CLOSE_PROTOCOL, "expected `int` <= 2147483647 - at `$.submission`")


async def test_whose_token_is_revoked_is_disconnected(arena: SubmitterSurroundings) -> None:
    ann, bob, stranger = arena.enters("ann"), arena.enters("bob"), arena.opens()
    ann.says(Submit("bot.py", 100))
    await ann.hears(Send)

    Roster(arena.running.store.engine).revoke("ann")
    arena.roster_changes()

    assert ann.closed == (CLOSE_REFUSED, "the token was replaced")
    assert bob.closed is stranger.closed is None


# ---- How a program comes


async def test_a_program_comes_in_pieces(arena: SubmitterSurroundings) -> None:
    data = NASH + b"#" * (2 * PIECE_BYTES)
    ann = arena.enters("ann").says(Submit("bot.py", len(data), "large"))

    assert (await ann.hears(Send)).piece_bytes == PIECE_BYTES
    ann.says(*(Piece(data[at : at + PIECE_BYTES]) for at in range(0, len(data), PIECE_BYTES)))
    assert (await ann.hears(Got, lambda got: got.bytes == len(data))).bytes == len(data)
    done = await ann.hears(Progressing, lambda said: said.version is not None)

    assert (done.submission, done.version) == (1, 1)
    [kept] = arena.running.service.submissions.of("ann")
    assert (kept.name, kept.message) == ("bot.py", "large")


async def test_pieces_do_not_count_as_messages(arena: SubmitterSurroundings) -> None:
    data = NASH + b"#" * (4096 * 100)
    ann = arena.enters("ann").says(Submit("bot.py", len(data)))
    await ann.hears(Send)

    ann.says(*(Piece(data[at : at + 4096]) for at in range(0, len(data), 4096)))

    assert (await ann.hears(Progressing)).submission == 1


async def test_tiny_pieces_do(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(Submit("bot.py", 1000))
    await ann.hears(Send)

    ann.says(*[Piece(b"#")] * 50)

    assert ann.closed == (CLOSE_PROTOCOL, "expected at most 10 messages a second")


async def test_too_many_bytes_end_the_upload_and_no_more(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(Submit("bot.py", 5))
    await ann.hears(Send)

    ann.says(Piece(b"123456"))
    refused = await ann.hears(Refused)
    number = await ann.hands_in(NASH)

    assert (refused.code, refused.text) == ("submit", "expected 5 bytes, got more")
    assert number == 1


async def test_pieces_come_only_when_they_are_asked_for(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(Piece(b"early"))

    assert (await ann.hears(Refused)).text == "expected pieces only after `send`"
    assert ann.closed is None


async def test_what_is_on_its_way_when_an_upload_is_given_up_is_dropped(
    arena: SubmitterSurroundings,
) -> None:
    ann = arena.enters("ann").says(Submit("bot.py", 100 * PIECE_BYTES))
    await ann.hears(Send)
    ann.says(Piece(b"x" * PIECE_BYTES), Abort())

    ann.says(*[Piece(b"x" * PIECE_BYTES)] * 99)

    assert await ann.hands_in(NASH) == 1
    assert ann.closed is None


async def test_one_upload_is_on_over_a_connection(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(Submit("bot.py", 10), Submit("bot.py", 10))

    assert (await ann.hears(Refused)).text == "another upload is on over this connection"
    await ann.hears(Send)


async def test_an_owner_sends_one_program_at_a_time(arena: SubmitterSurroundings) -> None:
    first = arena.enters("ann").says(Submit("bot.py", 10))
    await first.hears(Send)

    second = arena.enters("ann").says(Submit("bot.py", 10))

    assert "another upload of yours is on" in (await second.hears(Refused)).text


async def test_four_owners_send_at_once_and_others_wait_for_their_turn(
    arena: SubmitterSurroundings,
) -> None:
    sending = [arena.enters(owner).says(Submit("bot.py", len(NASH))) for owner in OWNERS[:4]]
    for one in sending:
        await one.hears(Send)
    fifth = arena.enters(OWNERS[4]).says(Submit("bot.py", len(NASH)))
    first_place = (await fifth.hears(UploadTurn)).position
    sixth = arena.enters(OWNERS[5]).says(Submit("bot.py", len(NASH)))
    second_place = (await sixth.hears(UploadTurn)).position

    sending[1].leaves()
    await fifth.hears(Send)
    moved_up = (await sixth.hears(UploadTurn)).position
    sending[0].says(Piece(NASH))
    await sixth.hears(Send)

    assert (first_place, second_place, moved_up) == (1, 2, 1)


async def test_who_waits_for_a_turn_can_give_it_up(arena: SubmitterSurroundings) -> None:
    for owner in OWNERS[:4]:
        await arena.enters(owner).says(Submit("bot.py", 10)).hears(Send)
    fifth = arena.enters(OWNERS[4]).says(Submit("bot.py", 10))
    await fifth.hears(UploadTurn)

    fifth.says(Abort(), ListSubmissions())

    assert (await fifth.hears(SubmissionList)).entries == ()


async def test_a_stalled_upload_loses_its_turn(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_STALLED_S", 0.05)
    ann = arena.enters("ann").says(Submit("bot.py", 5000))
    await ann.hears(Send)
    ann.says(Piece(b"x" * 4096))

    refused = await ann.hears(Refused)

    assert refused.text == "expected 5,000 bytes, got 4,096 in the time; hand it in again"
    assert arena.running.service.submissions.of(None) == ()


async def test_an_instructor_hands_nothing_in(arena: SubmitterSurroundings) -> None:
    eva = arena.enters("Eva").says(Submit("bot.py", 10))

    assert "an instructor hands nothing in" in (await eva.hears(Refused)).text


# ---- Who is disconnected


async def test_nonsense_is_answered_and_ends_the_connection(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(b'{"type":"sing"}')

    assert ann.closed is not None
    assert ann.closed[0] == CLOSE_PROTOCOL
    assert arena.blamed == 1


async def test_binary_frames_and_large_ones_end_it(arena: SubmitterSurroundings) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")

    arena.sockets.received(ann, b"\x80", Encoding.MSGPACK, arena.now)
    arena.sockets.misbehaved(bob, Oversize("too large"))

    assert ann.closed == (CLOSE_PROTOCOL, "expected JSON in text frames, got a binary frame")
    assert bob.closed == (CLOSE_PROTOCOL, "too large")


async def test_so_many_messages_are_read_in_a_second(arena: SubmitterSurroundings) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")

    bob.says(*[Abort()] * 20)
    ann.says(*[Abort()] * 31)
    arena.passes(2)
    bob.says(*[Abort()] * 20)

    assert ann.closed == (CLOSE_PROTOCOL, "expected at most 10 messages a second")
    assert bob.closed is None


async def test_so_many_requests_wait_for_an_answer(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann").says(*[ListSubmissions()] * 20)

    assert "at most 16 requests" in (await ann.hears(Refused)).text


async def test_pings_and_fragments_count_as_messages_but_in_an_upload(
    arena: SubmitterSurroundings,
) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob").says(Submit("bot.py", 1000))
    await bob.hears(Send)

    for _ in range(40):
        arena.sockets.on_trivial_frame(ann)
        arena.sockets.on_trivial_frame(bob)

    assert ann.closed is not None
    assert bob.closed is None


async def test_who_does_not_answer_pings_is_cut(arena: SubmitterSurroundings) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")

    arena.passes(21)
    arena.sockets.ponged(bob, b"", arena.now)
    arena.passes(21)

    assert (ann.pings, ann.is_cut) == (1, True)
    assert (bob.pings, bob.is_cut) == (2, False)


async def test_pongs_that_nobody_asked_for_count_as_messages(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")

    for _ in range(40):
        arena.sockets.ponged(ann, b"", arena.now)

    assert ann.closed is not None


async def test_who_does_not_read_is_cut(arena: SubmitterSurroundings) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")
    ann.is_behind = bob.is_behind = True

    arena.passes(10)
    bob.is_behind = False
    arena.sockets.drained(bob)
    arena.passes(11)

    assert (ann.is_cut, bob.is_cut) == (True, False)


async def test_a_failure_of_the_arena_is_no_fault_of_the_peer(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")
    monkeypatch.setattr(arena.running.service, "submissions", None)
    monkeypatch.setattr(arena.running.service, "receive", None)

    refused = [
        await ann.says(Submit("bot.py", 10)).hears(Refused),
        await bob.says(ListSubmissions()).hears(Refused),
    ]

    assert {one.text for one in refused} == {"the arena failed at this; its log says why"}
    assert arena.blamed == 0


async def test_who_met_a_failure_at_once_may_come_back(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = arena.enters("ann")
    monkeypatch.setattr(arena.sockets, "_begin", None)

    ann.says(Submit("bot.py", 10))

    assert ann.closed == (CLOSE_CRASHED, "the arena failed; come back")
    assert arena.blamed == 0


async def test_of_a_connection_that_is_gone_nothing_is_read(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    await ann.hears(Rules)
    ann.leaves()

    ann.says(ListSubmissions())
    arena.sockets.ponged(ann, b"", arena.now)
    arena.sockets.on_trivial_frame(ann)
    arena.sockets.drained(ann)
    arena.sockets.lost(ann)
    arena.sockets.misbehaved(ann, Oversize("too large"))

    assert ann.heard == []


def test_the_longest_log_fits_into_the_buffer_of_a_connection() -> None:
    lines = "what a bot wrote in a line\n"
    stderr = StderrOf("20261124-180000-1234", 1e9, 50, lines * (STDERR_BYTES // len(lines)))
    written = lines * (LOG_BYTES // len(lines))

    log = LogText(1, written, written, (stderr,) * MOST_STDERR)

    assert len(encode_to_submitter(log)) < socket._BUFFER_BYTES
