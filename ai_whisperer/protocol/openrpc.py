"""The OpenRPC document: what `rpc.discover` answers, made from the types that validate the calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.protocol import errors, jsonrpc
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method
from ai_whisperer.protocol.vocabulary import MEANINGS
from ai_whisperer.protocol.wire import wire_type

_REFERENCE = "#/components/schemas/{name}"

_ERRORS = {
    jsonrpc.PARSE_ERROR: "The frame is not valid JSON.",
    jsonrpc.INVALID_REQUEST: "The frame is no JSON-RPC request, or larger than the server takes.",
    jsonrpc.METHOD_NOT_FOUND: "There is no such method; the message names what is near.",
    jsonrpc.INVALID_PARAMS: "The input is not valid; the message names the field. Nothing was changed.",
    errors.NOT_FOUND: "There is no such thing; the message says what there is.",
    errors.CONFLICT: "The call does not fit what is there. Nothing was changed.",
    errors.TOO_MANY_REQUESTS: "The limit was reached. Try again later.",
    errors.STORE: "The database cannot be used.",
    errors.MODEL: "The model cannot be used.",
    jsonrpc.INTERNAL_ERROR: "The server failed by a fault of its own; its log has more under `data.requestId`.",
    errors.SERVER_ERROR: "Something else went wrong; `data.code` says what.",
}


@cache
def document(version: str) -> dict[str, Any]:
    """The document for this version of the product."""
    results = {name: method.wire for name, method in METHODS.items()}
    params = {name: method.params for name, method in METHODS.items()}
    told = {name: wire_type(kind) for name, kind in NOTIFICATIONS.items()}
    # All at once: two types of one name are then called by their modules too, and neither takes the other's place.
    references, schemas = msgspec.json.schema_components(
        [*results.values(), *params.values(), *told.values()], ref_template=_REFERENCE
    )
    result_of = dict(zip(results, references, strict=False))
    params_of = dict(zip(params, references[len(results) :], strict=False))
    told_of = dict(zip(told, references[len(results) + len(params) :], strict=True))
    spread = {_name_in(reference) for reference in (*params_of.values(), *told_of.values())}
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "AI Whisperer",
            "version": version,
            "description": "Runs many AI agents at the same time. JSON-RPC 2.0 over WebSocket at /ws.",
        },
        "methods": [
            _described(method, params=schemas[_name_in(params_of[name])], result=result_of[name])
            for name, method in METHODS.items()
        ],
        "components": {
            "schemas": {name: _plain(_as_sent(schema)) for name, schema in schemas.items() if name not in spread},
            "errors": {_error_name(code): {"code": code, "message": meaning} for code, meaning in _ERRORS.items()},
        },
        "x-notifications": [
            {
                "name": name,
                "summary": kind.sentence(),
                "params": _descriptors(_as_sent(schemas[_name_in(told_of[name])])),
            }
            for name, kind in NOTIFICATIONS.items()
        ],
    }


def _described(method: Method[Any, Any], *, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    summary, _, rest = method.summary.partition("\n\n")
    described = {"name": method.name, "summary": _one_line(summary), "tags": [{"name": method.name.partition(".")[0]}]}
    if rest:
        described["description"] = _one_line(rest)
    return {
        **described,
        "paramStructure": "either",
        "params": _with_meanings(_descriptors(params)),
        "result": {"name": "result", "schema": result},
        "errors": [{"$ref": f"#/components/errors/{_error_name(code)}"} for code in _ERRORS],
    }


def _descriptors(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties of an object one by one, as OpenRPC has params."""
    required = schema["required"]
    return [{"name": name, "required": name in required, "schema": each} for name, each in schema["properties"].items()]


def _with_meanings(descriptors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": each["name"], "description": MEANINGS[each["name"]], **each} for each in descriptors]


def _as_sent(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record that the server sends: it leaves out no field that has a default.

    What people write (params, definitions) is closed against unknown keys, and may leave such fields out.
    """
    if "properties" not in schema or schema.get("additionalProperties") is False:
        return schema
    properties, required = schema["properties"], schema["required"]
    return {**schema, "required": [name for name, each in properties.items() if name in required or "default" in each]}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its description on one line: line ends are where Python wants them."""
    return {**schema, "description": _one_line(schema["description"])} if "description" in schema else schema


def _error_name(code: int) -> str:
    return str(code).replace("-", "E")


def _name_in(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _one_line(text: str) -> str:
    return " ".join(text.split())
