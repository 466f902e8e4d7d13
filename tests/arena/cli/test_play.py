from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arena

Run = Callable[..., Any]


def test_one_match_is_the_one_that_arena_play_plays(run: Run, bot_file: Callable[..., str]) -> None:
    class First:
        def decide(self, question: Any) -> object:
            return question.legal[0]

        def hear(self, news: Any) -> None:
            pass

        def reset(self) -> None:
            pass

    path = bot_file()
    document = run("play", "akq", path, path, "--seed", "5", "--json").document

    result = arena.play("akq", [First(), First()], seed=5)
    assert tuple(bot["score"] for bot in document["bots"]) == result.scores
