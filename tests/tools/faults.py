"""Whether the tests notice the faults of the past: turns small commits round that mended one.

Run as `python -m tests.tools.faults`, with `--data FILE` of `tests.tools.branches` if there is one.
The yardstick names the commit and the module of each fault, and the test file that caught it; it
proves that they are all still caught. How each is tried `trials` says. A fault whose code has become
other code cannot be turned round any more: it is counted and left out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from difflib import SequenceMatcher
from pathlib import Path

from tests.tools.trees import PRODUCT, git, kept, texts
from tests.tools.trials import TriedChange, parser, try_all

__all__ = ["fault", "main"]


def fault(name: str, text: str) -> TriedChange | None:
    """A module as it was before a commit; None if it is other code now, or differs in more than the
    bodies of functions.

    Args:
        name: of the module, the commit and, after `#`, which part of its patch; without it all.
        text: the module's.
    """
    path, _, commit = name.partition(" ")
    commit, _, part = commit.partition("#")
    patch = git("show", "--format=", "-U1", commit, "--", path)
    if part:
        head, *parts = re.split(rb"^(?=@@ )", patch, flags=re.MULTILINE)
        patch = head + parts[int(part)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
        turn = ["git", "apply", "-R", "-C1", "--recount", "-"]
        turned = subprocess.run(turn, cwd=folder, input=patch, capture_output=True, check=False)
        if turned.returncode or not file.exists():
            return None
        code = file.read_text(encoding="utf-8")
    lines = _other_lines(text, code)
    return (
        TriedChange(path, name, lines, code) if lines and _outline(text) == _outline(code) else None
    )


def _other_lines(text: str, code: str) -> list[int]:
    """The lines that another text has otherwise; where it only has more, those around."""
    matcher = SequenceMatcher(None, text.splitlines(), code.splitlines(), autojunk=False)
    return [
        line
        for kind, begin, end, _, _ in matcher.get_opcodes()
        if kind != "equal"
        for line in (range(begin + 1, end + 1) or (begin, begin + 1))
    ]


def _outline(text: str) -> str:
    """A module without the bodies of its functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return ast.dump(tree)


def main() -> int:
    """Turn the yardstick's faults round, one after another, and run tests."""
    options = parser(__doc__, "faults.jsonl").parse_args()
    files = texts(options.commit, *PRODUCT)
    names = [*kept("faults")]
    made = [
        fault(name, files[name.partition(" ")[0]])
        for name in names
        if name.partition(" ")[0] in files
    ]
    changes = [change for change in made if change is not None]
    print(f"{len(names) - len(changes)} of {len(names)} are of code that is other code now")
    return try_all("faults", changes, options)


if __name__ == "__main__":
    sys.exit(main())
