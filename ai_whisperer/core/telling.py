"""What a notification says, in words: for people who watch, and for the lines of logs.

The words stand beside the record of the notification, as a template:

- `{field}` is a field as it is sent, `{error.message}` one within it, `{retryAt:time}` one with how it is shown, and
  `{@sender}` an agent, which has a name on the page.
- `[one|another]` is the first of these that can be told, or nothing. One with a condition before it, such as
  `[replyTo?…]`, `[state=dead?…]` or `[depth>1?…]`, can be told only if that holds.

What is missing, empty, null or false cannot be told. Where such a field is not within brackets, there are no words at
all. `ui/src/history/telling.ts` does the same for the page, and cuts what is too long for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ai_whisperer.core.moments import duration, moment
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.late_pattern import late_pattern

_Params = dict[str, Any]
_Filler = Callable[[_Params], str | None]

_PART = late_pattern(r"\[([^]]*)\]|\{@?([\w.]+):?(\w*)\}")
_CONDITION = late_pattern(r"([\w.]+)([=>]?)(\w*)\?")


def told(name: str, params: _Params) -> tuple[str, str] | None:
    """Who did what; None for what has no words, or lacks what they tell, as in a log of an earlier version."""
    kind = NOTIFICATIONS.get(name)
    if kind is None:
        return None
    try:
        who, what = filler(kind.who)(params), filler(kind.words)(params)
    except (TypeError, ValueError):
        return None
    return None if who is None or what is None else (who, what)


@cache
def filler(template: str) -> _Filler:
    """What fills in a template; it returns None if the template cannot be told."""
    parts: list[str | _Filler] = []
    end = 0
    for found in _PART.finditer(template):
        parts += [template[end : found.start()], _field(found[2], found[3]) if found[2] else _choice(found[1])]
        end = found.end()
    parts = [part for part in (*parts, template[end:]) if part != ""]
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]

    def fill(params: _Params) -> str | None:
        texts = []
        for part in parts:
            text = part if isinstance(part, str) else part(params)
            if text is None:
                return None
            texts.append(text)
        return "".join(texts)

    return fill


def _field(path: str, form: str) -> _Filler:
    value_of = _value(path)
    shown = _FORMS[form]

    def fill(params: _Params) -> str | None:
        value = value_of(params)
        return value if value is None or (isinstance(value, str) and not form) else shown(value)

    return fill


def _choice(written: str) -> _Filler:
    choices = [_alternative(each) for each in written.split("|")]

    def fill(params: _Params) -> str:
        for tell in choices:
            text = tell(params)
            if text is not None:
                return text
        return ""

    return fill


def _alternative(written: str) -> _Filler:
    condition = _CONDITION.match(written)
    if condition is None:
        return filler(written)
    path, relation, other = condition.groups()
    value_of, tell = _value(path), filler(written[condition.end() :])
    if relation == "=":
        return lambda params: tell(params) if str(value_of(params)) == other else None
    if relation == ">":
        return lambda params: tell(params) if (value_of(params) or 0) > float(other) else None
    return lambda params: None if value_of(params) is None else tell(params)


def _value(path: str) -> Callable[[_Params], Any]:
    """What looks a field up; it returns None for what cannot be told."""
    first, *others = path.split(".")

    def value_of(params: _Params) -> Any:
        value = params.get(first)
        for key in others:
            value = value.get(key) if isinstance(value, dict) else None
        return value if value or (value == 0 and value is not False) else None

    return value_of


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | dict) else str(value)


def _last(text: str) -> str | None:
    """The last line of what a tool writes; those before it went by."""
    return text.strip().rpartition("\n")[2] or None


_FORMS: dict[str, Callable[[Any], str | None]] = {
    "": _shown,
    "count": lambda value: f"{value:,.1f}".removesuffix(".0"),
    "duration": lambda value: duration(abs(value)),
    "last": _last,
    "money": lambda value: f"${value:.4f}" if value < 1 else f"${value:.2f}",
    "time": moment,
    "words": lambda value: _shown(value).replace("_", " "),
}
