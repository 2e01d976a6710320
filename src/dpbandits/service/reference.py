"""The page at /docs: the OpenAPI document as plain HTML, without scripts, and with nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from typing import Any

__all__ = ["POLICY", "reference"]

Schema = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; --line: light-dark(#e1e4ea, #2c3240); --quiet: light-dark(#586174, #a0a9bb);
  --page: light-dark(#f5f6f8, #12151c); --card: light-dark(#fff, #1b1f29); --ink: light-dark(#1c2230, #e6e9f0);
  --accent: light-dark(#3b4bc8, #8f9cff); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 56rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--accent); }
section > h2 { margin: 2.5rem 0 0.5rem; }
article { margin: 0.75rem 0; padding: 0.75rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 0.5rem; }
h3 { margin: 0; font-size: 1rem; font-weight: 400; overflow-wrap: anywhere; }
h3 b { color: var(--accent); }
h4 { margin: 0.75rem 0 0.25rem; font-size: 0.9rem; }
p { margin: 0.25rem 0; }
dl { margin: 0; }
dt { margin-top: 0.4rem; overflow-wrap: anywhere; }
dd { margin: 0 0 0 1rem; color: var(--quiet); }
dt small, p small { color: var(--quiet); }
code { font-size: 0.92em; }
pre { padding: 0.75rem; overflow-x: auto; background: var(--page); border-radius: 0.4rem; }
"""

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


def reference(document: dict[str, Any]) -> str:
    """The page for a document.

    >>> schema = {"type": "integer", "minimum": 1}
    >>> asked = {"name": "points", "in": "query", "schema": schema, "description": "How many."}
    >>> read = {"summary": "Read", "tags": ["results"], "parameters": [asked], "responses": {}}
    >>> page = reference({"info": {"title": "t", "version": "1"}, "paths": {"/v1/x": {"get": read}}})
    >>> "<b>GET</b> <code>/v1/x</code>" in page, "whole number, at least 1, optional" in page
    (True, True)
    """
    tags: dict[str, list[str]] = {tag: [] for tag in ORDER}
    every = [(path, *one) for path, operations in document["paths"].items() for one in operations.items()]
    problems = _in_all([operation["responses"] for *_, operation in every])
    for path, method, operation in every:
        tags[operation["tags"][0]].append("".join(_operation(document, method, path, operation, problems)))
    links = ", ".join(f'<a href="#{tag}">{tag}</a>' for tag in tags)
    parts = "".join(
        f'<section id="{tag}"><h2>{tag.capitalize()}</h2>{"".join(of)}</section>' for tag, of in tags.items()
    )
    info = document["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta name="description" content="Every address of this server, what it takes, and what it answers.">'
        f"<title>The API of {escape(info['title'])}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>The API of {escape(info['title'])}</h1><p>Version {escape(info['version'])}: {links}. For programs: "
        '<a href="openapi.json">openapi.json</a> (OpenAPI). <a href="./">The page with all experiments</a>.</p>'
        "<p>Bodies and answers are JSON. Where the server has keys, each request needs the header "
        "<code>Authorization: Bearer KEY</code>. What is refused is answered by a problem document (RFC 9457): "
        "<code>status</code>, <code>detail</code> in words, and <code>parameter</code>, the field that is wrong. "
        f"Any request may be answered: {_codes(problems)}.</p>"
        f"{parts}</main></body></html>"
    )


def _in_all(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The refusals that every operation may answer."""
    first = answers[0] if answers else {}
    return {code: one for code, one in first.items() if int(code) >= 400 and all(code in found for found in answers)}


def _codes(answers: dict[str, Any]) -> str:
    return "; ".join(f"<code>{code}</code> {escape(one['description'])}" for code, one in answers.items())


def _operation(
    document: dict[str, Any], method: str, path: str, operation: dict[str, Any], problems: dict[str, Any]
) -> Iterator[str]:
    yield f"<article><h3><b>{method.upper()}</b> <code>{escape(path)}</code></h3><p>{escape(operation['summary'])}.</p>"
    asked = [
        _field(one["name"], _resolved(document, one["schema"]), bool(one.get("required")), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    if asked:
        yield f"<h4>Parameters</h4><dl>{''.join(asked)}</dl>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        body = _resolved(document, body)
        one_of = [_resolved(document, one) for one in body.get("anyOf", [body])]
        many = " or a list of such objects" if any(one.get("type") == "array" for one in one_of) else ""
        yield f"<h4>Body: an object{many}</h4><dl>{''.join(_fields(document, one_of[0]))}</dl>"
    own = {code: one for code, one in operation["responses"].items() if code not in problems}
    yield f"<p><small>Answers: {_codes(own)}.</small></p></article>"


def _fields(document: dict[str, Any], schema: Schema, before: str = "") -> Iterator[str]:
    """The fields of an object, and of the objects in it."""
    for name, found in schema.get("properties", {}).items():
        inner = _resolved(document, found)
        if inner.get("properties"):
            yield from _fields(document, inner, f"{before}{name}.")
        else:
            needed = name in schema.get("required", ())
            yield _field(before + name, inner, needed, inner.get("description", ""))


def _field(name: str, schema: Schema, required: bool, description: str) -> str:
    default = schema.get("default")
    when = "required" if required else "optional" if default is None else f"{_plain(default)} unless given"
    words = escape(f"{_kind(schema)}, {when}")
    return f"<dt><code>{escape(name)}</code> <small>{words}</small></dt><dd>{escape(description)}</dd>"


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
