"""The calls of `SessionApi` as the client makes them: checked, sent as the method of the protocol, the result read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Any, TypeVar

from ai_whisperer.client.base import ClientBase
from ai_whisperer.client.checks import CHECKS, TOGETHER
from ai_whisperer.core.paging import checked_id
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method, Params
from ai_whisperer.session_api import SessionApi, arguments_of, call_named, told

K = TypeVar("K", bound=type[ClientBase])


def complete(kind: K) -> K:
    """Give a client the calls of `SessionApi` that it does not make in a way of its own.

    For type checkers and for people it has them from `SessionApi`, with their signatures and what is said about them.
    Raises `TypeError` for a call that no method of the protocol is.
    """
    sent = {method.call: method for method in METHODS.values()}
    for name, said in vars(SessionApi).items():
        if not name.startswith("_") and getattr(kind, name) is said:
            if name not in sent:
                raise TypeError(f"No method of the protocol is the call {name}, so the client has to say what it does.")
            setattr(kind, name, _sending(sent[name], name, said))
    return told(kind)


def _sending(method: Method[Any, Any], name: str, said: FunctionType) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The call that sends this method."""
    params_of, only_field = _checked_params(method, name, said), method.only_field

    @functools.wraps(said)
    async def call(self: ClientBase, /, *args: Any, **kwargs: Any) -> Any:
        result = await self._call(method, params_of(self, *args, **kwargs))
        return result if only_field is None else getattr(result, only_field)

    return call


def _checked_params(method: Method[Any, Any], name: str, said: FunctionType) -> Callable[..., Params]:
    """What makes the params of the method from the arguments of its call.

    It is compiled from the names in our own code, so that a call costs what it would if it were written out.
    """
    fields = list(method.params.__struct_fields__)
    parameters = call_named(name).parameters
    scope = {"make": method.params, "together": TOGETHER.get(name), "checked_id": checked_id}
    sent = []
    if "session_id" in fields:
        fields.remove("session_id")
        sent.append("session_id=self._session_id")
    for field, parameter in arguments_of(name, fields).items():
        value, check = parameter, CHECKS.get(f"{name}.{parameter}") or CHECKS.get(parameter)
        if parameter == "task":
            value = "self._task_id(task)"
        elif check is not None:
            scope[f"check_{parameter}"] = check
            value = f"check_{parameter}({parameter})"
        if parameter == method.once:
            value = f"self._new_id() if {parameter} is None else checked_id({parameter})"
        elif parameters[parameter].default is None:
            value = f"None if {parameter} is None else {value}"
        sent.append(f"{field}={value}")
    first = f"together({', '.join(f'{each}={each}' for each in parameters)}) or " if name in TOGETHER else ""
    taken = ["self", *parameters]
    if said.__kwdefaults__:
        taken.insert(taken.index(next(iter(said.__kwdefaults__))), "*")
    params_of = eval(f"lambda {', '.join(taken)}: {first}make({', '.join(sent)})", scope)  # noqa: S307
    params_of.__defaults__, params_of.__kwdefaults__ = said.__defaults__, said.__kwdefaults__
    params_of.__qualname__ = said.__qualname__
    return params_of  # type: ignore[no-any-return]
