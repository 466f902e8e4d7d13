"""Which names are the same, and which spelling is shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arena.games.names import (
    CONNECTED,
    Spellings,
    alike,
    is_process,
    process_name,
    public_name,
    spelled,
    version_label,
    versioned,
)
from protocol.errors import UsageError
from protocol.messages import Hello

UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u200b\u200d\u2060"
    "\u2800\u3164\ufe0f\ufeff\uffa0\U0001d159\U000e0100"
)
NAMES = st.text(st.sampled_from("aAbBßẞſſµéÉ\u0301\u0345İıΣς ／ｇﬁ½°K" + UNSEEN))


@pytest.mark.parametrize(
    "name", ["ANN", "Ann", "ａｎｎ", "𝐚𝐧𝐧", " ann ", *(f"an{letter}n" for letter in UNSEEN)]
)
def test_names_that_look_alike_are_the_same(name: str) -> None:
    assert alike(name) == alike("ann")


@pytest.mark.parametrize("name", ["anna", "a nn", "аnn", "ann/1", "änn", "an n"])
def test_names_that_differ_are_not(name: str) -> None:
    assert alike(name) != alike("ann")


def test_case_and_composition_of_all_scripts_count_as_one() -> None:
    assert alike("Straße") == alike("STRASSE")
    assert alike("ΣΟΦΟΣ") == alike("σοφος")
    assert alike("Zoë") == alike("zoe\u0308")


def test_a_bot_is_shown_with_the_version_that_has_played() -> None:
    assert versioned("ann", version_label(3)) == "ann v3"
    assert versioned("ann/two", CONNECTED) == "ann/two (connected)"
    assert versioned("ann", None) == versioned("ann", "") == "ann"


def test_a_name_that_nobody_can_see_is_like_none() -> None:
    assert alike(UNSEEN) == ""


@given(st.one_of(NAMES, st.text()))
@example("ᾳ\u0345")
def test_what_is_compared_is_compared_to_itself(name: str) -> None:
    assert alike(alike(name)) == alike(name)


@given(NAMES)
@example("\u0345\u0301")
def test_every_way_to_write_a_name_is_the_same(name: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert alike(unicodedata.normalize(form, name)) == alike(name)
    assert alike("\u200b".join(name)) == alike(name)


# --- spellings ---


def test_the_first_spelling_is_the_one() -> None:
    names = Spellings(["Ann", "Ben"])

    assert [names.of(name) for name in ("ANN", "Ann", "ben", "cem")] == ["Ann", "Ann", "Ben", "cem"]
    assert "aNN" in names
    assert "cem" not in names


def test_names_of_one_owner_begin_alike() -> None:
    names = Spellings(["Ann/Gin"])

    assert names.of("ann/gin") == "Ann/Gin"
    assert names.of("ANN/tonic") == "Ann/tonic"
    assert names.of("ANN") == "Ann"


def test_a_name_that_is_in_use_no_more_is_forgotten() -> None:
    names = Spellings()
    for name in ("Ann/1", "Ann/1", "Ann/2"):
        names.add(name)
    for name in ("Ann/1", "Ann/2"):
        names.remove(name)

    assert names.of("ANN/1") == "Ann/1"

    names.remove("Ann/1")

    assert names.of("ANN/1") == "ANN/1"
    assert names._uses == {}


def test_two_that_were_in_use_before_they_counted_as_one_stay_two() -> None:
    names = Spellings(["Ann", "ann"])

    assert [names.of(name) for name in ("ann", "Ann", "ANN")] == ["ann", "Ann", "Ann"]


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [("ANN", ["Ann", "ben"], "Ann"), ("ann", ["Ann", "ann"], "ann"), ("cem", ["Ann"], "cem")],
)
def test_a_name_is_spelled_as_it_is_known(name: str, known: list[str], found: str) -> None:
    assert spelled(name, known) == found


def test_processes_of_a_bot_have_its_public_name() -> None:
    names = [process_name("ann/two", number) for number in (1, 12)]

    assert len({*names, "ann/two"}) == 3
    assert {public_name(name) for name in (*names, "ann/two")} == {"ann/two"}
    assert [is_process(name) for name in (*names, "ann/two")] == [True, True, False]


def test_no_bot_can_say_that_it_is_a_process() -> None:
    with pytest.raises(UsageError, match="printable letters"):
        Hello(1, process_name("ann", 1), ("blackjack",))
