"""Whose a name in results is, after names have changed."""

from __future__ import annotations

from arena.storage.roster import Change, NameHistory

PEOPLE = {"anna": "Anna", "ben": "Ben"}


def test_a_bot_is_its_owners_however_the_name_is_spelled() -> None:
    history = NameHistory(PEOPLE)

    assert history.owner("ben", 1.0) == "Ben"
    assert history.owner("BEN/gin", 1.0) == "Ben"
    assert history.owner("zoe", 1.0) is None


def test_who_was_renamed_is_found_under_the_old_name_until_then() -> None:
    history = NameHistory(PEOPLE, [Change(10.0, "ann", "ana"), Change(20.0, "ana", "anna")])

    assert history.owner("ann/gin", 9.0) == "Anna"
    assert history.owner("ana", 15.0) == "Anna"
    assert history.owner("ann", 15.0) is None, "nobody had that name then"
    assert history.owner("anna", 25.0) == "Anna"


def test_who_was_removed_is_nobody_before_and_a_later_owner_of_the_name_is_another() -> None:
    history = NameHistory(PEOPLE, [Change(10.0, "ben", None)])

    assert history.owner("ben", 9.0) is None
    assert history.owner("ben", 11.0) == "Ben"


def test_an_exact_spelling_wins_over_one_that_looks_alike() -> None:
    history = NameHistory({"Ann": "first", "ANN": "second"})

    assert [history.owner(name, 0.0) for name in ("Ann", "ANN", "ann")] == [
        "first",
        "second",
        "first",
    ]
