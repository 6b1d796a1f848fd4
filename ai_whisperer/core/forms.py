"""Forms: the flat JSON Schemas that answers of people fit, and whether one does.

A form is an object of fields without a level below: text, numbers, yes or no, one of some values, some of some values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ai_whisperer.choices import nearest
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import AnswerError, InvalidInputError

ONLY_FIELD = "answer"
"""What the field is called if a schema is that of one value, or there is none."""

_MOST_BYTES = 16 << 10
_MOST_FIELDS = 50
_MOST_OPTIONS = 100
_LARGEST = 2.0**53
"""A larger number is not the same everywhere; what is no number is not within it."""
_OF_FORM = frozenset(("type", "properties", "required", "title", "description", "additionalProperties", "$schema"))
_SAID = frozenset(("title", "description", "default", "examples", "format"))
"""What is said of a field for whoever reads it."""
_IN_WORDS = ("title", "description")


class FieldKind(StrEnum):
    """What a field holds: `choice` is one of its options, `choices` are any number of them."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"


_LIMITS: Mapping[FieldKind, tuple[str, str]] = {
    FieldKind.STRING: ("minLength", "maxLength"),
    FieldKind.NUMBER: ("minimum", "maximum"),
    FieldKind.INTEGER: ("minimum", "maximum"),
    FieldKind.CHOICES: ("minItems", "maxItems"),
}
_RANGES = {
    FieldKind.STRING: (0.0, _LARGEST),
    FieldKind.NUMBER: (-_LARGEST, _LARGEST),
    FieldKind.INTEGER: (-_LARGEST, _LARGEST),
}
_KINDS = {"string": FieldKind.STRING, "number": FieldKind.NUMBER, "integer": FieldKind.INTEGER}
_KINDS["boolean"] = FieldKind.BOOLEAN


class FormField(Record, frozen=True, kw_only=True):
    """A field of a form. `least` and `most` bound a number, the length of a text, or how many options are chosen."""

    name: str
    kind: FieldKind
    title: str = ""
    description: str = ""
    required: bool = False
    options: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None


def form_of(schema: Any) -> dict[str, Any]:
    """The schema of a form as it is kept: of an object, whatever was given. None is a form for any text.

    Raises `InvalidInputError` that names what is not possible in a form.
    """
    if schema is None:
        schema = {"type": "string"}
    if not isinstance(schema, dict):
        raise InvalidInputError(f"schema must be a JSON Schema, not {type(schema).__name__}; nobody was asked.")
    if "properties" not in schema and schema.get("type") != "object":
        schema = {"type": "object", "properties": {ONLY_FIELD: schema}, "required": [ONLY_FIELD]}
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"schema must be JSON: {error}; nobody was asked.") from error
    if size > _MOST_BYTES:
        raise InvalidInputError(f"schema has {size:,} bytes and may have {_MOST_BYTES:,}; nobody was asked.")
    form = {"type": "object", **schema}
    _check_form(form)
    return form


def fields_of(form: Mapping[str, Any]) -> list[FormField]:
    """The fields of a form, in their order."""
    required = form.get("required", ())
    return [_field(name, given, required=name in required) for name, given in form["properties"].items()]


