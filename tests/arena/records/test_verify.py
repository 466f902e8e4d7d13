"""Checks of single matches: each kind of damage has its words, and no flipped bit goes unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arena
from arena.engine.match import MatchResult, Record
from arena.engine.shuffle import commitment
from arena.games import GAMES as INSTALLED
from arena.games import game_named
from arena.records.digest import sealed
from arena.records.document import MatchDocument, read, stored_text
from arena.records.verify import PlannedMatch, check, check_record
from bots.strategy import RandomMixin
from protocol.entry_points import Package
from protocol.errors import UsageError, one_line
from protocol.messages import Ending, Termination
from tests.support.sample_database import SHORT, play, verdict_of, void

GAMES = sorted(SHORT)
replace = msgspec.structs.replace


def document(result: MatchResult, record: bytes | None = None, **rows: Any) -> MatchDocument:
    """A document of a result, with its seal; `rows` replace what the record says."""
    raw = result.record.to_json() if record is None else record
    unsealed = MatchDocument(
        match="m-1",
        competition="c-1",
        pairing=1,
        players=("ann", "ben", "cem", "dee")[: len(result.scores)],
        game=result.record.game,
        scores=result.scores,
        points=result.points,
        termination=result.termination,
        started_at=1.0,
        finished_at=2.5,
        digest="",
        record=msgspec.Raw(raw),
    )
    changed = replace(unsealed, **rows)
    return replace(changed, digest=sealed(changed))


def result_of(record: Record) -> MatchResult:
    return MatchResult(record.scores, record.points, record.termination, record=record)


def reasons(result: MatchResult, **changes: Any) -> tuple[str, ...]:
    """Why a match does not fit whose record, and rows with it, were changed before the seal."""
    return check(document(result_of(replace(result.record, **changes)))).reasons


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("offender", [None, 0])
def test_a_match_as_it_was_played_fits(game: str, offender: int | None) -> None:
    result = play(game, offender=offender, note="mind the gap ☃")

    checked = check(document(result), PlannedMatch(game, result.record.settings))

    assert checked.reasons == ()
    assert checked.is_committed
    assert checked.is_dealt


@pytest.mark.parametrize("game", GAMES)
def test_a_match_that_never_began_fits(game: str) -> None:
    checked = check(document(void(game)))

    assert checked.reasons == ()
    assert not checked.is_dealt


def test_a_match_of_no_hands_that_never_began_fits() -> None:
    assert reasons(void("ace_king_queen"), settings={"hands": 0}) == ()


@pytest.mark.parametrize("game", GAMES)
def test_a_match_without_a_network_fits_by_itself(game: str) -> None:
    bots = [RandomMixin() for _ in range(game_named(game).seats)]
    result = arena.play(game, bots, settings=SHORT[game], seed=1)

    checked = check_record(result.record)

    assert checked.reasons == ()
    assert not checked.is_committed


def test_a_record_of_before_commitments_fits() -> None:
    result = play("gin_rummy")
    fields = msgspec.json.decode(result.record.to_json())
    del fields["commitment"], fields["times_ms"]

    checked = check(document(result, record=msgspec.json.encode(fields)))

    assert checked.reasons == ()
    assert not checked.is_committed


# ---- What is wrong, in words


def test_a_score_that_the_answers_do_not_make() -> None:
    result = play("three_card_poker")
    [score] = result.scores

    assert check(document(result, scores=(score + 2,))).reasons == (
        f"its score says {score + 2}, the answers make {score}",
    )


def test_a_score_that_only_the_record_has_wrong() -> None:
    result = play("ace_king_queen")
    one, other = result.scores
    record = replace(result.record, scores=(one + 1, other)).to_json()

    assert check(document(result, record)).reasons == (
        f"its record's score at seat 1 says {one + 1}, the answers make {one}",
    )


def test_points_and_endings_that_the_answers_do_not_make() -> None:
    result = play("gin_rummy")
    ended = Termination(Ending.TIMEOUT, 1, "slow")

    assert check(document(result, points=(7, 7), termination=ended)).reasons == (
        "its points at seat 1 says 7, the answers make 0",
        "its points at seat 2 says 7, the answers make 0",
        "its ending says timeout of seat 2 (slow), the answers make completed",
    )


def test_a_seat_row_that_is_missing() -> None:
    result = play("ace_king_queen")
    rows: dict[str, Any] = {"players": ("ann",), "scores": result.scores[:1], "points": (0,)}

    found = check(document(result, **rows)).reasons

    assert "it has 1 players for 2 seats" in found
    assert "its score is of 1 seats, the answers make 2" in found


def test_no_seat_rows_at_all() -> None:
    rows: dict[str, Any] = {"players": (), "scores": (), "points": ()}

    assert "it has 0 players for 2 seats" in check(document(play("ace_king_queen"), **rows)).reasons


def test_a_seed_that_was_not_committed_to() -> None:
    result = play("ace_king_queen")

    assert reasons(result, commitment=commitment(b"another"))[0] == (
        "its commitment is not the hash of its seed"
    )


@pytest.mark.parametrize("seed", ["", "zz", "17" * 31, "AB" * 32, " " + "17" * 31])
def test_a_seed_that_is_none(seed: str) -> None:
    found = reasons(play("ace_king_queen"), seed=seed)

    assert found[0] == f'its seed is "{seed}", expected 64 digits of hex'


def test_nonces_of_another_number_or_shape() -> None:
    result = play("ace_king_queen")
    one, other = result.record.nonces

    assert "it has 1 nonces for 2 seats" in reasons(result, nonces=(one,))
    assert "it has 3 nonces for 2 seats" in reasons(result, nonces=(one, other, "x"))
    assert "the nonce of seat 2 has more than 64 characters" in reasons(
        result, nonces=(one, "x" * 65)
    )
    assert "cards were dealt without a nonce of seat 1" in reasons(result, nonces=("", other))


def test_times_that_are_missing() -> None:
    result = play("ace_king_queen")
    count = len(result.record.answers)

    assert reasons(result, times_ms=result.record.times_ms[1:]) == (
        f"it has {count - 1} times for {count} answers",
    )


def test_answers_that_are_illegal_missing_or_too_many() -> None:
    result = play("ace_king_queen")
    answers, times = result.record.answers, result.record.times_ms

    [illegal] = reasons(result, answers=("raise", *answers[1:]))
    [missing] = reasons(result, answers=answers[:-1], times_ms=times[1:])
    [more] = reasons(result, answers=(*answers, "bet"), times_ms=(*times, 1))

    assert illegal.startswith('it cannot be played again: seat 1 answered "raise" to')
    assert missing.startswith("it cannot be played again: the record says completed,")
    assert more.startswith("it cannot be played again: answer ")


def test_an_unknown_game_and_settings_that_are_none() -> None:
    result = play("ace_king_queen")

    assert reasons(result, game="poker")[0].startswith("it cannot be played again: ")
    assert reasons(result, settings={"hands": "4"})[0].startswith(
        "it cannot be played again: settings of ace_king_queen: "
    )


@pytest.mark.parametrize("game", GAMES)
def test_a_package_does_not_hide_forged_scores_of_a_game_of_ours(game: str) -> None:
    played = play(game)
    scores = tuple(score + 1 for score in played.record.scores)
    forged = replace(played.record, scores=scores, package="x 1")

    for checked in check_record(forged), check(document(result_of(forged))):
        named, *others = checked.reasons
        assert named == f'it names the package "x 1", expected none: {game} is a game of ours'
        assert any("score" in reason for reason in others)
        assert checked.unverified is None


def test_a_package_that_the_plan_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    game = "high_low"
    outside = replace(INSTALLED[game], package=Package("leduc", "1.0"))
    monkeypatch.setitem(INSTALLED, game, outside)
    result = play(game)
    settings = result.record.settings

    def why(package: str | msgspec.UnsetType) -> tuple[str, ...]:
        return check(document(result), PlannedMatch(game, settings, package)).reasons

    assert why("leduc 1.0") == why("leduc 0.9") == ()  # it may go on by a newer version
    assert why("x 1") == (
        'it was played by the package "leduc", its competition is of the package "x"',
    )
    assert why(msgspec.UNSET) == (
        'it was played by the package "leduc", its competition is of a game of ours',
    )
    changed = check(
        document(result_of(replace(result.record, package="leduc 0.9"))),
        PlannedMatch(game, settings, "leduc 1.0"),
    )
    assert changed.reasons == ()
    assert changed.unverified is not None


def test_a_game_or_settings_of_another_plan() -> None:
    result = play("ace_king_queen")

    assert check(document(result), PlannedMatch("ace_king_queen", {"hands": 6})).reasons == (
        'it was played by other settings than its competition: "hands"',
    )
    assert check(document(result), PlannedMatch("gin_rummy", {"hands": 4})).reasons == (
        'it was a match of "ace_king_queen", its competition is in gin_rummy',
    )
    # A plan may leave out what is as by default, as those of before 0.2 do.
    short = play("gin_rummy")
    assert check(document(short), PlannedMatch("gin_rummy", SHORT["gin_rummy"])).reasons == ()
    assert len(short.record.settings) > len(SHORT["gin_rummy"])
    assert check(document(short), PlannedMatch("gin_rummy", {})).reasons == (
        'it was played by other settings than its competition: "max_rounds"',
    )
    assert check(document(result), PlannedMatch("ace_king_queen", {"hand": 4})).reasons == (
        'it was played by other settings than its competition: "hand", "hands"',
    )
    assert check(document(result, game="gin_rummy")).reasons == (
        'its game says "gin_rummy", the record "ace_king_queen"',
    )


def test_an_offence_of_nobody_and_one_of_a_seat_that_there_is_not() -> None:
    result = play("ace_king_queen", offender=0)

    nobody = Termination(Ending.ILLEGAL, None, "x")
    assert reasons(result, termination=nobody) == ("its ending says illegal (x), which cannot be",)
    far = Termination(Ending.ILLEGAL, 2, "x")
    assert reasons(result, termination=far) == ("its ending says illegal of seat 3 (x), of 2",)


def test_an_illegal_answer_of_a_seat_that_was_not_asked() -> None:
    result = play("ace_king_queen", offender=0)
    ended = result.termination
    other = replace(ended, seat=1)

    text = one_line(ended.text, 80)
    assert reasons(result, termination=other) == (
        f"its ending says illegal of seat 2 ({text}), but seat 1 was asked",
    )
    # Any seat can be lost at any time, whoever is asked.
    assert reasons(result, termination=replace(other, kind=Ending.DISCONNECT)) == ()


@pytest.mark.parametrize("game", GAMES)
def test_what_was_asked_when_an_offence_ended_it(game: str) -> None:
    result = play(game, offender=0)
    verdict = verdict_of("m-1", ("ann", "ben", "cem", "dee"), result)

    asked = check(document(result)).asked

    assert asked is not None
    assert (asked.seat, asked.question, asked.legal) == (0, verdict.asked, verdict.legal)
    assert check_record(result.record).asked == asked
    assert check(document(play(game))).asked is None
    assert check(document(void(game))).asked is None


def test_a_row_without_the_nul_that_its_record_has() -> None:
    """PostgreSQL's texts hold none."""
    record = replace(
        play("ace_king_queen").record,
        answers=(),
        times_ms=(),
        scores=(0, 0),
        termination=Termination(Ending.CRASH, 0, "a\0b"),
    )
    result = result_of(record)

    rows = Termination(Ending.CRASH, 0, stored_text("a\0b"))
    assert rows.text == "a\N{REPLACEMENT CHARACTER}b"
    assert check(document(result, termination=rows)).reasons == ()
    other = Termination(Ending.CRASH, 0, "ab")
    assert check(document(result, termination=other)).reasons == (
        "its ending says crash of seat 1 (ab), "
        "the answers make crash of seat 1 (a\N{REPLACEMENT CHARACTER}b)",
    )


