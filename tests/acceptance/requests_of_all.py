"""A valid request of every method, made from the types of its params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method

KNOWN: Mapping[str, Any] = {
    "agentId": "worker",
    "to": "worker",
    "taskId": "task-1",
    "approvalId": "task-1.2",
    "questionId": "task-1.2",
    "answer": "yes",
    "mailId": "mail-1",
    "roomId": "room-1",
    "scheduleId": "schedule-1",
    "mails": [{"to": "worker", "subject": "s", "body": "b", "mailId": "mail-2"}],
    "members": ["worker"],
    "state": "read",
    "name": "analyst",
    "cron": "0 9 * * *",
    "zone": "Europe/Berlin",
    "config": {"description": "A worker."},
    "template": "analyst",
    "wakeEvents": ["alert"],
    "data": {"some": ["data", 1, None]},
    "owner": "user",
    "budget": {"maxTokens": 1000},
    "limits": {"max_queue_length": 500, "max_mail_bytes": None},
    "outputSchema": {"type": "object"},
    "parts": [{"data": "aGVsbG8=", "name": "hello.txt"}],
    "path": "MEMORY.md",
    "until": 4102444800.0,
    "olderThan": "30d",
    "set": {"worker.description": "Another worker."},
    "at": 2,
    "runs": 1,
}
"""Values that make sense, by the names of params; all others are made from their types."""


def required_params(method: Method[Any, Any], session_id: str) -> dict[str, Any]:
    """Params that a call cannot do without."""
    return {name: value for name, value in all_params(method, session_id).items() if name in _required(method)}


def all_params(method: Method[Any, Any], session_id: str) -> dict[str, Any]:
    """A value for every param that there is."""
    described = inspect.type_info(method.params)
    assert isinstance(described, inspect.StructType)
    values: dict[str, Any] = {}
    for field in described.fields:
        name = field.encode_name
        values[name] = KNOWN[name] if name in KNOWN else _value(field.type, name)
    values |= {name: session_id for name in ("sessionId", "otherSessionId") if name in values}
    return values


def in_session(method: Method[Any, Any]) -> bool:
    """Whether the method acts in a session that must be there."""
    return "session_id" in method.params.__struct_fields__ and "sessionId" in _required(method)


def every_request(session_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Two requests of each method: with what is required, and with everything."""
    found: list[tuple[str, dict[str, Any]]] = []
    for method in METHODS.values():
        found.append((method.name, required_params(method, session_id)))
        found.append((method.name, all_params(method, session_id)))
    return found


def _required(method: Method[Any, Any]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(method.params) if field.required}


def _value(kind: inspect.Type, name: str) -> Any:
    match kind:
        case inspect.UnionType():
            return _value(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), name)
        case inspect.StrType():
            return f"some {name}"
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 5
        case inspect.FloatType():
            return 0.5
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.VarTupleType() | inspect.ListType():
            return [_value(kind.item_type, name)]
        case _:
            raise AssertionError(f"There is no value for the param {name} of the type {kind}. Give it one in KNOWN.")
