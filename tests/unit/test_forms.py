"""Which schemas are forms, and which answers fit them."""

from __future__ import annotations

from typing import Any

import pytest

from ai_whisperer.core.forms import FieldKind, choices_in_words, fields_of, fitted_answer, form_of
from ai_whisperer.errors import AnswerError, InvalidInputError

TRIP = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20, "description": "Where to"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "budget": {"type": "number"},
        "by_train": {"type": "boolean", "default": True},
        "class": {"enum": ["first", "second"]},
        "meals": {"type": "array", "items": {"enum": ["breakfast", "dinner"]}, "minItems": 1},
    },
    "required": ["city", "days"],
}


def test_a_form_has_fields_of_six_kinds() -> None:
    fields = fields_of(form_of(TRIP))
    assert [field.kind for field in fields] == [
        FieldKind.STRING,
        FieldKind.INTEGER,
        FieldKind.NUMBER,
        FieldKind.BOOLEAN,
        FieldKind.CHOICE,
        FieldKind.CHOICES,
    ]
    assert [field.name for field in fields if field.required] == ["city", "days"]


def test_the_fields_are_told_in_words() -> None:
    assert list(choices_in_words(form_of(TRIP))) == [
        "city: text, at most 20 characters (Where to)",
        "days: a whole number, at least 1, at most 14",
        "budget: a number, if you like",
        "by_train: true or false, if you like",
        "class: one of 'first', 'second', if you like",
        "meals: a list of 'breakfast', 'dinner' (at least 1), if you like",
    ]


def test_an_answer_that_fits_is_kept_as_it_is() -> None:
    answer = {"city": "Rome", "days": 3, "budget": 99.5, "by_train": False, "class": "first", "meals": ["dinner"]}
    assert fitted_answer(form_of(TRIP), answer) == answer


