"""A game that the instructor starts by hand: the plan of its competition, but for who plays in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from arena.config import Config
from arena.forms import check_form
from arena.games import competition_settings
from arena.plan import WITH_MATCHES, Form, Plan, form_of, limits_of, plan_of
from arena.rules import Game
from arena.run import PAUSE_S
from protocol.errors import UsageError

__all__ = ["plan_by_hand"]


def plan_by_hand(
    game: Game,
    config: Config,
    usual: Plan | None = None,
    form: str | None = None,
    matches: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Plan:
    """What is played: as it is for whoever comes, but for what is said.

    Args:
        game: what.
        config: the file's limits and settings.
        usual: what is played when enough bots come, if the arena does that.
        form: one that is not the game's usual one.
        matches: how often each two meet, or each bot the dealer.
        settings: over those of the file; without any they are the usual ones.

    Raises:
        UsageError: the game is not played so.
    """
    chosen = form_of(game) if form is None else _form(form)
    check_form(game, chosen)
    has_matches = chosen in WITH_MATCHES
    if matches is not None and not has_matches:
        raise UsageError(
            f"expected matches with a round robin or a league, got {chosen.value}"
        )
    if settings is None and usual is not None:
        rules = usual.read_settings()
    else:
        own = config.games.get(game.name, {})
        rules = competition_settings(game, {**own, **(settings or {})})
    is_round_robin = chosen is Form.ROUND_ROBIN
    return plan_of(
        game,
        rules,
        (),
        chosen,
        matches=matches or (usual.matches if usual else config.serve.matches)
        if has_matches
        else 1,
        with_itself=is_round_robin and game.name == "ace_king_queen",
        limits=limits_of(chosen, config.limits),
        pause_s=PAUSE_S if chosen is Form.LADDER else 0.0,
    )


def _form(word: str) -> Form:
    try:
        return Form(word)
    except ValueError:
        known = ", ".join(form.value for form in Form)
        raise UsageError(
            f"expected a form that is one of: {known}; got {word!r}"
        ) from None
