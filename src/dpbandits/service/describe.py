"""The hot routes in the OpenAPI document: they are plain ASGI, so FastAPI does not know them."""

from __future__ import annotations

from typing import Any

from dpbandits.client.responder import MECHANISMS
from dpbandits.service.experiment import NAME

__all__ = ["described"]

_TEXT: dict[str, Any] = {"type": "string"}
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
_LEVEL = {"anyOf": [{"type": "string", "maxLength": 200}, {"type": "number"}, {"type": "null"}]}
_NULLABLE_TEXT = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 200}, {"type": "null"}]}

_CURATOR = {
    "anyOf": [
        {
            "type": "object",
            "description": "What a client does with the reward: the mechanism, its exact epsilon, the range.",
            "properties": {
                "mechanism": {"enum": ["none", *MECHANISMS]},
                "epsilon": {"type": ["string", "null"]},
                "range": {"type": ["array", "null"], "items": {"type": "number"}},
                "sigmoid": {"type": "boolean"},
                "steps": {"type": "integer"},
                "respond_within": {
                    "type": ["number", "null"],
                    "description": "Seconds from the decision to respond_by.",
                },
                "respond_by": {"type": ["string", "null"]},
            },
            "required": ["mechanism", "epsilon", "range", "respond_within", "respond_by"],
        },
        {"type": "null"},
    ]
}
_DECISION = {
    "type": "object",
    "properties": {
        "decision": _TEXT,
        "arm": _TEXT,
        "propensity": {
            "type": ["number", "null"],
            "description": "The probability of this arm, given what the policy had been told, which arms are paused, "
            "and whether the user is held out; null where the policy itself chooses at random.",
        },
        "version": {"type": "integer"},
        "curator": _CURATOR,
        "token": {"type": ["string", "null"], "description": "Sent back with the response; null: none is taken."},
    },
    "required": ["decision", "arm", "propensity", "version", "curator", "token"],
}
_LEASE = {
    "type": "object",
    "properties": {"lease": _TEXT, "decisions": {"type": "array", "items": _DECISION}},
    "required": ["lease", "decisions"],
}
_ASKED = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "decision": {
            "anyOf": [{"type": "string", "pattern": "^[A-Za-z0-9._:=~-]{1,200}$"}, {"type": "null"}],
            "description": "A name of your own: the same request again gets the same stored answer, also while the "
            "experiment is paused or stopped. With another user, level or count it is refused.",
        },
        "user": {
            **_NULLABLE_TEXT,
            "description": "Stored as a keyed hash. Required where the experiment has max_responses_per_user.",
        },
        "level": {**_LEVEL, "description": "This user's own epsilon, where the experiment has levels."},
        "count": {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, {"type": "null"}],
            "description": "How many decisions to make at once.",
        },
    },
}
_OUTCOME = {
    "type": "object",
    "properties": {
        "status": {"enum": ["accepted", "duplicate", "conflict", "late", "unknown", "invalid"]},
        "reason": _TEXT,
    },
    "required": ["status"],
}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _problems(*codes: int) -> dict[str, Any]:
    return {str(code): {"description": "Refused", "content": _PROBLEM} for code in codes}


def _decide() -> dict[str, Any]:
    pattern = {"type": "string", "pattern": f"^{NAME.pattern}$"}
    name = {"name": "name", "in": "path", "required": True, "schema": pattern}
    return {
        "post": {
            "tags": ["decisions"],
            "summary": "Which arm to play, for one user or for many",
            "operationId": "decide",
            "parameters": [name],
            "requestBody": {"content": _json(_ASKED), "required": False},
            "responses": {
                "200": {
                    "description": "A decision, or a lease of many",
                    "content": _json({"anyOf": [_DECISION, _LEASE]}),
                },
                **_problems(400, 401, 403, 404, 409, 413, 422, 429, 503),
            },
        }
    }


def _told(field: str, what: dict[str, Any], summary: str) -> dict[str, Any]:
    item = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"token": _TEXT, field: what},
        "required": ["token", field],
    }
    body = {"anyOf": [item, {"type": "array", "items": item, "maxItems": 1000}]}
    refused = {
        str(code): {"description": said, "content": {**_json(_OUTCOME), **_PROBLEM}}
        for code, said in ((404, "Unknown token"), (409, "Another answer is stored"), (410, "Late"), (422, "Invalid"))
    }
    answer = {"anyOf": [_OUTCOME, {"type": "array", "items": _OUTCOME}]}
    return {
        "post": {
            "tags": ["decisions"],
            "summary": summary,
            "operationId": f"send_{field}",
            "requestBody": {"content": _json(body), "required": True},
            "responses": {
                "200": {"description": "What became of it, or of each of a list", "content": _json(answer)},
                **refused,
                **_problems(400, 401, 403, 413, 429, 503),
            },
        }
    }


def described(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the hot routes."""
    response = {
        "anyOf": [
            {"type": "integer"},
            {
                "type": "object",
                "properties": {"decision": _TEXT, "epsilon": _TEXT, "response": {"type": "integer"}},
                "required": ["decision", "epsilon", "response"],
                "additionalProperties": False,
            },
        ]
    }
    document["paths"] |= {
        "/v1/experiments/{name}/decisions": _decide(),
        "/v1/responses": _told("response", response, "A device's private response (local)"),
        "/v1/rewards": _told("reward", {"type": "number"}, "A reward (central)"),
    }
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["key"] = {"type": "http", "scheme": "bearer", "description": "An API key: dpbandits key create"}
    document["security"] = [{"key": []}, {}]
    return document
