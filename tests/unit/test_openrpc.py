"""The OpenRPC document is whole: what is called, taken, answered and told is in it, with its meaning.

That it is OpenRPC by the official meta-schema is checked in `ui/test/openrpc.test.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields

from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.openrpc import document
from ai_whisperer.protocol.vocabulary import MEANINGS

DOCUMENT = document("1.2.3")
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def references_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from references_in(each)


def structs_in(types: Iterator[Any]) -> dict[str, type[msgspec.Struct]]:
    """The records that values of these types are made of, by name."""
    found: dict[str, type[msgspec.Struct]] = {}

    def look(value: Any) -> None:
        if isinstance(value, msgspec.inspect.StructType):
            if value.cls.__name__ in found:
                return
            found[value.cls.__name__] = value.cls
        if isinstance(value, msgspec.inspect.Type | msgspec.inspect.Field):
            for name in value.__struct_fields__:
                look(getattr(value, name))
        elif isinstance(value, tuple):
            for each in value:
                look(each)

    look(msgspec.inspect.multi_type_info(types))
    return found


def test_it_has_every_method_of_the_catalog_once() -> None:
    assert [method["name"] for method in DOCUMENT["methods"]] == list(METHODS)


def test_it_has_every_notification_with_its_params() -> None:
    assert [told["name"] for told in DOCUMENT["x-notifications"]] == list(NOTIFICATIONS)


def test_it_is_for_the_version_that_was_asked_for() -> None:
    assert DOCUMENT["info"]["version"] == "1.2.3"
    assert document("4")["info"]["version"] == "4"


def test_every_reference_leads_somewhere() -> None:
    for reference in references_in(DOCUMENT):
        target: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target, reference


def test_every_schema_and_every_error_is_referred_to() -> None:
    used = {reference.rpartition("/")[2] for reference in references_in(DOCUMENT)}
    assert used == {*SCHEMAS, *DOCUMENT["components"]["errors"]}


def test_no_two_types_have_one_name() -> None:
    assert [name for name in SCHEMAS if not name.isalnum()] == []


def test_everything_has_a_description() -> None:
    for name, schema in SCHEMAS.items():
        assert schema.get("description"), name
    for method in DOCUMENT["methods"]:
        assert method["summary"].endswith("."), method["name"]
        for param in method["params"]:
            assert param["description"].endswith("."), param["name"]
    for told in DOCUMENT["x-notifications"]:
        assert told["summary"].endswith("."), told["name"]


def test_no_word_is_explained_that_no_method_takes() -> None:
    taken = {param["name"] for method in DOCUMENT["methods"] for param in method["params"]}
    assert set(MEANINGS) == taken


def test_descriptions_call_fields_as_they_are_sent() -> None:
    assert "`currentTask`" in SCHEMAS["AgentStatus"]["description"]
    assert "`current_task`" in SCHEMAS["GuideAgentStatus"]["description"]
    assert "`threadId == taskId`" in SCHEMAS["TaskRecord"]["description"]


@pytest.mark.parametrize("described", DOCUMENT["methods"], ids=lambda each: each["name"])
def test_params_can_be_given_by_position(described: dict[str, Any]) -> None:
    params = fields(METHODS[described["name"]].params)
    assert [each["name"] for each in described["params"]] == [each.encode_name for each in params]
    required = [each["required"] for each in described["params"]]
    assert required == [each.required for each in params]
    assert required == sorted(required, reverse=True), "what must be given comes first"


def test_records_of_the_server_are_sent_whole() -> None:
    results = structs_in(method.wire for method in METHODS.values())
    assert len(results) > 40
    for name, kind in results.items():
        whole = not kind.__struct_config__.omit_defaults
        wanted = [field.encode_name for field in fields(kind) if field.required or whole]
        assert SCHEMAS[name]["required"] == wanted, name


def test_what_a_notification_may_leave_out_is_not_required() -> None:
    params = {told["name"]: told["params"] for told in DOCUMENT["x-notifications"]}
    required = {each["name"]: each["required"] for each in params["step.finished"]}
    assert required == {
        **dict.fromkeys(("agentId", "taskId", "stepId", "kind", "state"), True),
        **dict.fromkeys(("tool", "usage", "isError", "run", "error", "requests"), False),
    }