def test_what_is_not_required_may_be_left_out() -> None:
    assert fitted_answer(form_of(TRIP), {"city": "Rome", "days": 3.0, "budget": None}) == {"city": "Rome", "days": 3}


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("city", 7, "must be text, at most 20 characters, not 7"),
        ("city", "R" * 21, "must be text, at most 20 characters"),
        ("city", None, "is required"),
        ("days", "3", "must be a whole number, at least 1, at most 14, not '3'"),
        ("days", 2.5, "must be a whole number"),
        ("days", True, "must be a whole number"),
        ("days", 15, "at most 14, not 15"),
        ("budget", float("inf"), "must be a number"),
        ("by_train", "yes", "must be true or false, not 'yes'"),
        ("class", "third", "must be one of 'first', 'second', not 'third'"),
        ("meals", "dinner", "must be a list of 'breakfast', 'dinner' (at least 1), not 'dinner'"),
        ("meals", ["dinner", "dinner"], "must be a list"),
        ("meals", ["tea"], "must be a list"),
        ("meals", [], "(at least 1)"),
        ("dayz", 3, "is not asked for (did you mean 'days'?)"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_field(field: str, value: Any, complaint: str) -> None:
    with pytest.raises(AnswerError) as refused:
        fitted_answer(form_of(TRIP), {"city": "Rome", "days": 3, field: value})
    assert complaint in refused.value.data["fields"][field]
    assert f"'{field}' " in refused.value.message
    assert refused.value.message.endswith("The question stays open.")


def test_all_fields_that_do_not_fit_are_named_at_once() -> None:
    with pytest.raises(AnswerError) as refused:
        fitted_answer(form_of(TRIP), {"days": 99, "class": 1})
    assert set(refused.value.data["fields"]) == {"city", "days", "class"}


@pytest.mark.parametrize("schema", [None, {"type": "string"}, {"enum": ["yes", "no"]}])
def test_a_schema_of_one_value_or_none_is_a_form_of_one_field(schema: Any) -> None:
    form = form_of(schema)
    assert fitted_answer(form, "yes") == fitted_answer(form, {"answer": "yes"}) == {"answer": "yes"}


def test_a_whole_number_may_be_written_with_a_fraction_of_nothing() -> None:
    form = form_of({"type": "integer", "default": 3.0})
    assert fitted_answer(form, 4.0) == {"answer": 4}


def test_a_value_alone_is_no_answer_to_a_form_of_several_fields() -> None:
    with pytest.raises(AnswerError, match="must have the fields city, days"):
        fitted_answer(form_of(TRIP), "Rome")


def test_true_is_not_one() -> None:
    form = form_of({"enum": [1, 2, "1"]})
    with pytest.raises(AnswerError, match="must be one of 1, 2, '1', not true"):
        fitted_answer(form, {"answer": True})


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("text", "must be a JSON Schema"),
        ({"type": "object", "properties": {}}, "must have 1 to 50 fields"),
        ({"type": "object"}, "must have 1 to 50 fields"),
        ({"type": "array", "properties": {"a": {"type": "string"}}}, "is of the type object"),
        ({"properties": {"a": {"type": "object"}}}, "'a' has the type 'object', and may be string"),
        ({"properties": {"a": "string"}}, "'a' must be an object"),
        ({"properties": {"a": {"type": "string", "pattern": "x"}}}, "'a' has 'pattern', which a form cannot show"),
        ({"properties": {"a": {"type": "string", "maxlength": 3}}}, "Did you mean maxLength?"),
        ({"properties": {"a": {"type": "integer", "minimum": "3"}}}, "minimum, which must be a number"),
        ({"properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}}, "bounds that nothing fits"),
        ({"properties": {"a": {"type": "integer", "minimum": 0.2, "maximum": 0.8}}}, "bounds that nothing fits"),
        ({"properties": {"a": {"type": "number", "minimum": 1e300}}}, "bounds that nothing fits"),
        ({"properties": {"a": {"type": "string", "maxLength": -1}}}, "bounds that nothing fits"),
        ({"properties": {"a": {"type": "array", "items": {"enum": [1]}, "minItems": 2}}}, "bounds that nothing fits"),
        ({"properties": {"a": {"type": "string", "title": {"x": 1}}}}, "'a' has a title that is no text"),
        ({"properties": {"a": {"type": "string", "description": 5}}}, "'a' has a description that is no text"),
        ({"properties": {"a": {"type": "string"}}, "title": 5}, "The schema has a title that is no text"),
        ({"properties": {"a": {"enum": [2**60]}}}, "too large to be the same everywhere"),
        ({"properties": {"a": {"enum": []}}}, "a list of 1 to 100 values"),
        ({"properties": {"a": {"enum": ["x", "x"]}}}, "a value stands twice"),
        ({"properties": {"a": {"enum": [{}]}}}, "neither a text nor a number"),
        ({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}, "must have an enum"),
        ({"properties": {"a": {"type": "string"}}, "required": ["b"]}, "must be a list of names in properties"),
        ({"properties": {"a": {"type": "integer", "default": "x"}}}, "The default of the field 'a' must be a whole"),
        ({"properties": {"a": {"type": "string"}}, "oneOf": []}, "schema has 'oneOf'"),
        ({"properties": {"a": {"type": "string", "title": "x" * 20_000}}}, "may have 16,384"),
    ],
)
def test_a_schema_that_no_form_can_show_is_refused_with_the_reason(schema: Any, complaint: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        form_of(schema)
    assert complaint in refused.value.message
    assert "nobody was asked" in refused.value.message


ODD = [10**5000, 2**70, float("nan"), float("-inf"), object(), b"x", [[]], {"a": 1}, {5: 5}]


@pytest.mark.parametrize("field", ["city", "days", "budget", "by_train", "class", "meals"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: "10**5000" if value is ODD[0] else f"{value!r:.20}")
def test_odd_values_are_refused_with_the_field(field: str, value: Any) -> None:
    with pytest.raises(AnswerError) as refused:
        fitted_answer(form_of(TRIP), {"city": "Rome", "days": 3, field: value})
    assert list(refused.value.data["fields"]) == [field]


@pytest.mark.parametrize("answer", [{5: 5}, {None: 1}, [5], 5, object()])
def test_what_is_no_answer_at_all_is_refused(answer: Any) -> None:
    with pytest.raises(AnswerError):
        fitted_answer(form_of(TRIP), answer)
