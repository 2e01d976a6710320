"""The page at /docs: the OpenAPI document as plain HTML, without scripts, and with nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

__all__ = ["POLICY", "reference"]

Schema = dict[str, Any]

_FOLDER = resources.files("dpbandits.service").joinpath("templates")
STYLE = _FOLDER.joinpath("reference.css").read_text(encoding="utf-8")
_ENGINE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
_TEMPLATE = _ENGINE.from_string(_FOLDER.joinpath("reference.html.j2").read_text(encoding="utf-8"))

#: A browser that reads the page may load nothing, but this style.
POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

ORDER = ("experiments", "decisions", "results", "planning", "operation")
TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false"}
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "maxLength": "up to {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "as {}",
}


class Field(NamedTuple):
    """A parameter, or a field of a body: its name, what it may be in words, and what it is for."""

    name: str
    words: str
    description: str


class Operation(NamedTuple):
    """An address, what it takes and what it answers."""

    method: str
    path: str
    summary: str
    parameters: list[Field]
    body: list[Field]
    many: bool  # whether the body may be a list of such objects
    answers: dict[str, Any]  # by status, but for those that every operation may answer


def reference(document: dict[str, Any]) -> str:
    """The page for a document.

    >>> schema = {"type": "integer", "minimum": 1}
    >>> asked = {"name": "points", "in": "query", "schema": schema, "description": "How many."}
    >>> read = {"summary": "Read", "tags": ["results"], "parameters": [asked], "responses": {}}
    >>> page = reference({"info": {"title": "t", "version": "1"}, "paths": {"/v1/x": {"get": read}}})
    >>> "<b>GET</b> <code>/v1/x</code>" in page, "whole number, at least 1, optional" in page
    (True, True)
    """
    tags: dict[str, list[Operation]] = {tag: [] for tag in ORDER}
    every = [(path, *one) for path, operations in document["paths"].items() for one in operations.items()]
    problems = _in_all([operation["responses"] for *_, operation in every])
    for path, method, operation in every:
        tags[operation["tags"][0]].append(_operation(document, method, path, operation, problems))
    return _TEMPLATE.render(info=document["info"], style=Markup(STYLE), tags=tags, problems=problems)


def _in_all(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The refusals that every operation may answer."""
    first = answers[0] if answers else {}
    return {code: one for code, one in first.items() if int(code) >= 400 and all(code in found for found in answers)}


def _operation(
    document: dict[str, Any], method: str, path: str, operation: dict[str, Any], problems: dict[str, Any]
) -> Operation:
    asked = [
        _field(one["name"], _resolved(document, one["schema"]), bool(one.get("required")), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = _resolved(document, body)
    one_of = [_resolved(document, one) for one in body.get("anyOf", [body])]
    many = any(one.get("type") == "array" for one in one_of)
    own = {code: one for code, one in operation["responses"].items() if code not in problems}
    sent = list(_fields(document, one_of[0]))
    return Operation(method.upper(), path, operation["summary"], asked, sent, many, own)


def _fields(document: dict[str, Any], schema: Schema, before: str = "") -> Iterator[Field]:
    """The fields of an object, and of the objects in it."""
    for name, found in schema.get("properties", {}).items():
        inner = _resolved(document, found)
        if inner.get("properties"):
            yield from _fields(document, inner, f"{before}{name}.")
        else:
            needed = name in schema.get("required", ())
            yield _field(before + name, inner, needed, inner.get("description", ""))


def _field(name: str, schema: Schema, required: bool, description: str) -> Field:
    default = schema.get("default")
    when = "required" if required else "optional" if default is None else f"{_plain(default)} unless given"
    return Field(name, f"{_kind(schema)}, {when}", description)


def _kind(schema: Schema) -> str:
    """What a value may be, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind: str = schema.get("type", "any")
    words = f"list of {_kind(schema['items'])}" if kind == "array" else TYPES.get(kind, kind)
    bounds = [text.format(_plain(schema[name])) for name, text in BOUNDS.items() if name in schema]
    return ", ".join([words, *bounds])


def _plain(value: Any) -> str:
    """As JSON writes it; whole numbers without a point."""
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value).strip('"')


def _resolved(document: dict[str, Any], schema: Schema) -> Schema:
    """The schema that a reference names."""
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    found: Schema = document["components"]["schemas"][name]
    return found
