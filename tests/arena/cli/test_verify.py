"""`arena verify`: databases and documents, one line for each flaw, and the exit status."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.games import GAMES
from arena.storage.reader import document_of
from arena.storage.store import Store
from arena.storage.submissions import Submissions
from protocol.entry_points import Package
from tests.support.sample_database import play, write
from tests.support.submitted_programs import enrol, hand_in

TRANSCRIPTS = Path(__file__).parents[3] / "protocol" / "vectors" / "transcripts"

if TYPE_CHECKING:
    from tests.arena.cli.conftest import Ran, Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "arena.db", ("ace_king_queen", "three_card_poker"))


def flaw(ran: Ran) -> str:
    """The one flaw that a command printed, which is its exit status."""
    assert ran.status == 1
    [line] = ran.out.splitlines()
    return line


def change(file: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


def sheets(file: Path) -> list[bytes]:
    with Store(file, create=False) as store:
        return [document_of(*stored).to_json() for stored in store.sealed_matches()]


def test_a_database_that_fits(run: Run, file: Path) -> None:
    assert run("verify", str(file)) == (
        0,
        "7 matches (2 of them void or taken back) of 2 competitions: all fit\n",
        "",
    )


def test_what_was_handed_in_changes_nothing(run: Run, file: Path, tmp_path: Path) -> None:
    before = run("verify", str(file))
    with Store(file) as store:
        enrol(store.engine, "ann")
        made = hand_in(store.engine, "ann", b"a bot")
        Submissions(store.engine).disable(made.number, 1.0, "prof")

    assert run("verify", str(file)) == before
    assert run("export", str(tmp_path / "out"), "--db", str(file)).status == 0
    assert run("verify", str(tmp_path / "out")).status == 0


# ---- Games of other packages

replace = msgspec.structs.replace


@pytest.fixture(params=sorted(GAMES))
def outside(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, str]:
    """A database with a game that is as if it came from outside, in a version that is gone."""
    game = request.param
    monkeypatch.setitem(GAMES, game, replace(GAMES[game], package=Package("leduc", "1.0")))
    file = write(tmp_path / "arena.db", (game,))
    return file, game


def test_a_game_from_outside_is_verified_by_its_own_version(
    outside: tuple[Path, str], run: Run
) -> None:
    file, _ = outside

    assert run("verify", str(file)).text.endswith(" of 1 competition: all fit\n")
    assert b'"package":"leduc 1.0"' in sheets(file)[0]


@pytest.mark.parametrize("version", ["2.0", None])
def test_without_that_version_a_line_says_so_instead_of_wrong(
    outside: tuple[Path, str], version: str | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    if version is None:
        monkeypatch.delitem(GAMES, game)
        why = f"{game} of package leduc 1.0 is not installed"
    else:
        monkeypatch.setitem(GAMES, game, replace(GAMES[game], package=Package("leduc", version)))
        why = f"{game} was played by package leduc 1.0, and here it is of package leduc 2.0"

    ran = run("verify", str(file))

    matches = len(sheets(file))
    assert (ran.status, ran.err) == (3, "")
    assert ran.out.splitlines() == [
        f"note: competition {game}-00000000: its matches and its schedule cannot be verified: {why}",
        f"{matches} matches (1 of them void or taken back) of 1 competition: "
        f"{matches} not verified",
    ]
    document = json.loads(run("verify", str(file), "--json").out)
    assert (document["unverified"], document["failed"]) == (matches, [])


def test_a_document_is_not_verified_by_other_rules(
    outside: tuple[Path, str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    lines = tmp_path / "matches.jsonl"
    lines.write_bytes(b"".join(sheet + b"\n" for sheet in sheets(file)))
    monkeypatch.delitem(GAMES, game)

    ran = run("verify", str(lines))

    assert ran.status == 3
    assert ran.out.splitlines()[-2:] == [
        f"note: {lines}: cannot be verified: {game} of package leduc 1.0 is not installed",
        f"{len(sheets(file))} matches: {len(sheets(file))} not verified",
    ]


def test_what_is_wrong_without_the_rules_is_wrong(
    outside: tuple[Path, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, game = outside
    change(file, f"UPDATE seats SET score = 30000 WHERE match = '{game}-1'")
    monkeypatch.delitem(GAMES, game)

    ran = run("verify", str(file))

    assert ran.status == 1
    assert "says 30000, the record says" in ran.out


# ---- Flaws


def test_a_match_that_does_not_fit(run: Run, file: Path) -> None:
    change(file, "UPDATE seats SET score = 30 WHERE match = 'three_card_poker-3'")

    ran = run("verify", str(file))

    assert flaw(ran).startswith("match three_card_poker-3: its score says 30, the answers make ")
    assert ran.err == (
        "arena: 7 matches (2 of them void or taken back) of 2 competitions: 1 match not as recorded\n"
    )


def test_a_competition_that_does_not_fit(run: Run, file: Path) -> None:
    change(file, "DELETE FROM seats WHERE match = 'three_card_poker-3'")
    change(file, "DELETE FROM matches WHERE id = 'three_card_poker-3'")

    said = flaw(run("verify", str(file)))

    assert said == "competition three_card_poker-00000001: pairing 3, cem, has no match"


def test_one_competition_of_several(run: Run, file: Path) -> None:
    change(file, "UPDATE seats SET score = 30 WHERE match = 'three_card_poker-3'")

    assert run("verify", str(file), "--competition", "ace").out == (
        "3 matches (1 of them void or taken back) of 1 competition: all fit\n"
    )
    assert run("verify", str(file), "--competition", "three").status == 1
    assert "expected the id of a competition" in run(
        "verify", str(file), "--competition", "none"
    ).refusal(2)


def test_a_document_for_programs(run: Run, file: Path) -> None:
    assert run("verify", str(file), "--json").document == {
        "matches": 7,
        "uncounted": 2,
        "unverified": 0,
        "competitions": 2,
        "failed": [],
        "notes": [],
    }


def test_matches_that_were_exported(run: Run, file: Path, tmp_path: Path) -> None:
    one, every = tmp_path / "one.json", tmp_path / "all.jsonl"
    one.write_bytes(sheets(file)[0])
    every.write_bytes(b"\n".join(sheets(file)))

    assert run("verify", str(one)).out == "1 match: fits\n"
    assert run("verify", str(every)).out == "7 matches: all fit\n"
    assert run("verify", str(one), str(every)).out == "8 matches: all fit\n"


def test_one_exported_match_that_was_changed(run: Run, file: Path, tmp_path: Path) -> None:
    lines = sheets(file)
    lines[4] = lines[4].replace(b'"pairing":', b'"pairing":1')
    (tmp_path / "all.jsonl").write_bytes(b"\n".join([*lines, b"{}"]))

    ran = run("verify", str(tmp_path / "all.jsonl"))

    assert ran.status == 1
    assert ran.out.splitlines() == [
        "match three_card_poker-1: its digest does not fit its rows and its record",
        f"match {tmp_path / 'all.jsonl'}, line 8: its record cannot be read: "
        "object missing required field `game`",
    ]


@pytest.fixture
def exported(run: Run, file: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    assert run("export", str(folder), "--db", str(file), "--unfinished").status == 0
    return folder


@pytest.fixture
def matches(exported: Path) -> Path:
    return exported / "three_card_poker-00000001" / "matches.jsonl"


def test_a_folder_that_was_exported(run: Run, exported: Path) -> None:
    assert (
        run("verify", str(exported)).text
        == "7 matches (2 of them void or taken back) of 2 competitions: all fit\n"
    )


def test_an_export_whose_match_was_changed(run: Run, exported: Path, matches: Path) -> None:
    matches.write_text(matches.read_text().replace('"pairing":', '"pairing":1', 1))

    assert "its digest does not fit" in flaw(run("verify", str(exported)))


@pytest.mark.parametrize("left", [0, 1])
def test_an_export_that_lacks_matches(run: Run, exported: Path, matches: Path, left: int) -> None:
    lines = matches.read_bytes().splitlines(keepends=True)
    matches.write_bytes(b"".join(lines[:left]))

    assert flaw(run("verify", str(exported))) == (
        "competition three_card_poker-00000001: "
        f"expected {len(lines)} matches in {matches}, found {left}"
    )


def test_an_export_without_matches(run: Run, file: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "results")
    run("export", folder, "--db", str(file), "--no-matches")

    assert run("verify", folder).text.splitlines()[0] == (
        "note: competition ace_king_queen-00000000: the export has no records of its matches"
    )


@pytest.mark.parametrize("manifest", [None, b"{", b"[" * 100_000])
def test_a_folder_that_is_no_export(run: Run, tmp_path: Path, manifest: bytes | None) -> None:
    if manifest is not None:
        (tmp_path / "export.json").write_bytes(manifest)

    said = run("verify", str(tmp_path)).refusal(2)

    assert "expected a folder that arena export has written" in said


def test_a_bare_record(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(play("gin_rummy").record.to_json())

    assert run("verify", str(path)).out == "1 match: fits\n"


@pytest.mark.parametrize("content", [b"", b"nothing", b"\0\0\0", b"SQLite format 3\0 and no more"])
def test_a_file_that_is_neither(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)

    assert str(path) in run("verify", str(path)).refusal(2)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"{", b"[]", b"{\xff}", b'{"record":', b"{\0"])
def test_a_document_that_is_none(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)

    assert flaw(run("verify", str(path))).startswith(f"match {path}: ")


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    assert "found no file" in run("verify", str(tmp_path / "none.db")).refusal(2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:1000],
        lambda raw: raw[:20000] + bytes(len(raw) - 20000),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"CREATE TABLE", b"CREATE TRBLE"),
        lambda raw: raw.replace(b"ann", b"a\0n"),
        lambda raw: raw.replace(b"ann", b"\xff\xfen"),
    ],
)
def test_a_damaged_file_is_a_line_or_a_list(
    run: Run, file: Path, damage: Callable[[bytes], bytes]
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    file.write_bytes(damage(file.read_bytes()))

    ran = run("verify", str(file))

    assert ran.status in (1, 2)
    assert ran.failure(ran.status)


def test_as_a_process(run_process: Run, file: Path) -> None:
    assert (
        run_process("verify", str(file)).out
        == "7 matches (2 of them void or taken back) of 2 competitions: all fit\n"
    )


def test_transcripts(run: Run, file: Path, tmp_path: Path) -> None:
    names = ("ace_king_queen-1", "blackjack-1")
    places = [str(TRANSCRIPTS / f"{name}.jsonl") for name in names]
    (tmp_path / "one.json").write_bytes(sheets(file)[0])

    assert run("verify", *places).out == "2 matches: all fit\n"
    assert run("verify", *places, str(tmp_path / "one.json")).out == ("3 matches: all fit\n")
    assert "expected a database with --competition" in run(
        "verify", places[0], "--competition", "ace"
    ).refusal(2)


def test_a_transcript_that_was_changed(run: Run, tmp_path: Path) -> None:
    text = (TRANSCRIPTS / "blackjack-1.jsonl").read_bytes()
    path = tmp_path / "changed.jsonl"
    path.write_bytes(text.replace(b'"soft":false', b'"soft":true', 1))

    line = flaw(run("verify", str(path)))

    assert line.startswith(f"match {path}: line ")
    assert line.endswith("`soft` is true, expected false")
    assert run("verify", str(path), "--json").out.count("`soft`") == 1


def test_a_transcript_that_breaks_off(run: Run, tmp_path: Path) -> None:
    lines = (TRANSCRIPTS / "blackjack-1.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b"".join(lines[:5]))
    assert run("verify", str(path)).out == f"match {path}: it ends before `over`\n"

    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    assert run("verify", str(path)).out.startswith(f"match {path}: line 6: ")
