"""Answers to forms as people type them: text that is read as what its field holds."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ai_whisperer.core.forms import FieldKind, FormField, fields_of
from ai_whisperer.errors import AnswerError

_YES = ("y", "yes", "true", "on", "1")
_NO = ("n", "no", "false", "off", "0")


def typed_value(field: FormField, text: str) -> Any:
    """What the text means in this field; the text itself if it means nothing there, for that is told then."""
    text = text if field.kind is FieldKind.STRING else text.strip()
    match field.kind:
        case FieldKind.STRING:
            return text
        case FieldKind.BOOLEAN:
            return {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}.get(text.lower(), text)
        case FieldKind.CHOICE:
            return _option(field, text)
        case FieldKind.CHOICES:
            return _chosen(field, text)
    try:
        return int(text) if field.kind is FieldKind.INTEGER and text.isdecimal() else float(text)
    except ValueError:
        return text


def typed_answer(form: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The answer that these words are: `name=value` for each field, or the value alone if there is one field.

    Raises `AnswerError` that says how to write it. Whether the values fit is not looked at here.
    """
    fields = {field.name: field for field in fields_of(form)}
    if len(fields) == 1:
        ((name, field),) = fields.items()
        return {name: typed_value(field, " ".join(words).removeprefix(f"{name}="))}
    answer: dict[str, Any] = {}
    for word in words:
        name, is_field, text = _parted(word, fields)
        if not is_field:
            wanted = " ".join(f"{each}=…" for each in fields)
            raise AnswerError(f"The question has several fields: write {wanted}. It stays open.")
        answer[name] = typed_value(fields[name], text) if name in fields else text
    return answer


def typed_line(form: Mapping[str, Any], line: str) -> dict[str, Any]:
    """The same of a whole line, in which quotation marks hold words together if there are several fields."""
    if len(form["properties"]) == 1:
        return typed_answer(form, [line])
    try:
        return typed_answer(form, shlex.split(line))
    except ValueError as error:
        raise AnswerError(f"The answer cannot be read: {error}. The question stays open.") from error


def _parted(word: str, names: Iterable[str]) -> tuple[str, str, str]:
    """The name of the field and what is to be in it: there may be an equals sign in a name, too."""
    known = max((name for name in names if word.startswith(f"{name}=")), key=len, default=None)
    return word.partition("=") if known is None else (known, "=", word[len(known) + 1 :])


def _chosen(field: FormField, text: str) -> list[Any]:
    """The options between commas: there may be commas in an option, too."""
    parts, chosen = text.split(","), []
    while parts:
        ends = range(len(parts), 0, -1)
        taken = next((end for end in ends if _option(field, _joined(parts[:end])) in field.options), 1)
        if option := _joined(parts[:taken]):
            chosen.append(_option(field, option))
        del parts[:taken]
    return chosen


def _joined(parts: Sequence[str]) -> str:
    return ",".join(parts).strip()


def _option(field: FormField, text: str) -> Any:
    """The option that is written so, whatever the case; the text itself if there is none."""
    shown = {_written(each): each for each in field.options}
    return shown.get(text, next((each for name, each in shown.items() if name.lower() == text.lower()), text))


def _written(option: Any) -> str:
    return str(option).lower() if isinstance(option, bool) else str(option)
