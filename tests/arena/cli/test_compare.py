from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.needs("git")
def test_a_file_is_compared_with_itself_at_a_commit(
    run: Run, bot_file: Callable[..., str], tmp_path: Path
) -> None:
    mine = bot_file(answer="question.legal[-1]")  # checks and folds
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for words in ("init", "-q"), ("add", "mine.py"), ("commit", "-qm", "one"):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)
    bot_file(answer="question.legal[0]")  # bets and calls
    document = run("compare", mine, f"{mine}@HEAD", "--json").document

    assert document["bots"] == [mine, f"{mine}@HEAD"]
    assert (document["verdict"], document["better"]) == ("better", 0)


# ---- The last matches
