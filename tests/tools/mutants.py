"""Whether the tests notice a mistake: changes one thing of the code at a time and runs the tests that
reach it.

Run as `python -m tests.tools.mutants --data FILE`, after `python -m tests.tools.branches --data FILE`
has said which test function reaches which line; `trials` says how each is tried. The sample is drawn
by chance, at least 15 mutants of each package. With `--against` it proves that nothing is lost: those
that the yardstick holds as killed are tried again, first by the file that killed them, and those that
no test kills any more are printed. Without `--data` only the tests that mirror the package are tried.

A mutant is known by its module, its function and what is changed, not by its line. Only code within
functions is changed: no default, no annotation, no decorator, no assertion, no text with a space."""

from __future__ import annotations

import ast
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from tests.tools.trees import PRODUCT, group_of, kept, texts
from tests.tools.trials import TriedChange, parser, try_all

__all__ = ["main", "mutants_of", "sample"]

AT_LEAST = 15  # mutants a package

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_OPERATORS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
    ast.LShift: ast.RShift(),
    ast.RShift: ast.LShift(),
}


def mutants_of(path: str, text: str) -> list[TriedChange]:
    """All mutants of a module."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    made: list[TriedChange] = []
    seen: Counter[str] = Counter()
    for function, lines, node, new in _places(ast.parse(text), ""):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = " ".join(text.encode()[begin:end].decode().split())
        name = f"{path} {function}: {old[:60]} -> {new if len(new) < 30 else new[:9] + '…'}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" #{seen[name]}"
        code = text.encode()[:begin] + new.encode() + text.encode()[end:]
        made.append(TriedChange(path, name, [*range(lines[0], lines[1] + 1)], code.decode()))
    return made


_Place = tuple[str, tuple[int, int], ast.expr | ast.stmt, str]


def _places(tree: ast.AST, within: str) -> Iterator[_Place]:
    """Where something can be changed, and into what."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _places(node, f"{within}{node.name}.")
        elif isinstance(node, _Function):
            yield from _in_statements(node.body, within + node.name)


def _in_statements(body: Iterable[ast.stmt], function: str) -> Iterator[_Place]:
    for statement in body:
        if isinstance(statement, ast.Assert | ast.ClassDef):
            continue
        if isinstance(statement, _Function):
            yield from _in_statements(statement.body, function)
            continue
        inner = [
            part
            for field in ("body", "orelse", "finalbody", "handlers", "cases")
            for part in getattr(statement, field, ())
        ]
        last = min((part.lineno - 1 for part in inner if isinstance(part, ast.stmt)), default=0)
        first = statement.lineno
        lines = first, max(first, last or statement.end_lineno or first)
        if (new := _other_statement(statement)) is not None:
            yield function, lines, statement, new
        items = [item.context_expr for item in getattr(statement, "items", ())]
        for child in chain(ast.iter_child_nodes(statement), items):
            if isinstance(child, ast.expr) and child is not getattr(statement, "annotation", None):
                is_test = child is getattr(statement, "test", None)
                yield from ((function, lines, *place) for place in _in_expression(child, is_test))
        for part in inner:
            blocks = [part] if isinstance(part, ast.stmt) else part.body
            yield from _in_statements(blocks, function)


def _other_statement(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await()):
            return "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None"
        case ast.Continue():
            return "break"
        case ast.AugAssign(op=op) if type(op) in _OPERATORS:
            changed = ast.AugAssign(statement.target, _OPERATORS[type(op)], statement.value)
            return ast.unparse(changed)
    return None


def _in_expression(node: ast.expr, is_test: bool = False) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.JoinedStr):  # before Python 3.12 its parts have no place of their own
        return
    if (other := _other_expression(node)) is not None:
        yield node, ast.unparse(other)
    elif is_test and isinstance(node, ast.Name | ast.Attribute | ast.Call):
        yield node, f"not {ast.unparse(node)}"
    for child in ast.iter_child_nodes(node):
        parts = (
            ast.iter_child_nodes(child)
            if isinstance(child, ast.keyword | ast.comprehension)
            else [child]
        )
        for part in parts:
            if isinstance(part, ast.expr):
                yield from _in_expression(part, part is getattr(node, "test", None))


def _other_expression(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Compare(ops=[op]):
            return ast.Compare(node.left, [_COMPARISONS[type(op)]], node.comparators)
        case ast.BoolOp(op=op):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return None if isinstance(operand, ast.Constant) else operand
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            return ast.BinOp(node.left, _OPERATORS[type(op)], node.right)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            return ast.Constant(number + 1)
        case ast.Constant(value=str(word)) if word and " " not in word:
            return ast.Constant(f"XX{word}")
    return None


def sample(files: dict[str, str], size: int, seed: int) -> list[TriedChange]:
    """Mutants drawn by chance: of each package as many as it must have, then of all.

    They take turns by package, so that those that are tried first are of all packages.
    """
    drawn = random.Random(seed)
    groups: defaultdict[str, list[TriedChange]] = defaultdict(list)
    for path, text in files.items():
        if path.endswith(".py") and "/examples/" not in path and path.count("/"):
            groups[group_of(path)] += mutants_of(path, text)
    for group in [*groups]:
        drawn.shuffle(groups[group])
        if len(groups[group]) < AT_LEAST:
            del groups[group]
    ours = zip_longest(*(group[:AT_LEAST] for group in groups.values()))
    rest = [mutant for group in groups.values() for mutant in group[AT_LEAST:]]
    drawn.shuffle(rest)
    return [mutant for mutant in chain(chain(*ours), rest) if mutant is not None][:size]


def main() -> int:
    """Draw mutants, or take those of the yardstick, and try them."""
    read = parser(__doc__, "mutants.jsonl")
    read.add_argument("--sample", type=int, default=300, help="how many mutants")
    read.add_argument("--seed", type=int, default=1, help="draws the sample")
    read.add_argument("--against", action="store_true", help="those the yardstick has as killed")
    options = read.parse_args()
    files = texts(options.commit, *PRODUCT)
    if not options.against:
        return try_all("mutants", sample(files, options.sample, options.seed), options)
    names = [name for name, by in kept("mutants").items() if by.startswith("tests/")]
    paths = {name.partition(" ")[0] for name in names} & {*files}
    known = {one.name: one for path in paths for one in mutants_of(path, files[path])}
    found = [known[name] for name in names if name in known]
    print(f"{len(names) - len(found)} of {len(names)} are of code that is gone")
    return try_all("mutants", found, options)


if __name__ == "__main__":
    sys.exit(main())