def fitted_answer(form: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """The answer as it is kept, without what was left out; raises `AnswerError` that names the fields that do not fit.

    A value alone is the answer to a form of one field.
    """
    fields = {field.name: field for field in fields_of(form)}
    if not isinstance(answer, dict):
        if len(fields) != 1:
            raise AnswerError(f"The answer must have the fields {', '.join(fields)}. The question stays open.")
        answer = {next(iter(fields)): answer}
    complaints = {str(name): _unknown(str(name), fields) for name in answer if name not in fields}
    fitting: dict[str, Any] = {}
    for name, field in fields.items():
        value = answer.get(name)
        if value is None:
            if field.required:
                complaints[name] = "is required"
            continue
        value = _as_held(field, value)
        complaint = _complaint(field, value)
        if complaint is None:
            fitting[name] = value
        else:
            complaints[name] = complaint
    if complaints:
        told = "; ".join(f"'{name}' {complaint}" for name, complaint in complaints.items())
        error = AnswerError(f"The answer does not fit: {told}. The question stays open.")
        error.data = {"fields": complaints}
        raise error
    return fitting


def expected(field: FormField) -> str:
    """What a field takes, in words for people."""
    bounds = [f"at least {field.least:g}"] if field.least is not None else []
    bounds += [f"at most {field.most:g}"] if field.most is not None else []
    match field.kind:
        case FieldKind.CHOICE:
            return f"one of {_listed(field)}"
        case FieldKind.CHOICES:
            return " ".join([f"a list of {_listed(field)}", *(f"({each})" for each in bounds)])
        case FieldKind.BOOLEAN:
            return "true or false"
        case FieldKind.STRING:
            return ", ".join(["text", *(f"{each} characters" for each in bounds)])
    kind = "a whole number" if field.kind is FieldKind.INTEGER else "a number"
    return ", ".join([kind, *bounds])


def _check_form(form: Mapping[str, Any]) -> None:
    if form["type"] != "object":
        raise InvalidInputError("A schema with properties is of the type object; nobody was asked.")
    _check_words("schema", form, _OF_FORM)
    _check_said("The schema", form)
    properties, required = form.get("properties"), form.get("required", [])
    if not isinstance(properties, dict) or not 0 < len(properties) <= _MOST_FIELDS:
        raise InvalidInputError(f"schema.properties must have 1 to {_MOST_FIELDS} fields; nobody was asked.")
    if not isinstance(required, list) or not all(isinstance(each, str) and each in properties for each in required):
        raise InvalidInputError("schema.required must be a list of names in properties; nobody was asked.")
    for name, given in properties.items():
        field = _field(name, given, required=False)
        default = given.get("default")
        if default is not None and (wrong := _complaint(field, _as_held(field, default))) is not None:
            raise InvalidInputError(f"The default of the field '{name}' {wrong}; nobody was asked.")


def _field(name: str, given: Any, *, required: bool) -> FormField:
    if not isinstance(given, dict):
        raise _refused(name, "must be an object such as {'type': 'string'}")
    kind, options = _kind_of(name, given)
    _check_said(f"The field '{name}'", given)
    least, most = (_bound(name, given, word) for word in _LIMITS.get(kind, ("", "")))
    said = {word: given[word] for word in _IN_WORDS if given.get(word) is not None}
    field = FormField(name=name, kind=kind, required=required, options=options, least=least, most=most, **said)
    if not _can_be_filled(field):
        raise _refused(name, "has bounds that nothing fits")
    return field


def _can_be_filled(field: FormField) -> bool:
    """Whether there is a value within the bounds of the field: else nobody could answer."""
    lowest, highest = _RANGES.get(field.kind, (0.0, 0.0))
    if field.kind is FieldKind.CHOICES:
        highest = len(field.options)
    lowest = lowest if field.least is None else max(lowest, field.least)
    highest = highest if field.most is None else min(highest, field.most)
    return lowest <= highest if field.kind is FieldKind.NUMBER else math.ceil(lowest) <= math.floor(highest)


def _kind_of(name: str, given: Mapping[str, Any]) -> tuple[FieldKind, tuple[Any, ...]]:
    """What the field holds, with its options; raises `InvalidInputError` for what a form cannot show."""
    if given.get("type") == "array":
        _check_words(f"the field '{name}'", given, {"type", "items", "uniqueItems", "minItems", "maxItems", *_SAID})
        items = given.get("items")
        if not isinstance(items, dict) or "enum" not in items:
            raise _refused(name, "is a list, whose items must have an enum")
        _check_words(f"items of '{name}'", items, {"type", "enum", *_SAID})
        return FieldKind.CHOICES, _options(name, items["enum"])
    if "enum" in given:
        _check_words(f"the field '{name}'", given, {"type", "enum", *_SAID})
        return FieldKind.CHOICE, _options(name, given["enum"])
    named = given.get("type")
    kind = _KINDS.get(named) if isinstance(named, str) else None
    if kind is None:
        kinds = "string, number, integer, boolean, an enum, or an array of an enum"
        raise _refused(name, f"has the type {named!r:.50}, and may be {kinds}")
    _check_words(f"the field '{name}'", given, {"type", *_LIMITS.get(kind, ()), *_SAID})
    return kind, ()


def _options(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_OPTIONS:
        raise _refused(name, f"has an enum, which must be a list of 1 to {_MOST_OPTIONS} values")
    if not all(isinstance(each, str | int | float) for each in given):
        raise _refused(name, "has an enum with something that is neither a text nor a number nor true or false")
    if not all(isinstance(each, str) or abs(each) <= _LARGEST for each in given):
        raise _refused(name, "has an enum with a number that is too large to be the same everywhere; write it as text")
    if any(_same(each, other) for index, each in enumerate(given) for other in given[:index]):
        raise _refused(name, "has an enum in which a value stands twice")
    return tuple(given)


def _bound(name: str, given: Mapping[str, Any], word: str) -> float | None:
    bound = given.get(word)
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float)):
        raise _refused(name, f"has {word}, which must be a number")
    return bound


