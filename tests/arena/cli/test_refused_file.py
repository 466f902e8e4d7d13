"""Why a FILE.py was refused, in three lines, from the text of the step that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.cli._refused_file import three_lines

BOT = """\
from bots.ace_king_queen import PlayerStrategy
import torch
class Bot(PlayerStrategy):
    def bet(self, card):
        return self.table[card]
    def decide(self, question):
        return "Bet"
"""
ENDED = """
expected: an answer to m:1
came:     it closed its standard output, its process: crashed: exit status 1
hint:     Something in the program failed at this message.
the end of its standard error:
"""
MEND = "mend that; `arena play` with the file and a house bot shows the same"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            f"{ENDED}arena: bot.py cannot be run: ModuleNotFoundError: No module named 'torch'",
            (
                "there is no module 'torch' where the arena runs your bot",
                "bot.py line 2: import torch",
                "do without torch, or ask your instructor to install it for the arena's Python",
            ),
            id="a module that is missing",
        ),
        pytest.param(
            f"{ENDED}arena: bot.py cannot be run: ModuleNotFoundError: No module named 'torch.nn'",
            (
                "there is no module 'torch.nn' where the arena runs your bot",
                "bot.py",
                "do without torch.nn, or ask your instructor to install it for the arena's Python",
            ),
            id="one that another module imports",
        ),
        pytest.param(
            f"{ENDED}"
            'File "/arena/bots/ace_king_queen.py", line 50, in decide\n'
            'File "HERE/bot.py", line 7, in decide\n'
            'File "HERE/bot.py", line 5, in bet\n'
            "AttributeError: 'Bot' object has no attribute 'table'\n"
            "arena: the strategy raised at open: AttributeError: 'Bot' object has no …",
            (
                "the strategy raised at open: AttributeError: 'Bot' object has no …",
                "bot.py line 5, in bet: return self.table[card]",
                MEND,
            ),
            id="what it has raised",
        ),
        pytest.param(
            f"{ENDED}arena: the strategy raised at open: TypeError: got 'Bet' in HERE/bot.py:4",
            (
                "the strategy raised at open: TypeError: got 'Bet' in HERE/bot.py:4",
                "bot.py line 4: def bet(self, card):",
                MEND,
            ),
            id="what a base class has raised",
        ),
        pytest.param(
            "expected: a legal answer to open: bet, check\n"
            'came:     {"type":"answer","match":"m","value":"Bet","note":null}, at question 1\n'
            "hint:     Answer with an element of `legal`.",
            (
                'your bot answered "Bet" to open; legal: bet, check',
                "bot.py line 6: def decide(self, question):",
                "Answer with an element of `legal`.",
            ),
            id="an illegal answer",
        ),
        pytest.param(
            f"{ENDED}arena: expected one class with `game`, found none",
            ("expected one class with `game`, found none", "bot.py", MEND),
            id="a file without a bot",
        ),
        pytest.param(
            "expected: an answer to m:1\ncame:     nothing in 16 s\nhint:     Answer sooner.",
            ("play: expected an answer to m:1; nothing in 16 s", "bot.py", "Answer sooner."),
            id="silence",
        ),
    ],
)
def test_a_refusal_is_three_lines(text: str, lines: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "bot.py"
    file.write_text(BOT)

    assert three_lines("play", text, file) == lines
