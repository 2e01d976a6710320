"""Whether all code that reads a curator reads releases only: its agent, and other functions that are called on it.

Beside ``act``, three functions may be registered for a user's own class, and a session calls them: the interval of an
arm, the standing of an agent, and the propensities of its next choice. ``guarantee`` is called to show the promise.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

import numpy as np

from dpbandits.agents.propensities import propensities
from dpbandits.agents.standing import standing
from dpbandits.audit.anatomy import classes
from dpbandits.audit.kinds import FOLDER, is_plain
from dpbandits.audit.reading import CURATOR, QUESTIONS, SELF, Looks, Reader, changed_names
from dpbandits.audit.refusals import Refused
from dpbandits.audit.sources import tree_of
from dpbandits.curators import confidence

__all__ = ["read_agent"]

#: Methods of an object that would change what reading it means.
SPECIAL = ("__getattribute__", "__getattr__", "__getitem__", "__iter__", "__call__", "__class_getitem__", "__setattr__")


def read_agent(policy: Any) -> None:
    """Refuse an agent unless it depends only on the curator's answers, and these only on public memory."""
    agent, curator, changed = policy.agent, policy.curator, changed_names(policy)
    reader = Reader(agent, "agent", curator, changed)
    reader.method("act", {0: CURATOR})
    questions = Reader(curator, "question", None, changed)
    for function in (standing.dispatch(type(agent)), propensities.dispatch(type(agent))):
        _registered(reader, function, {0: SELF, 1: CURATOR})
    _registered(questions, confidence.found.dispatch(type(curator)), {0: SELF})
    read_guarantee(curator)
    for name in sorted({*QUESTIONS, *reader.asked}):
        if not questions.methods(name):
            raise Refused(f"the curator has no method {name}")
        questions.method(name)
    if questions.methods("accepts"):
        questions.method("accepts")
    for part in (agent, curator):
        for c in classes(part):
            changes = [n for n in SPECIAL if any(n in vars(b) for b in c.__mro__ if b not in (tuple, object))]
            if [name for name in changes if name != "__class_getitem__"]:
                raise Refused(f"{c.__name__} defines {changes[0]}")
            for name in ("by_stint", "others_stand", "counts_ahead"):
                if isinstance(inspect.getattr_static(c, name, None), property) and not c.__module__.startswith(
                    "dpbandits."
                ):
                    raise Refused(f"{c.__name__} computes {name}")


def _registered(reader: Reader, function: Any, roles: dict[int, str]) -> None:
    """Read a function that a user has registered for a class of their own."""
    if not function.__code__.co_filename.startswith(FOLDER):
        reader.function(function, roles, registered=True)


def read_guarantee(curator: Any) -> None:
    """Refuse a ``guarantee`` that could touch memory: it may use the parameters and constants of self only."""
    values = zip(curator._fields, curator, strict=True)
    allowed = {name for name, value in values if not isinstance(value, np.ndarray | tuple)}
    for kind in type(curator).__mro__:
        method = vars(kind).get("guarantee")
        if method is None or (type(method) is types.FunctionType and method.__code__.co_filename.startswith(FOLDER)):
            continue
        where = f"curator ({kind.__name__}.guarantee)"
        if type(method) is not types.FunctionType or method.__code__.co_argcount != 1:
            raise Refused(f"{where}: is no plain method")
        tree = tree_of(method, where)
        nodes = list(ast.walk(tree))
        parent = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        for node in nodes:
            if not isinstance(node, ast.Name) or node.id not in (tree.args.args[0].arg, "super"):
                continue
            up = parent[node] if node.id != "super" else parent[parent[node]]
            named = up.attr if isinstance(up, ast.Attribute) and isinstance(up.ctx, ast.Load) else ""
            constant = is_plain(inspect.getattr_static(type(curator), named, kind))
            if not (named == "guarantee" if node.id == "super" else named in allowed or constant):
                raise Looks(f"{where}: does more with self than to name its parameters")
