"""The source of a function, and whether the code that runs was made from it.

The text is read from the file itself, once, for the code and for the syntax tree. So both are about the same text.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from typing import Any, NamedTuple

from dpbandits.audit.refusals import Refused

__all__ = ["source_of", "tree_of"]

Definition = tuple[str, int]  # the qualified name of a function, and its first line


class Source(NamedTuple):
    """What a file says: the code and the syntax tree of each of its functions."""

    codes: dict[Definition, types.CodeType]
    trees: dict[Definition, ast.FunctionDef]


@functools.cache
def _source(path: str) -> Source:
    """A source file as it is now; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        todo = [compile(tree, path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return Source({}, {})
    codes = {}
    while todo:
        code = todo.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    trees: dict[Definition, ast.FunctionDef] = {}
    _collect(tree, "", trees)
    return Source(codes, trees)


def _collect(node: ast.AST, within: str, trees: dict[Definition, ast.FunctionDef]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name, first = within + child.name, min([child.lineno, *(d.lineno for d in child.decorator_list)])
            if isinstance(child, ast.FunctionDef):
                trees[name, first] = child
            _collect(child, name + ("." if isinstance(child, ast.ClassDef) else ".<locals>."), trees)
        else:
            _collect(child, within, trees)


def source_of(code: types.CodeType) -> bool:
    """Whether the code that runs is the code in its source file."""

    def text(c: types.CodeType) -> tuple[Any, ...]:
        inner = tuple(text(k) if isinstance(k, types.CodeType) else repr(k) for k in c.co_consts)
        return c.co_code, c.co_names, c.co_varnames, c.co_argcount, c.co_exceptiontable, inner

    made = _source(code.co_filename).codes.get((code.co_qualname, code.co_firstlineno))
    return made is not None and text(made) == text(code)


def tree_of(function: types.FunctionType, where: str, registered: bool = False) -> ast.FunctionDef:
    """The syntax tree of a function, which is what runs, in the module that it says it is of.

    ``registered`` is whether a decorator may have put it into a register, which leaves it as it is.
    """
    code = function.__code__
    tree = _source(code.co_filename).trees.get((code.co_qualname, code.co_firstlineno))
    if tree is None:
        raise Refused(f"{where}: its source cannot be read")
    if tree.name != function.__name__ or (tree.decorator_list and not registered):
        raise Refused(f"{where}: its source is not a plain function of that name")
    if not source_of(code):
        raise Refused(f"{where}: what runs is not what its source says")
    module = sys.modules.get(function.__module__)
    if module is None or vars(module) is not function.__globals__:
        raise Refused(f"{where}: its global names are not those of its module")
    return tree
