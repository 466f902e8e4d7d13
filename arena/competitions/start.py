"""A game that the instructor starts by hand: the choices, and its competition's plan. Pure.

`startable` describes a game for a form on the page: its forms, and its settings with their bounds.
The players of the plan are filled in later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import inspect

from arena.competitions.config import Config
from arena.competitions.planned_run import PAUSE_S
from arena.formats.formats import check_form, forms_for
from arena.formats.spec import WITH_MATCHES, Form, Plan, form_of, limits_of, plan_of
from arena.games.catalogue import competition_settings
from arena.games.rules import Game
from protocol.errors import UsageError
from protocol.schema.docstrings import of_class

__all__ = ["FormChoice", "Setting", "Startable", "plan_by_hand", "startable"]


class FormChoice(msgspec.Struct, frozen=True):
    """A form of a game; `matches` is how often each two meet by default, `null` where fixed."""

    form: str
    matches: int | None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a game.

    Attributes:
        name: its name in the rulebook and in `settings`.
        about: what it is, in a sentence.
        kind: `integer`, `switch` (true or false) or `choice`.
        optional: whether it may be left out; then the arena finds a value, or does without.
    """

    name: str
    about: str
    kind: Literal["integer", "switch", "choice"]
    default: int | str | None = None
    optional: bool = False
    least: int | None = None
    most: int | None = None
    choices: tuple[int | str, ...] = ()


class Startable(msgspec.Struct, frozen=True):
    """A game that can be started: its forms, the usual one first, and its settings."""

    name: str
    title: str
    forms: tuple[FormChoice, ...]
    settings: tuple[Setting, ...]


def startable(game: Game, config: Config, usual: Plan | None = None) -> Startable:
    """Return the choices for a game started by hand; `usual` is what the arena plays anyway."""
    plan = plan_by_hand(game, config, usual)
    forms = (
        FormChoice(form.value, plan.matches if form in WITH_MATCHES else None)
        for form in forms_for(game)
    )
    about, info = of_class(game.vocabulary.settings), inspect.type_info(game.vocabulary.settings)
    assert isinstance(info, inspect.StructType), "settings are a struct"
    settings = (
        _setting(
            each.type, name=each.name, about=about.of(each.name), default=plan.settings[each.name]
        )
        for each in info.fields
    )
    return Startable(game.name, game.vocabulary.title, tuple(forms), tuple(settings))


def _setting(kind: inspect.Type, **fields: Any) -> Setting:
    match kind:
        case inspect.BoolType():
            return Setting(kind="switch", **fields)
        case inspect.IntType(ge=least, le=most):
            return Setting(kind="integer", least=least, most=most, **fields)
        case inspect.LiteralType(values=values):
            choices = tuple(value for value in values if value is not None)
            return Setting(kind="choice", choices=choices, **fields)
        case inspect.UnionType(types=types):
            [given] = (each for each in types if not isinstance(each, inspect.NoneType))
            return _setting(given, **fields | {"default": None, "optional": True})
    raise AssertionError(f"no setting is {kind}")


def plan_by_hand(
    game: Game,
    config: Config,
    usual: Plan | None = None,
    form: str | None = None,
    matches: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Plan:
    """Make the plan of a competition that is started by hand, without its players.

    Raises `UsageError` if the game cannot be played in that way.

    Args:
        usual: the plan that the arena plays when enough bots come, if it does.
        form: None for the game's usual one.
        matches: the number of matches for each pair of bots, or for each bot in a league; None
            for the usual number.
        settings: override those of the file; None for the usual ones.
    """
    chosen = form_of(game) if form is None else _form(form)
    check_form(game, chosen)
    has_matches = chosen in WITH_MATCHES
    if matches is not None and not has_matches:
        raise UsageError(f"expected matches with a round robin or a league, got {chosen.value}")
    if settings is None and usual is not None:
        rules = usual.read_settings()
    else:
        own = config.games.get(game.name, {})
        rules = competition_settings(game, {**own, **(settings or {})})
    return plan_of(
        game,
        rules,
        (),
        chosen,
        matches=matches or (usual.matches if usual else config.serve.matches) if has_matches else 1,
        with_itself=chosen is Form.ROUND_ROBIN and game.meets_itself,
        limits=limits_of(chosen, config.limits),
        pause_s=PAUSE_S if chosen is Form.LADDER else 0.0,
    )


def _form(word: str) -> Form:
    try:
        return Form(word)
    except ValueError:
        known = ", ".join(form.value for form in Form)
        raise UsageError(f"expected a form that is one of: {known}; got {word!r}") from None
