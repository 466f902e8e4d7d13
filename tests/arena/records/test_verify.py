"""Checks of single matches: each kind of damage has its words, and no flipped bit goes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

import arena
from arena.games.catalogue import GAMES as INSTALLED
from arena.games.catalogue import game_named
from arena.games.match import MatchResult, Record
from arena.games.shuffle import commitment
from arena.records.document import MatchDocument, read, sealed, stored_text
from arena.records.verify import PlannedMatch, check, check_record
from bots.strategy import RandomMixin
from protocol.entry_points import Package
from protocol.errors import UsageError
from protocol.messages import Ending, Termination
from tests.support.cases import CaseFile
from tests.support.sample_database import SHORT, play, verdict_of, void

CASES = CaseFile(Path(__file__).with_name("verify.cases"))
GAMES = sorted(SHORT)


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


def test_a_record_of_before_a_setting_fits() -> None:
    result = play("blackjack")
    usual = msgspec.to_builtins(game_named("blackjack").vocabulary.read_settings(None))
    played = result.record.settings
    earlier = {name: value for name, value in played.items() if value != usual[name]}

    assert 0 < len(earlier) < len(played)
    assert reasons(result, settings=earlier) == ()
    assert reasons(result, settings=usual) != ()


# ---- What is wrong, in words


TYPES = {field.name: field.type for kind in (MatchDocument, Record) for field in fields(kind)}


def checked(line: str) -> tuple[str, ...]:
    """Why the match of a line does not fit."""
    (game, *offends), *changes = (part.split() for part in line.split(" · "))
    result = play(game_named(game).name, offender=0 if offends else None)
    raw, rows, planned = result.record.to_json(), dict[str, Any](), None
    for what, *words in changes:
        if what == "planned":
            planned = PlannedMatch(words[0], json.loads(words[1]))
            continue
        texts = (word.split("=", 1) for word in words)
        values = {name: msgspec.convert(json.loads(text), TYPES[name]) for name, text in texts}
        if what == "rows":
            rows = values
        else:
            record = replace(result.record, **values)
            raw = record.to_json()
            result = result_of(record) if what == "record" else result
    return check(document(result, raw, **rows), planned).reasons or ("it fits",)


@pytest.mark.parametrize("title", CASES.titles)
def test_what_does_not_fit_is_said(title: str) -> None:
    CASES.check(title, checked)


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
