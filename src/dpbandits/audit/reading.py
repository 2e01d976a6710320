"""Reads the source of a policy, to check rules that must hold on every path, however rare.

A run shows only the paths that it takes. The syntax tree shows that an agent calls the curator's methods for releases
and touches nothing else, that these methods read no ``raw_`` field, and that no code keeps anything outside its arrays.
Constructs that are known to be harmless are allowed, and everything else is refused.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbandits import numerics
from dpbandits.audit.anatomy import classes, fields, inner, shapes
from dpbandits.audit.kinds import FOLDER, STANDARD, changers, is_exact_noise, is_plain, one_of, rebound
from dpbandits.audit.memory import RAW
from dpbandits.audit.refusals import Refused
from dpbandits.audit.sources import source_of, tree_of
from dpbandits.exact import SystemNoise

__all__ = ["FEEDS", "QUESTIONS", "Looks", "Reader", "changed_names", "function_of", "read_curator"]

#: What an agent may ask every curator. It may also call other methods that a curator has for it.
QUESTIONS = ("ready", "mean", "lowest", "samples", "width")
FEEDS = ("respond", "add", "close")
NO_QUESTIONS = (*FEEDS, "absorb", "guarantee", "start")
BUILTINS = {
    *(abs, bool, divmod, enumerate, float, int, len, max, min),
    *(pow, range, reversed, round, sorted, sum, tuple, zip),
}
#: Functions that stand for themselves: the verifier has its own version of each.
TRUSTED = (numerics.unit, numerics.sigmoid, numerics.on_grid)
NUMBERS = ("float", "int", "len", "range", "abs")
ARRAY = {"size", "shape", "ndim"}
CHANCE = {
    *("random", "normal", "beta", "gamma", "integers", "uniform", "exponential", "standard_normal", "binomial"),
    *("laplace", "choice", "standard_exponential", "geometric", "poisson"),
}
FORBIDDEN = (
    *(ast.Try, ast.TryStar, ast.With, ast.Global, ast.Nonlocal, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Import, ast.ImportFrom, ast.ClassDef, ast.Delete, ast.NamedExpr, ast.Starred, ast.AsyncFunctionDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Slice),
    *(ast.Raise, ast.Assert, ast.Match, ast.JoinedStr, ast.AsyncFor, ast.AsyncWith, ast.Is, ast.IsNot, ast.FunctionDef),
)

#: What a parameter of a function holds.
SELF, CURATOR = "self", "the curator"
Roles = tuple[tuple[str, str], ...]


class Looks(Refused):
    """What an agent sees depends on raw memory, or it does more with the curator than call its methods for releases."""


def _files(kind: type) -> set[str]:
    """The files that the methods of a class are from, but for what NamedTuple and the standard library make."""
    found = {
        f.__code__.co_filename for c in kind.__mro__ for v in vars(c).values() if (f := function_of(v)) is not None
    }
    return {path for path in found if not path.startswith((STANDARD, "<"))}


def function_of(value: Any) -> types.FunctionType | None:
    """The plain function that a method is made of; None if it is something else."""
    value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return value if type(value) is types.FunctionType else None


class Reader:
    """Reads all functions that the methods of some parts can reach.

    ``role`` is agent, question (what an agent may ask a curator) or curator. An agent's memory is apart from that of
    ``other``, the curator.
    """

    def __init__(self, part: Any, role: str, other: Any = None, changed: frozenset[str] = frozenset()) -> None:
        self.classes = classes(part)
        self.memory, self.parameters = fields(part, memory=True), fields(part, memory=False)
        self.arrays, self.parts = shapes(part), inner(part)
        self.rebound = changed.union(*(rebound(path) for c in self.classes for path in _files(c)))
        self.role, self.other = role, other
        self.hidden = fields(other, memory=True) if other is not None else set()
        self.asked: set[str] = set()
        self.done: set[tuple[Any, Roles]] = set()

    @property
    def because(self) -> str:
        """What in the files of the parts could bind names again."""
        names = sorted(set().union(*(changers(path) for c in self.classes for path in _files(c))))
        return f", because its file uses {', '.join(names[:3])}" if names else ""

    @property
    def functions(self) -> set[Any]:
        """What was read."""
        return {function for function, _ in self.done}

    def methods(self, name: str) -> list[Any]:
        """The methods of this name. A class that has none contributes nothing."""
        found = [inspect.getattr_static(c, name, None) for c in self.classes]
        return [method for method in found if type(method) is types.FunctionType]

    def is_question(self, name: str) -> bool:
        """Whether the curator has a method of this name that an agent may call."""
        method = inspect.getattr_static(type(self.other), name, None)
        return type(method) is types.FunctionType and name not in NO_QUESTIONS and not name.startswith("_")

    def method(self, name: str, handed: Mapping[int, str] | None = None) -> None:
        """Read all methods of this name; ``handed`` says what some of the arguments after self are."""
        for c in self.classes:
            found = inspect.getattr_static(c, name, None)
            if found is not None and type(found) is not types.FunctionType:
                raise Refused(f"{self.role} ({c.__name__}.{name}): is no plain method")
            if found is not None and {name, "*"} & self.rebound:
                raise Refused(f"{self.role} ({c.__name__}.{name}): may be bound again at run time{self.because}")
        for method in self.methods(name):
            self.function(method, {0: SELF, **{place + 1: role for place, role in (handed or {}).items()}})

    def function(self, function: Any, handed: Mapping[int, str], *, registered: bool = False) -> None:
        """Read a function, whose arguments at these places have these roles; it may have been ``registered``."""
        if one_of(function, TRUSTED):
            code = function.__code__
            its_own = (code.co_filename, code.co_qualname) == (numerics.rewards.__file__, function.__qualname__)
            if not its_own or not source_of(code):
                raise Refused(f"{function.__name__} of this package is not what its source says")
            return
        where = f"{self.role} ({getattr(function, '__qualname__', function)})"
        if type(function) is not types.FunctionType:
            raise Refused(f"{where}: is not a plain Python function, so that it cannot be read")
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        roles = tuple(sorted((names[place], role) for place, role in handed.items() if place < len(names)))
        if len(roles) != len(handed):
            raise Refused(f"{where}: takes fewer arguments than it is given")
        if (function, roles) in self.done:
            return
        self.done.add((function, roles))
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if not all(map(is_plain, defaults)):
            raise Refused(f"{where}: has defaults that could keep something")
        if hasattr(function, "__wrapped__") or function.__code__.co_freevars:
            raise Refused(f"{where}: is a closure or wrapped by another function (super() is one, too)")
        if getattr(function, "__builtins__", None) is not vars(builtins):
            raise Refused(f"{where}: has builtins of its own")
        Body(self, function, dict(roles), tree_of(function, where, registered), where).read()


class Body:
    """The body of one function, with the role of its parameters."""

    def __init__(self, reader: Reader, function: Any, roles: dict[str, str], tree: ast.FunctionDef, where: str) -> None:
        self.reader, self.function, self.roles, self.tree, self.where = reader, function, roles, tree, where
        if tree.args.vararg or tree.args.kwarg:
            raise Refused(f"{where}: takes any arguments")
        self.nodes = [node for statement in tree.body for node in ast.walk(statement)]
        self.parent = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        stored = {n.id for n in self.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self.local = stored | {a.arg for a in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]}
        if self.local != {*function.__code__.co_varnames, *function.__code__.co_cellvars}:
            raise Refused(f"{where}: its local names are not what its source says")
        given = [n for n in self.nodes if isinstance(n, ast.Assign) and self.alias(n)]
        self.aliases = {n.targets[0].id for n in given if isinstance(n.targets[0], ast.Name)}
        bound = [n.id for n in self.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        if any(bound.count(name) != 1 for name in self.aliases) or self.aliases & {
            a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)
        }:
            raise Refused(f"{where}: gives a part inside it a name that it uses for something else, too")
        if stored & set(roles):
            raise Refused(f"{where}: {', '.join(sorted(stored & set(roles)))} means something else inside")

    def read(self) -> None:
        """Refuse what is not known to be harmless."""
        for node in self.nodes:
            if isinstance(node, FORBIDDEN):
                raise Refused(f"{self.where}: uses '{type(node).__name__.lower()}', which is not followed")
            if any((getattr(node, place, None) or "").startswith("__") for place in ("id", "attr", "arg")):
                raise Refused(
                    f"{self.where}: uses a name with two underscores, which has another meaning in another class"
                )
            if isinstance(node, ast.Attribute):
                self.attribute(node)
            if isinstance(node, ast.Name):
                if node.id in self.roles:
                    (self.own if self.roles[node.id] == SELF else self.handed_on)(node)
                elif node.id not in self.local:
                    self.outside(node)
            if isinstance(node, ast.Name) and node.id in self.aliases and isinstance(node.ctx, ast.Load):
                self.own(node)
            if isinstance(node, ast.AugAssign) and self.reader.role != "curator":
                self.grows(node)
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and self.reader.role == "agent":
                array = node.value
                if not (isinstance(array, ast.Attribute) and self.is_mine(array.value)):
                    raise Looks(f"{self.where}: writes into something else than its own memory")
            written = isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load)
            if written and self.reader.role == "question":
                raise Looks(f"{self.where}: an answer to the agent writes memory")

    def is_mine(self, node: ast.AST | None) -> bool:
        """Whether an expression is self, or a part inside it."""
        if isinstance(node, ast.Name):
            return self.roles.get(node.id) == SELF or node.id in self.aliases
        return isinstance(node, ast.Attribute) and node.attr in self.reader.parts and self.is_mine(node.value)

    def alias(self, node: ast.Assign) -> bool:
        """Whether a name is given to a part inside self, and to nothing else: ``ucb = self.ucb``."""
        part = isinstance(node.value, ast.Attribute) and node.value.attr in self.reader.parts
        return part and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)

    def value_of(self, node: ast.Attribute) -> None:
        """A part inside may only be used to name what is in it. An answer to the agent has numbers, and no arrays."""
        up, reader = self.parent.get(node), self.reader
        named = isinstance(up, ast.Attribute) and up.value is node
        if node.attr in reader.parts:
            if not named and not (isinstance(up, ast.Assign) and self.alias(up)):
                raise Refused(f"{self.where}: does something with the part .{node.attr} other than to name its fields")
        elif node.attr in reader.arrays and reader.role == "question" and not named:
            whole = isinstance(up, ast.Subscript) and up.value is node
            places = len(up.slice.elts) if whole and isinstance(up.slice, ast.Tuple) else 1  # type: ignore[union-attr]
            counted = isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id == "len"
            if not counted and not (whole and reader.arrays[node.attr] == {places}):
                raise Looks(f"{self.where}: an answer to the agent uses the array .{node.attr} as a whole")

    def grows(self, node: ast.AugAssign) -> None:
        """``x += y`` changes an array in place. So x must have been made here, as a number."""
        if not isinstance(node.target, ast.Name) or self.function.__code__.co_filename.startswith(FOLDER):
            return
        for other in self.nodes:
            given = other.value if isinstance(other, ast.Assign) else other.iter if isinstance(other, ast.For) else None
            targets = other.targets if isinstance(other, ast.Assign) else [getattr(other, "target", None)]
            names = {n.id for t in targets if isinstance(t, ast.AST) for n in ast.walk(t) if isinstance(n, ast.Name)}
            if given is None or node.target.id not in names:
                continue
            if not isinstance(given, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Call):
                break
            if isinstance(given, ast.Call) and not (isinstance(given.func, ast.Name) and given.func.id in NUMBERS):
                break
        else:
            if node.target.id not in {a.arg for a in ast.walk(self.tree.args) if isinstance(a, ast.arg)}:
                return
        raise Looks(f"{self.where}: changes {node.target.id} in place, which may be the curator's memory")

    def roles_in(self, call: ast.Call) -> dict[int, str]:
        """The arguments of a call that are self or the curator, by their places."""
        given = enumerate(call.args)
        return {place: self.roles[a.id] for place, a in given if isinstance(a, ast.Name) and a.id in self.roles}

    def called(self, call: ast.AST | None) -> Any:
        """The plain function outside of this one that is called; None if it is something else."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id in self.local:
            return None
        function = self.resolve(call.func.id)
        return function if type(function) is types.FunctionType else None

    def own(self, node: ast.Name) -> None:
        """``self`` may name fields and methods, and be handed on to functions that do the same with it."""
        up = self.parent.get(node)
        if isinstance(up, ast.Call) and node in up.args and node.id in self.roles and self.called(up) is not None:
            self.reader.function(self.called(up), self.roles_in(up))
            return
        if not (isinstance(up, ast.Attribute) and up.value is node):
            raise Refused(f"{self.where}: does something with self other than to name its fields and methods")

    def handed_on(self, node: ast.Name) -> None:
        """An agent may ask the curator its questions, and hand it on to functions that do the same."""
        up = self.parent.get(node)
        if isinstance(up, ast.Attribute) and self.reader.is_question(up.attr):
            call = self.parent.get(up)
            if isinstance(call, ast.Call) and call.func is up:
                self.reader.asked.add(up.attr)
                return
        if isinstance(up, ast.Call) and node in up.args:
            place = up.args.index(node)
            if isinstance(up.func, ast.Attribute) and self.reader.methods(up.func.attr):
                self.reader.method(up.func.attr, {place: CURATOR})
                return
            if self.called(up) is not None:
                self.reader.function(self.called(up), self.roles_in(up))
                return
        raise Looks(f"{self.where}: does more with the curator than to ask it ({ast.unparse(up or node)[:60]})")

    def outside(self, node: ast.Name) -> None:
        """A name from outside of the function: a constant, ``math``, exact noise, or a function that is read too."""
        value = self.resolve(node.id)
        up = self.parent.get(node)
        if {node.id, "*"} & (self.reader.rebound | rebound(self.function.__code__.co_filename)):
            raise Refused(
                f"{self.where}: uses {node.id}, which its module may bind again at run time{self.reader.because}"
            )
        if value is sum and self.reader.role == "curator":
            raise Refused(f"{self.where}: uses sum, which adds floats of Python in another way than others")
        if is_plain(value) or value is math or uses_exact_noise(value) or one_of(value, BUILTINS):
            return
        if value is np:
            if isinstance(up, ast.Attribute) and type(getattr(np, up.attr, None)) is float:
                return
            raise Refused(f"{self.where}: calls NumPy, which is not followed")
        if type(value) is types.FunctionType:
            if not (isinstance(up, ast.Call) and up.func is node):
                raise Refused(f"{self.where}: does something with {node.id} other than to call it")
            self.reader.function(value, self.roles_in(up))
            return
        raise Refused(f"{self.where}: uses {node.id}, {type(value).__name__} outside of it, which can keep anything")

    def resolve(self, name: str) -> Any:
        """What a name from outside means."""
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise Refused(f"{self.where}: {name} is not defined")

    def attribute(self, node: ast.Attribute) -> None:
        """An attribute must be a field, a method, a constant of the class, or a number from a generator."""
        name, base, reader = node.attr, node.value, self.reader
        if not isinstance(node.ctx, ast.Load):
            raise Refused(f"{self.where}: sets an attribute")
        if isinstance(base, ast.Name) and base.id not in self.local and one_of(self.resolve(base.id), (math, np)):
            module = self.resolve(base.id)
            known = getattr(module, name, None)
            its_own = type(known) is types.BuiltinFunctionType and (known.__self__, known.__name__) == (module, name)
            if not (its_own or type(known) is float) or name.startswith("_") or {name, "*"} & reader.rebound:
                raise Refused(f"{self.where}: uses {ast.unparse(node)}, which is not followed")
            return
        if isinstance(base, ast.Name) and self.roles.get(base.id) == CURATOR:
            return  # see handed_on
        mine = isinstance(base, ast.Name) and self.roles.get(base.id) == SELF
        known = name in reader.memory or name in reader.parameters or bool(reader.methods(name))
        if known and name not in reader.hidden and not self.is_mine(base):
            raise Refused(f"{self.where}: uses .{name} of something else than itself ({ast.unparse(node)[:60]})")
        if name in reader.hidden and not (mine and name in reader.memory):
            raise Looks(f"{self.where}: looks at {name} of the curator")
        if name in reader.memory or name in reader.parameters:
            if reader.role == "question" and name.startswith(RAW):
                raise Looks(f"{self.where}: what the agent is told reads {name}")
            self.value_of(node)
            return
        if reader.methods(name):
            call = self.parent.get(node)
            if not (isinstance(call, ast.Call) and call.func is node):
                raise Refused(f"{self.where}: does something with .{name} other than to call it")
            if not any(isinstance(a, ast.Name) and self.roles.get(a.id) == CURATOR for a in call.args):
                reader.method(name)
            return
        if (
            name in ARRAY
            and isinstance(base, ast.Attribute)
            and self.is_mine(base.value)
            and base.attr in reader.arrays
        ):
            return
        if mine and is_plain(inspect.getattr_static(reader.classes[0], name, self)):
            if {name, "*"} & reader.rebound:
                raise Refused(f"{self.where}: uses .{name}, which may be bound again at run time{self.reader.because}")
            return  # a constant of the class
        chance = not isinstance(base, ast.Name) or base.id in self.local or uses_exact_noise(self.resolve(base.id))
        if name in CHANCE and chance and not mine:
            return
        raise Refused(f"{self.where}: uses .{name}, which is not followed")


