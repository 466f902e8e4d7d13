"""Where an arena takes submissions, and where the built programs lie."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from arena.cli import _submissions
from arena.cli._addresses import Endpoint
from arena.cli._submissions import cache_folder, check_safety
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.databases import Server

NEAR = Endpoint("127.0.0.1", 0, False, False, None, (), True, (), ())


@pytest.fixture
def unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_submissions, "unsafe_because", lambda limits: ("no isolation: buy one",))


@pytest.mark.usefixtures("unsafe")
def test_an_arena_that_cannot_isolate_takes_no_submissions() -> None:
    with pytest.raises(UsageError, match="not safe on this machine: no isolation: buy one; "):
        check_safety(Limits(), NEAR, without_isolation=False)


@pytest.mark.usefixtures("unsafe")
def test_on_loopback_it_may_say_what_everybody_could_read() -> None:
    text = check_safety(Limits(), NEAR, without_isolation=True)

    assert "other students' programs too (no isolation: buy one)" in text


@pytest.mark.parametrize("changes", [{"host": "0.0.0.0"}, {"proxies": ("127.0.0.1",)}])
def test_without_isolation_nobody_else_may_connect(changes: dict[str, object]) -> None:
    elsewhere = msgspec.structs.replace(NEAR, **changes)

    with pytest.raises(UsageError, match="only where the arena listens on this machine alone"):
        check_safety(Limits(), elsewhere, without_isolation=True)


def test_where_it_is_safe_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_submissions, "unsafe_because", lambda limits: ())

    assert check_safety(Limits(), NEAR, without_isolation=False) == ""


def test_programs_are_built_beside_the_file_of_the_database(tmp_path: Path) -> None:
    with Store(tmp_path / "class.db") as store:
        assert cache_folder(store) == tmp_path / "class.db-submissions"


def test_of_a_server_s_database_they_are_built_in_the_user_s_cache(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Store(postgres.url()) as store:
        folder = cache_folder(store)

    assert folder.parent == tmp_path / "card-arena"


@pytest.mark.parametrize("language", ["rust", ""])
def test_a_starter_is_in_a_language_that_there_is(language: str) -> None:
    with pytest.raises(UsageError, match="expected one of python, "):
        _submissions._starter("akq", language)


def test_a_starter_says_which_file_is_to_be_changed() -> None:
    made = _submissions._starter("akq", "go")

    assert made.edit in made.files
