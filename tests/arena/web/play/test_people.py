"""What a person may choose: defaults for people, and bounds."""

from __future__ import annotations

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.web.play.people import settings_for
from protocol.errors import UsageError


@pytest.mark.parametrize("game", GAMES)
def test_what_a_person_may_choose_has_bounds(game: str) -> None:
    rules = GAMES[game]

    assert settings_for(rules, {}) == rules.vocabulary.read_settings(rules.for_people)
    for choice in rules.choices:
        for value in (choice.least, choice.most):
            settings = settings_for(rules, {choice.setting: value})
            assert getattr(settings, choice.setting) == value
        with pytest.raises(UsageError, match=f"{choice.setting} of at most {choice.most:,}"):
            settings_for(rules, {choice.setting: choice.most + 1})


def test_a_setting_of_less_than_a_person_may_choose_is_refused() -> None:
    [choice] = GAMES["ace_king_queen"].choices
    more = msgspec.structs.replace(choice, least=10)
    rules = msgspec.structs.replace(GAMES["ace_king_queen"], choices=(more,))

    with pytest.raises(UsageError, match="expected hands of at least 10 with a person"):
        settings_for(rules, {"hands": 9})


def test_a_match_without_such_bounds_has_an_end_all_the_same() -> None:
    rules = msgspec.structs.replace(GAMES["ace_king_queen"], choices=())

    with pytest.raises(UsageError, match=r"at most 200,000 decisions .* got one of about 1,5"):
        settings_for(rules, {"hands": 1_000_000})
