"""The OpenRPC document: what `rpc.discover` answers, made from the types that validate the calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec.structs import fields

from ai_whisperer.protocol import errors, jsonrpc
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method
from ai_whisperer.protocol.notifications import NOTIFICATIONS

_REFERENCE = "#/components/schemas/{name}"

_ERRORS = {
    jsonrpc.INVALID_PARAMS: "The input is not valid; the message names the field. Nothing was changed.",
    errors.NOT_FOUND: "There is no such thing; the message says what there is.",
    errors.CONFLICT: "The call does not fit what is there. Nothing was changed.",
    errors.TOO_MANY_REQUESTS: "The limit was reached. Try again later.",
    errors.STORE: "The database cannot be used.",
    errors.MODEL: "The model cannot be used.",
    errors.SERVER_ERROR: "Something else went wrong; `data.code` says what.",
}


@cache
def document(version: str) -> dict[str, Any]:
    """The document for this version of the product."""
    methods = list(METHODS.values())
    results, components = msgspec.json.schema_components([each.wire for each in methods], ref_template=_REFERENCE)
    params, more = msgspec.json.schema_components([each.params for each in methods], ref_template=_REFERENCE)
    schemas = {**more, **components}
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "AI Whisperer",
            "version": version,
            "description": "Runs many AI agents at the same time. JSON-RPC 2.0 over WebSocket at /ws.",
        },
        "methods": [
            _described(method, params=schemas[_name_in(given)], result=result)
            for method, given, result in zip(methods, params, results, strict=True)
        ],
        "components": {
            "schemas": {name: schema for name, schema in schemas.items() if name not in _params_of(methods)},
            "errors": {
                str(code).replace("-", "E"): {"code": code, "message": meaning} for code, meaning in _ERRORS.items()
            },
        },
        "x-notifications": [{"name": name, "summary": summary} for name, summary in NOTIFICATIONS.items()],
    }


def _described(method: Method[Any, Any], *, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    summary, _, rest = method.summary.partition("\n\n")
    described = {"name": method.name, "summary": _one_line(summary), "tags": [{"name": method.name.partition(".")[0]}]}
    if rest:
        described["description"] = _one_line(rest)
    required = params.get("required", [])
    return {
        **described,
        "paramStructure": "either",
        "params": [
            {
                "name": each.encode_name,
                "required": each.encode_name in required,
                "schema": params["properties"][each.encode_name],
            }
            for each in fields(method.params)
        ],
        "result": {"name": "result", "schema": result},
        "errors": [{"$ref": f"#/components/errors/{str(code).replace('-', 'E')}"} for code in _ERRORS],
    }


def _params_of(methods: list[Method[Any, Any]]) -> set[str]:
    return {method.params.__name__ for method in methods}


def _name_in(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _one_line(text: str) -> str:
    return " ".join(text.split())
