"""Whether a value fits a JSON Schema, and which schemas may be asked for."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from ai_whisperer.core.json_schema import complaints_about
from ai_whisperer.core.output_schemas import MAX_SCHEMA_BYTES, checked_schema
from ai_whisperer.errors import InvalidInputError, TooLargeError

ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]"},
        "count": {"type": "integer", "minimum": 0, "exclusiveMaximum": 10, "multipleOf": 2},
        "kind": {"enum": ["a", 1, None]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 2},
        "pair": {"prefixItems": [{"type": "integer"}, {"type": "boolean"}], "items": False, "type": "array"},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "one": {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}], "type": "integer"},
        "none": {"not": {"const": 7}},
        "all": {"allOf": [{"type": "number"}, {"maximum": 3}]},
        "child": {"$ref": "#/$defs/child"},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"child": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/child"}}}},
}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({}, "`name` is missing."),
        ({"name": 1}, "`name` must be a text, not 1."),
        ({"name": "ab", "count": 3}, "`count` must be a multiple of 2, not 3."),
        ({"name": "ab", "count": True}, "`count` must be a whole number, not true."),
        ({"name": "ab", "kind": True}, '`kind` must be one of "a", 1, null, not true.'),
        ({"name": "ab", "tags": ["x", 2]}, "`tags[1]` must be a text, not 2."),
        ({"name": "ab", "child": {"next": {"next": 3}}}, "`child.next.next` must be an object or null, not 3."),
        ({"name": "ab", "size": 1}, "`size` is not known here. There is: name, count, kind"),
        ([], "The value must be an object, not a list."),
    ],
)
def test_a_complaint_names_the_place_and_what_is_wrong_there(value: Any, complaint: str) -> None:
    assert complaints_about(value, ITEM)[0].startswith(complaint)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"multipleOf": 0.1}, 1e300, True),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 3}, 10**40, False),
        ({"multipleOf": 1e-300}, 1e300, True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [1, True, "1"], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ({"enum": [[1]]}, [True], False),
        ({"enum": [[1]]}, [1.0], True),
        ({"const": {"a": 0}}, {"a": False}, False),
    ],
)
def test_numbers_are_compared_as_json_has_them_however_large(schema: Any, value: Any, *, fits: bool) -> None:
    assert (complaints_about(value, schema) == []) is fits


def test_a_text_has_to_have_its_format() -> None:
    schema = {"type": "string", "format": "date-time"}
    assert complaints_about("2026-02-03T10:00:00Z", schema) == []
    assert "format date-time" in complaints_about("yesterday", schema)[0]


def test_a_value_of_several_kinds_is_told_what_is_wrong_for_the_kind_that_it_is_of() -> None:
    schema = {"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]}
    assert complaints_about({}, schema) == ["`a` is missing."]


def test_random_values_are_judged_as_a_reference_implementation_judges_them() -> None:
    chance = random.Random(7)
    leaves: list[Any] = [
        0,
        1,
        2,
        3,
        4,
        7,
        9,
        10,
        -1,
        2.0,
        2.5,
        True,
        False,
        None,
        "",
        "a",
        "abc",
        "toolong",
        "X",
        [],
        {},
    ]
    reference = jsonschema.Draft202012Validator(ITEM)

    def some(depth: int) -> Any:
        if depth and chance.random() < 0.3:
            return [some(depth - 1) for _ in range(chance.randrange(4))]
        if depth and chance.random() < 0.3:
            return {chance.choice(["next", "x"]): some(depth - 1)}
        return chance.choice(leaves)

    fitting = 0
    for _ in range(3_000):
        names = chance.sample([*ITEM["properties"], "other"], chance.randrange(4))
        value = {"name": "abc", **{name: some(2) for name in names}}
        fits = reference.is_valid(value)
        fitting += fits
        assert (complaints_about(value, ITEM) == []) is fits, json.dumps(value)
    assert 300 < fitting < 2_700


def test_a_schema_that_branches_without_end_is_not_looked_at_for_ever() -> None:
    branching = {
        "$defs": {"x": {"anyOf": [{"items": {"$ref": "#/$defs/x"}, "type": "array"}] * 8}},
        "$ref": "#/$defs/x",
    }
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    assert complaints_about(deep, checked_schema(branching))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ([], "which is an object, not a list"),
        ("object", "which is an object, not a text"),
        ({"type": "objekt"}, "at `type`: type must be one or several of string, integer"),
        (
            {"properties": {"a": {"requried": ["b"]}}},
            "`properties.a.requried`: there is no keyword 'requried'. Did you",
        ),
        ({"required": "a"}, "required must be a list of names"),
        ({"$ref": "#/$defs/nothing"}, "leads nowhere"),
        ({"$ref": "https://example.org/schema"}, "leads nowhere"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "lead in a cycle"),
        ({"allOf": [{"$ref": "#"}]}, "lead in a cycle"),
        ({"pattern": "("}, "a regular expression"),
        ({"if": {"type": "string"}}, "answers are not checked for this keyword"),
        ({"enum": []}, "a list of values"),
        ({"items": [{"type": "string"}]}, "items must be a schema"),
        ({"const": float("nan")}, "must be JSON"),
        ({"const": object()}, "must be JSON"),
    ],
)
def test_a_schema_that_cannot_be_asked_for_is_refused_with_the_place(schema: Any, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=r"\S") as refused:
        checked_schema(schema)
    assert complaint in refused.value.message


def test_a_schema_that_is_too_large_or_too_deep_is_refused() -> None:
    with pytest.raises(TooLargeError, match="65,536"):
        checked_schema({"description": "x" * MAX_SCHEMA_BYTES})
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"items": deep}
    with pytest.raises(InvalidInputError, match="nested"):
        checked_schema(deep)


def test_what_only_describes_a_value_is_taken_as_it_is() -> None:
    schema = {"title": "A", "$schema": "x", "x-own": 1, "examples": [1], "properties": {"requried": {"default": 1}}}
    assert checked_schema(schema) == schema