def test_cards_that_were_given() -> None:
    result = arena.play(
        "ace_king_queen",
        [RandomMixin(), RandomMixin()],
        decks=[["A", "K"]] * 4,
        settings=SHORT["ace_king_queen"],
    )

    assert check_record(result.record).reasons == ()
    assert check(document(result)).reasons == (
        "its cards were given, expected a seed that they were drawn from",
    )


def test_a_record_with_more_in_it_than_there_was() -> None:
    result = play("ace_king_queen")
    raw = result.record.to_json()

    assert check(document(result, raw[:-1] + b',"more":1}')).reasons == (
        "its record is not what its cards and answers make",
    )


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"null", b"\xff", b"{}", b'{"game":"\x00"}', b'{"answers":' + b"[" * 9999]
)
def test_a_record_that_cannot_be_read(raw: bytes) -> None:
    [reason] = check(document(play("ace_king_queen"), raw)).reasons

    assert reason.startswith("its record cannot be read: ")


def test_a_record_that_was_cut_off() -> None:
    result = play("high_low")
    raw = result.record.to_json()

    assert check(document(result, raw[: len(raw) // 2])).reasons == (
        "its record cannot be read: input data was truncated",
    )


def test_many_reasons_are_a_few() -> None:
    result = play("high_low")

    found = check(document(result, scores=(99,) * 4, points=(9,) * 4)).reasons

    assert len(found) == 4
    assert found[-1] == "and 5 reasons more"


def test_rows_that_no_arena_writes() -> None:
    odd: Any = ("3", None)

    found = check(document(play("ace_king_queen"), scores=odd)).reasons

    assert found[0].startswith('its score at seat 1 says "3", the answers make ')


# ---- One flipped bit


def flipped(data: bytes, bit: int) -> bytes:
    """The bytes with one bit turned round."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


DOCUMENTS = [
    document(result)
    for game in GAMES
    for result in (play(game), play(game, offender=0), void(game))
]


@given(st.sampled_from(DOCUMENTS), st.integers(min_value=0))
def test_no_bit_of_a_record_can_be_flipped(one: MatchDocument, where: int) -> None:
    raw = bytes(one.record)

    changed = flipped(raw, where % (8 * len(raw)))

    assert check(replace(one, record=msgspec.Raw(changed))).reasons


@given(st.sampled_from(DOCUMENTS), st.integers(min_value=0))
def test_no_bit_of_a_document_can_be_flipped(one: MatchDocument, where: int) -> None:
    data = one.to_json()
    changed = flipped(data, where % (8 * len(data)))

    try:
        again = read(changed)
    except UsageError:
        return
    if isinstance(again, MatchDocument) and not check(again).reasons:
        # The name of a field may be hit whose value is the default.
        assert again.to_json() == one.to_json()


@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_forged_record_with_a_seal_of_its_own_is_found(
    one: MatchDocument, data: st.DataObject
) -> None:
    """A forger who computes the digest again still has to make cards, answers and result fit."""
    record = one.read_record()
    forge: Callable[[Record], Record] = data.draw(
        st.sampled_from(
            [
                lambda old: replace(old, scores=(old.scores[0] + 5, *old.scores[1:])),
                lambda old: replace(old, seed=commitment(b"x")),
                lambda old: replace(old, commitment=commitment(b"x")),
                lambda old: replace(old, nonces=(*old.nonces, "x")),
                lambda old: replace(old, answers=(*old.answers, "x")),
                lambda old: replace(old, settings={"hands": -1}),
            ]
        )
    )

    assert check(document(result_of(forge(record)))).reasons
