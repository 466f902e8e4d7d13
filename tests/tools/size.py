"""How large the house is: each package and folder of arena, protocol, bots and tests, beside the
commit that all work is measured by.

Run as `python -m tests.tools.size`. It proves that what became smaller did not only become denser:
beside lines stand lines with code, docstring lines and Python tokens (without docstrings and
comments). A budget is kept if tokens fall by at least three quarters of the share by which lines
fall, tokens per line of code stay below 9.0, docstrings are at least 11 % of the lines, and no
public name that had `Args` or `Raises` has lost them; such names are printed.

All text that is written by hand and is run or compared counts: `.py .cases .cram .jinja`, and JSON
below `tests/` but for what tools wrote."""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import NamedTuple

from tests.tools.trees import BASE, PRODUCT, ROOT, YARDSTICK, texts

__all__ = ["Size", "documented", "main", "size_of"]

FOLDERS = (*PRODUCT, "tests")
_WRITTEN = (".py", ".cases", ".cram", ".jinja")
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING),
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Size(NamedTuple):
    """How large a file or a folder is.

    Attributes:
        lines: all of them.
        code: those with code; of what is no Python those that are not blank.
        docstrings: lines of docstrings.
        tokens: of Python, without docstrings and comments.
        python_code: lines with code in Python files.
    """

    lines: int = 0
    code: int = 0
    docstrings: int = 0
    tokens: int = 0
    python_code: int = 0

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*map(sum, zip(self, other, strict=True)))


@cache  # most files are what they were
def size_of(path: str, text: str) -> Size:
    """The size of a file; nothing if it is none of those that count."""
    kind = PurePath(path).suffix
    lines = text.splitlines()
    if kind != ".py":
        is_golden = kind in (".json", ".jsonl") and path.startswith("tests/")
        if kind not in _WRITTEN and not (is_golden and ROOT / path != YARDSTICK):
            return Size()
        return Size(len(lines), sum(1 for line in lines if line.strip()))
    prose = {line for node in _docstrings(text) for line in range(node.lineno, _end(node) + 1)}
    starts = {(node.lineno, node.col_offset) for node in _docstrings(text)}
    code: set[int] = set()
    tokens = 0
    in_f_string = 0  # from Python 3.12 on an f-string is many tokens; it counts as one
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        in_f_string -= name == "FSTRING_END"
        if token.type not in _NO_CODE and token.start not in starts:
            code.update(range(token.start[0], token.end[0] + 1))
            tokens += not in_f_string and name != "FSTRING_END"
        in_f_string += name == "FSTRING_START"
    return Size(len(lines), len(code), len(prose), tokens, len(code))


def _docstrings(text: str) -> Iterator[ast.Constant]:
    """Strings that stand as statements: docstrings, and those below an attribute."""
    for node in ast.walk(ast.parse(text)):
        for statement in getattr(node, "body", ()) if isinstance(node, _DOCUMENTED) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant):
                yield value


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _folders(path: str) -> Iterator[str]:
    """The rows that a file counts in: its top folder, the package, and a package's tests."""
    parts = PurePath(path).parts
    deepest = 3 if parts[:2] == ("tests", "arena") else 2
    for depth in range(1, min(deepest, len(parts) - 1) + 1):
        yield "/".join(parts[:depth])


def _sizes(files: Mapping[str, str]) -> dict[str, Size]:
    """The size of each folder."""
    sizes: defaultdict[str, Size] = defaultdict(Size)
    for path, text in files.items():
        one = size_of(path, text)
        for folder in _folders(path):
            if one.lines:
                sizes[folder] = sizes[folder].plus(one)
    return sizes


def documented(files: Mapping[str, str]) -> dict[tuple[str, str], frozenset[str]]:
    """Which of `Args` and `Raises` each public name has, by its module's path and its own."""
    found: dict[tuple[str, str], frozenset[str]] = {}

    def walk(path: str, node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _DOCUMENTED[1:]) or child.name.startswith("_"):
                continue
            prose = ast.get_docstring(child) or ""
            sections = re.findall(r"^ *(Args|Raises):$", prose, re.MULTILINE)
            found[path, within + child.name] = frozenset(sections)
            if isinstance(child, ast.ClassDef):
                walk(path, child, f"{within}{child.name}.")

    for path, text in files.items():
        if path.endswith(".py") and path.startswith(PRODUCT):
            walk(path, ast.parse(text), "")
    return found


def _lost(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Public names that had `Args` or `Raises` and no longer have them, where they stand now."""
    present = documented(now)
    elsewhere: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for key in present:
        elsewhere[key[1]].append(key)
    lost: list[str] = []
    for key, sections in documented(before).items():
        places = [key] if key in present else elsewhere[key[1]]
        has = frozenset[str]().union(*(present[place] for place in places))
        if places and sections - has:
            lost.append(f"{places[0][0]} {key[1]}: {', '.join(sorted(sections - has))}")
    return sorted(lost)


def _row(folder: str, before: Size, now: Size) -> str:
    """A folder's line of the table."""
    figures = zip(before[:4], now[:4], strict=True)
    pairs = "".join(f"{old:9,} {new:8,}" for old, new in figures)
    density = now.tokens / now.python_code if now.python_code else 0.0
    share = now.docstrings / now.lines if now.lines else 0.0
    return f"{folder:<26}{pairs}{density:10.2f}{share:8.1%}"


def main() -> int:
    """Print the table, and the public names that lost what they said."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", default=BASE, help="a commit to compare with")
    options = parser.parse_args()
    files = texts(options.against, *FOLDERS), texts("", *FOLDERS)
    before, now = map(_sizes, files)
    names = "lines", "code", "docstrings", "tokens"
    print(
        f"{'at ' + options.against + ', now':<26}" + "".join(f"{one:>18}" for one in names), end=""
    )
    print(f"{'tok/code':>10}{'docs':>8}")
    for folder in sorted({*before, *now}):
        print(_row(folder, before.get(folder, Size()), now.get(folder, Size())))
    lost = _lost(*files)
    print(f"\npublic names that lost Args or Raises: {len(lost)}", *lost, sep="\n")
    kinds = Counter[str]()
    for path, text in files[1].items():
        kinds[PurePath(path).suffix] += size_of(path, text).lines
    print(
        "lines by kind:", ", ".join(f"{kind} {count:,}" for kind, count in kinds.items() if count)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
