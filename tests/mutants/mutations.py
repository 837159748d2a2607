"""The mutants of a module: one operator, number, condition or statement changed.

Strings and annotations stay as they are, for what they say is mostly prose; so do assertions, also those of ``zip``,
blocks for type checkers, and ``slots``, without which everything works the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

_OPERATORS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    # a node of the syntax tree: its spelling, and what replaces that
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_LEFT_AS_THEY_ARE: Final = ("slots", "maxsize")

Positioned: TypeAlias = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the bytes from ``start`` to ``end`` of a file's text."""

    file: str
    line: int
    last_line: int
    start: int
    end: int
    replacement: bytes

    def applied(self, text: bytes) -> bytes:
        """The text with the change."""
        return text[: self.start] + self.replacement + text[self.end :]

    def described(self, text: bytes) -> tuple[str, str]:
        """The first line that differs, before and after the change."""
        before, after = text.decode().split("\n"), self.applied(text).decode().split("\n")
        return next(
            ((old.strip(), new.strip()) for old, new in zip(before, after, strict=False) if old != new), ("", "")
        )


def mutants_of(file: str, text: bytes) -> list[Mutant]:
    """All mutants of a module, in the order of their places."""
    found = _Finder(file, text)
    found.visit(ast.parse(text))
    return sorted(found.mutants, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, text: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._file = file
        self._text = text
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _span(self, node: Positioned) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )

    def _change(self, node: Positioned, start: int, end: int, replacement: str) -> None:
        assert node.end_lineno is not None
        self.mutants.append(Mutant(self._file, node.lineno, node.end_lineno, start, end, replacement.encode()))

    def _replace(self, node: Positioned, replacement: str) -> None:
        self._change(node, *self._span(node), replacement)

    def _change_operator(self, node: ast.expr, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        """Replace the operator between two operands, where it stands between their parentheses."""
        if type(operator) in _OPERATORS:
            spelling, replacement = _OPERATORS[type(operator)]
            after, before = self._span(left)[1], self._span(right)[0]
            between = self._text[after:before]
            if between.count(spelling.encode()) == 1 and b"#" not in between:
                start = after + between.index(spelling.encode())
                self._change(node, start, start + len(spelling), replacement)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            self._change_operator(node, operator, left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._change_operator(node, node.op, left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._change_operator(node, node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, _ = self._span(node)
            self._change(node, start, start + len("not"), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        for value in ("True", "False"):
            self._replace(node.test, value)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        for value in ("True", "False"):
            self._replace(node.test, value)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # docstrings are
            self._replace(node, "None")
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not isinstance(node.targets[0], ast.Name):  # a name that nothing is assigned to would be noticed
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._replace(node, "return None")
        elif node.value is None:
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue")

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # a message; Python 3.11 does not tell where its expressions stand

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in _evaluated(node):
            self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        for argument in node.args:
            self.visit(argument)
        if not (isinstance(node.func, ast.Name) and node.func.id == "zip"):
            self.visit(node.func)
            for keyword in node.keywords:
                self.visit(keyword)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _LEFT_AS_THEY_ARE:
            self.visit(node.value)


def _evaluated(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """The parts of a function without its annotations."""
    yield from node.decorator_list
    yield from node.args.defaults
    yield from (default for default in node.args.kw_defaults if default is not None)
    yield from node.body
