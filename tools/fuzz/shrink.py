"""Programs are made small: as long as they differ in the same way, something is left out.

Input: a program, and a test that says whether a smaller one still shows what it showed.  Output:
the smallest that was found.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator

from tools.fuzz import programs
from tools.fuzz.programs import Program

Shows = Callable[[Program], bool]
_MOST_TRIALS = 70


def shrink(program: Program, shows: Shows) -> Program:
    """A program that is as small as found, and of which `shows` holds still.

    Args:
        program: of which `shows` holds; its last statement is what it shows.
        shows: whether a program shows the same.
    """
    trials = 0
    changed = True
    while changed:
        changed = False
        for smaller in candidates(program):
            trials += 1
            if trials > _MOST_TRIALS:
                return program
            if shows(smaller):
                program, changed = smaller, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, those first that are smaller by much; no statement without use is left."""
    for name, on in program.settings.items():
        if on:
            yield program._replace(settings={**program.settings, name: False})
    if program.mode != "eager":
        yield program._replace(mode="eager")
    last = len(program.statements) - 1
    seen = {program.statements}
    for number in range(last, -1, -1):
        for text in sorted(set(_smaller(program.statements[number])), key=len):
            if len(text) >= len(program.statements[number]):
                break
            changed = [*program.statements[:number], text, *program.statements[number + 1 :]]
            name, _, value = text.partition(" = ")
            if number < last and value in map(programs.name_of, program.statements[:number]):
                later = [re.sub(rf"\b{name}\b", value, each) for each in changed[number + 1 :]]
                changed = [*changed[:number], "", *later]
            statements = programs.needed(changed, [changed[last]])
            if statements not in seen:
                seen.add(statements)
                yield program._replace(statements=statements)


def _smaller(statement: str) -> Iterator[str]:
    """The statement with one expression replaced by a smaller one."""
    tree = ast.parse(statement)
    for number, node in enumerate(ast.walk(tree)):
        for replacement in _replacements(node):
            changed: ast.AST = copy.deepcopy(tree)
            target = list(ast.walk(changed))[number]
            if isinstance(target, ast.expr):
                changed = _Replace(target, replacement).visit(changed)
            elif isinstance(target, ast.keyword):
                changed = _WithoutKeyword(target).visit(changed)
            yield ast.unparse(ast.fix_missing_locations(changed))


def _replacements(node: ast.AST) -> Iterator[ast.expr]:
    """What may stand in place of an expression."""
    match node:
        case ast.keyword():
            yield ast.Constant(None)
        case ast.Call(func=ast.Attribute(value=inner) | ast.Lambda(body=inner) | inner):
            yield from (each for each in node.args if not isinstance(each, ast.Starred))
            yield inner
        case ast.Lambda(body=ast.Call(func=function)) if _names(node.args) == _texts(node.body):
            yield function
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(operand=part) | ast.Compare(left=part) | ast.Subscript(value=part):
            yield part
        case ast.List(elts=[first, second, *_]):
            yield ast.List([first], ast.Load())
            yield ast.List([second], ast.Load())
        case ast.Constant(value=value) if type(value) in (int, float) and value not in (0, 1):
            yield ast.Constant(1)
            yield ast.Constant(0)


def _names(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in arguments.args]


def _texts(call: ast.AST) -> list[str]:
    assert isinstance(call, ast.Call)
    return [ast.unparse(argument) for argument in call.args]


class _Replace(ast.NodeTransformer):
    """Puts one expression in place of another."""

    def __init__(self, target: ast.expr, replacement: ast.expr) -> None:
        self._target = target
        self._replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what stands in its place."""
        return self._replacement if node is self._target else super().generic_visit(node)


class _WithoutKeyword(ast.NodeTransformer):
    """Leaves a keyword argument out."""

    def __init__(self, target: ast.keyword) -> None:
        self._target = target

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The call without the keyword."""
        node.keywords = [each for each in node.keywords if each is not self._target]
        return self.generic_visit(node)
