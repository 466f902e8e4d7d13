"""Which sentences of the tests went, and which rules no test names.

Run as `python -m tests.tools.sentences`. It proves that no sentence was lost by oversight: each name
of a test at the commit that all is measured by must still be there, in whatever file, as a function
or as a case of a table, or the yardstick says why it was dropped. Names without either are printed;
so are the rules of the rulebook that neither a test nor a case names. `--gather` takes up rows of
`path::test_name`, a tab and the reason from files, for those that are gone."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

from tests.tools.trees import BASE, ROOT, kept, texts, write_kept

__all__ = ["main", "rules_of", "sentences_of"]

_RULEBOOK = ROOT.parent / "shared/rulebook.md"
_RULE = re.compile(r"^(?:- )?(?:\*\*)?([A-Z]\d+)\.", re.MULTILINE)
_CASE = re.compile(r"^== +(.*)$", re.MULTILINE)


def sentences_of(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The path and the name of each test function and of each case of a table."""
    for path, text in files.items():
        if PurePath(path).suffix in (".cases", ".cram"):
            yield from ((path, name) for name in _CASE.findall(text))
        elif PurePath(path).name.startswith("test_") and path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                match node:
                    case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                        yield from [(path, name)] if name.startswith("test_") else ()


def rules_of(texts_of_rules: Mapping[str, str]) -> set[str]:
    """The numbers of all rules."""
    return {number for text in texts_of_rules.values() for number in _RULE.findall(text)}


def _words(name: str) -> str:
    """What a name says, whether it is one of a function or of a case."""
    return re.sub(r"\W+", "_", name.removeprefix("test_")).strip("_").lower()


def main() -> int:
    """Compare the names, and print those that nobody accounts for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gather", nargs="+", type=Path, default=(), help="files of rows")
    options = parser.parse_args()
    before, now = ([*sentences_of(texts(commit, "tests"))] for commit in (BASE, ""))
    present = {_words(name) for _, name in now}
    gone = [f"{path}::{name}" for path, name in before if _words(name) not in present]
    reasons: dict[str, str] = {**kept("dropped")}
    for file in options.gather:
        rows = (line.partition("\t") for line in file.read_text(encoding="utf-8").splitlines())
        reasons |= {name.partition("[")[0]: reason.strip() for name, _, reason in rows if reason}
    if options.gather:
        write_kept("dropped", {name: reasons[name] for name in sorted(gone) if name in reasons})
    lost = [name for name in gone if name not in reasons]
    print(f"{len(before)} sentences at {BASE}, {len(now)} now; {len(gone)} are gone", end="")
    print(f", {len(lost)} of them without a reason", *lost, sep="\n")
    rulebook = {"": _RULEBOOK.read_text(encoding="utf-8")} if _RULEBOOK.exists() else {}
    named = {
        number for _, name in now for number in re.findall(r"(?:^|_| )([A-Z]\d+)(?=_| |$)", name)
    }
    silent = rules_of(rulebook or texts("", "protocol/*.md")) - named
    print(f"rules that no test names: {', '.join(sorted(silent)) or 'none'}")
    return 1 if lost or silent else 0


if __name__ == "__main__":
    sys.exit(main())