def uses_exact_noise(value: Any) -> bool:
    """Whether this is the package's exact noise or its class, as the package made it."""
    if value is not SystemNoise and not is_exact_noise(value):
        return False
    for method in (function for c in SystemNoise.__mro__ for f in vars(c).values() if (function := function_of(f))):
        if method.__module__.startswith("dpbandits.") and not source_of(method.__code__):
            raise Refused(f"{method.__name__} of this package's exact noise is not what its source says")
        if not method.__code__.co_filename.startswith((FOLDER, STANDARD)):
            raise Refused(f"{method.__name__} of this package's exact noise was replaced")
    return True


def changed_names(policy: Any) -> frozenset[str]:
    """The names that the files of a policy may bind again at run time: those of its parts and of its function."""
    files = {path for part in (policy.agent, policy.curator) for c in classes(part) for path in _files(c)}
    made_by = inspect.unwrap(policy.factory)
    return frozenset().union(*map(rebound, files | {made_by.__code__.co_filename}))


def read_curator(curator: Any, *names: str, changed: frozenset[str] = frozenset()) -> set[Any]:
    """Refuse a curator that keeps anything outside its arrays; returns the functions that these methods can reach."""
    reader = Reader(curator, "curator", None, changed)
    for name in names or FEEDS:
        if not reader.methods(name):
            raise Refused(f"the curator has no method {name}")
        reader.method(name)
    return reader.functions
