from __future__ import annotations

import inspect
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import arena
from arena.authoring.strategy_source import interface
from arena.games.catalogue import GAMES
from bots.strategy import BaseStrategy
from protocol import high_low
from tests.support.in_process import CommandProcess
from tests.support.toy_games import write_toy


def written(game: str) -> type[Any]:
    """A bot that has all that `interface` says, and a `super` that is never asked."""
    found = interface(game)
    methods = "\n".join(f"    {line}" for method in found.methods for line in method.splitlines())
    source = "\n".join([*found.imports, f"class Bot({found.base}):", methods])
    module: dict[str, Any] = {"__name__": "bot"}
    exec(source, module)
    cls: type[Any] = module["Bot"]
    return cls


def methods(cls: type[Any]) -> dict[str, tuple[list[str], str | None]]:
    """The parameters and the docstring of each method that a student may replace."""
    return {
        name: ([*inspect.signature(method).parameters], inspect.getdoc(method))
        for name, method in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_") and not hasattr(BaseStrategy, name)
    }


@pytest.mark.parametrize("game", GAMES)
def test_all_methods_are_there_and_do_what_the_base_class_does(game: str) -> None:
    base, bot = import_module(f"bots.{game}").PlayerStrategy, written(game)
    records = []
    assert methods(bot) == methods(base)
    assert {*methods(base)} <= {*vars(bot)}
    for cls in (base, bot):
        bots = [cls() for _ in range(GAMES[game].seats)]
        for seat, bot in enumerate(bots):
            bot.random = random.Random(seat)
        result = arena.play(game, bots, seed=1)
        records.append(result.record.to_json())

        assert result.termination.kind == "completed"
    assert records[0] == records[1]


def test_a_game_without_an_interface_has_a_method_that_answers_at_random() -> None:
    bot = written("no_such_game")()

    assert bot.decide(high_low.Bid("As", "2s", (None,) * 4, ("quit",))) == "quit"


@pytest.mark.e2e
@pytest.mark.parametrize("broken", ["class PlayerStrategy:\n    def (", "raise SystemExit"])
def test_a_game_whose_house_bots_are_left_out_has_that_method_too(
    tmp_path: Path, broken: str
) -> None:
    game = write_toy(tmp_path / "toys", 2)
    (tmp_path / "toys" / game / "bots.py").write_text(broken)
    made = tmp_path / "made"
    with CommandProcess.beside(tmp_path / "toys") as commands:
        ran = commands.arena(tmp_path, "new", game, str(made))

    assert ran.status == 0, ran.err
    assert "is left out" in ran.err
    assert "Traceback" not in ran.err
    assert "choose(question.legal, self.random)" in (made / "bot.py").read_text()