def _check_words(what: str, given: Mapping[str, Any], known: set[str] | frozenset[str]) -> None:
    for word in given:
        if word not in known:
            near = nearest(word, known)
            hint = f" Did you mean {near}?" if near else ""
            raise InvalidInputError(f"{what} has '{word}', which a form cannot show; nobody was asked.{hint}")


def _check_said(what: str, given: Mapping[str, Any]) -> None:
    for word in _IN_WORDS:
        if not isinstance(given.get(word), str | None):
            raise InvalidInputError(f"{what} has a {word} that is no text; nobody was asked.")


def _refused(name: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"The field '{name}' {why}; nobody was asked.")


def _complaint(field: FormField, value: Any) -> str | None:
    """What is wrong with the value; None if it fits."""
    if field.kind is FieldKind.CHOICES:
        is_list = isinstance(value, list) and all(any(_same(each, one) for one in field.options) for each in value)
        fits = is_list and not any(_same(each, other) for index, each in enumerate(value) for other in value[:index])
        size: float = len(value) if isinstance(value, list) else 0
    elif field.kind is FieldKind.CHOICE:
        fits, size = any(_same(value, one) for one in field.options), 0
    elif field.kind is FieldKind.BOOLEAN:
        fits, size = isinstance(value, bool), 0
    elif field.kind is FieldKind.STRING:
        fits, size = isinstance(value, str), len(value) if isinstance(value, str) else 0
    else:
        kinds = int if field.kind is FieldKind.INTEGER else int | float
        fits = isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= _LARGEST
        size = value if fits else 0
    within = (field.least is None or size >= field.least) and (field.most is None or size <= field.most)
    return None if fits and within else f"must be {expected(field)}, not {_shown(value)}"


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _as_held(field: FormField, value: Any) -> Any:
    """The value as its field holds it: a number without a fraction as a whole one, since some programs write 3.0."""
    is_whole = field.kind is FieldKind.INTEGER and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def _unknown(name: str, fields: Mapping[str, FormField]) -> str:
    near = nearest(name, fields)
    return "is not asked for" + (f" (did you mean '{near}'?)" if near else f" (asked for: {', '.join(fields)})")


def _listed(field: FormField) -> str:
    return ", ".join(map(_shown, field.options))


def _shown(value: Any) -> str:
    """The value as people write it, of a long one the beginning; what is no JSON as Python shows it."""
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "a number that is too large"  # Python would not even write the longest ones
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "nothing"}[value]
    return f"{value!r:.60}"


def choices_in_words(form: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a form, a line each, for people who answer in a terminal."""
    for field in fields_of(form):
        words = f"{field.name}: {expected(field)}" + ("" if field.required else ", if you like")
        said = field.description or field.title
        yield f"{words} ({said})" if said else words
