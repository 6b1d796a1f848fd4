"""What a function says of itself: its name, its description, and what it is called with."""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec

from ai_whisperer.errors import InvalidInputError
from ai_whisperer.tools.parameters import Parameter, Parameters


class Signature(msgspec.Struct, frozen=True, weakref=True):
    """How functions are called: the parameters that models give; `context` is the one that the runtime fills."""

    parameters: Parameters
    context: str | None
    is_async: bool

    @property
    def schema(self) -> dict[str, Any]:
        return self.parameters.schema

    @property
    def takes_context(self) -> bool:
        return self.context is not None

    def parse(self, arguments: str) -> dict[str, Any]:
        return self.parameters.parse(arguments)

    def call(self, function: Any, values: dict[str, Any], context: Any) -> Any:
        if self.context is not None:
            values[self.context] = context
        return function(**values)


_BUILTINS = vars(builtins)

_known: WeakKeyDictionary[types.FunctionType, Signature] = WeakKeyDictionary()
"""One function may be provided for many agents."""

_shared: WeakValueDictionary[tuple[Any, ...], Signature] = WeakValueDictionary()
"""So may functions that are made anew for each agent, of one code: only what they close over is their own."""


def signature_of(function: Callable[..., Any], tool: str, *, context: type) -> Signature:
    """How the function is called; `context` is the type of what the runtime fills in.

    Raises `InvalidInputError` that names the tool, and says what to change, if models cannot call it.
    """
    if not isinstance(function, types.FunctionType):
        return _read(function, tool, context)
    key = _key_of(function, context)
    try:
        known = _known.get(function) if key is None else _shared.get(key)
    except Exception:  # noqa: BLE001 - a hint holds a list, a dict, or an object of anybody's, which has no hash
        key, known = None, _known.get(function)
    if known is None:
        known = _read(function, tool, context)
        if key is None:
            _known[function] = known
        else:
            _shared[key] = known
    return known


class _Same:
    """Equal to what holds the same object only: 1 is not True, and what has no hash has one here."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._held is self._held

    def __hash__(self) -> int:
        return id(self._held)


def _key_of(function: types.FunctionType, context: type) -> tuple[Any, ...] | None:
    """Equal for functions that are called in the same way; None for one that is like no other.

    What names mean in its module is in the hints. A decorated function says what it is called with by the one that it
    wraps.
    """
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return None
    defaults = tuple(map(_Same, function.__defaults__ or ()))
    named: tuple[Any, ...] = ()
    if function.__kwdefaults__:
        named = tuple((name, _Same(value)) for name, value in function.__kwdefaults__.items())
    hints = _plain_hints(function)
    try:
        if not hints:
            resolved = typing.get_type_hints(function, include_extras=True)
            hints = tuple((name, hint, repr(hint)) for name, hint in resolved.items())  # `A | B == B | A`
    except Exception:  # noqa: BLE001 - a hint means nothing, or is an object of anybody's
        return None
    return function.__code__, context, defaults, named, hints


def _plain_hints(function: types.FunctionType) -> tuple[Any, ...]:
    """What the hints mean by now, if each is a class, or the name of one; or else nothing. That is found fast."""
    if getattr(function, "__type_params__", ()):
        return ()
    known = function.__globals__
    found: list[Any] = []
    for name, hint in function.__annotations__.items():
        meant = hint
        if isinstance(hint, str):
            meant = known[hint] if hint in known else _BUILTINS.get(hint)
        if not isinstance(meant, type) and hint not in (None, "None"):
            return ()
        found += name, meant
    return tuple(found)


def name_of(function: Any) -> str:
    """What the function is called; nothing if it has no name, as a lambda has none."""
    inner = innermost(function)
    name = getattr(inner, "__name__", "") or type(inner).__name__
    return "" if name == "<lambda>" else name


def description_of(function: Any) -> str:
    """What the function says that it does."""
    inner = innermost(function)
    if not hasattr(inner, "__name__"):  # an object that can be called
        return inspect.cleandoc(type(inner).__call__.__doc__ or type(inner).__doc__ or "")
    return _cleaned(inner.__doc__) if isinstance(inner.__doc__, str) else inspect.getdoc(inner) or ""


@functools.lru_cache(maxsize=1024)
def _cleaned(docstring: str) -> str:
    """One text for all that say the same."""
    return inspect.cleandoc(docstring)


def innermost(function: Any) -> Any:
    """The function that `functools.partial` was given, or the function itself."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _read(function: Callable[..., Any], tool: str, context: type) -> Signature:
    hints, signature = _hints_and_signature(function, tool)
    bound = _bound_by(function)
    filled: str | None = None
    given: list[Parameter] = []
    for each in signature.parameters.values():
        hint = hints.get(each.name, Any)
        if each.name in bound:
            continue
        if _is_context(hint, context):
            filled = each.name
            continue
        _check_kind(each, tool)
        given.append(_parameter(each, hint))
    return Signature(Parameters(tool, given), filled, _is_async(function))


def _hints_and_signature(function: Callable[..., Any], tool: str) -> tuple[dict[str, Any], inspect.Signature]:
    inner = innermost(function)
    if isinstance(inner, type):
        raise InvalidInputError(
            f"The tool '{tool}' is a class. Give a function, or an object of the class if that can be called."
        )
    try:
        signature = inspect.signature(function)
        hinted = inner if hasattr(inner, "__name__") else type(inner).__call__
        return typing.get_type_hints(hinted, include_extras=True), signature
    except NameError as error:
        raise InvalidInputError(
            f"The tool '{tool}' has a type hint that cannot be read: {error}. Import it, or define it, at the top of "
            "the file and not only for type checkers."
        ) from error
    except Exception as error:  # hints and `__signature__` are anybody's code
        raise InvalidInputError(
            f"The tool '{tool}' has a signature that cannot be read: {type(error).__name__}: {error}. Write a function "
            "around it."
        ) from error


def _bound_by(function: Any) -> set[str]:
    """The parameters that `functools.partial` has given by their names: models do not."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound.update(function.keywords)
        function = function.func
    return bound


def _is_context(hint: Any, context: type) -> bool:
    """Whether the hint is that type, also as `Optional` or `Annotated`."""
    if typing.get_origin(hint) is Annotated:
        return _is_context(hint.__origin__, context)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_context(each, context) for each in typing.get_args(hint))
    return hint is context


def _check_kind(parameter: inspect.Parameter, tool: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        kind = f"'{stars}{parameter.name}'" if stars else f"'{parameter.name}', which has no name for callers"
        raise InvalidInputError(
            f"The tool '{tool}' cannot have the parameter {kind}: models give arguments by their names. Use plain "
            "named parameters; a decorator around the function needs functools.wraps."
        )
    if parameter.name == "self" and parameter.annotation is parameter.empty:
        raise InvalidInputError(
            f"The tool '{tool}' is a method without its object. Make a tool of the method of an object: "
            f"tool(my_object.{tool})."
        )


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    default = parameter.default
    if default is parameter.empty:
        return Parameter(parameter.name, hint)
    if type(default).__module__ == "pydantic.fields" and hasattr(default, "is_required"):  # x: int = Field(ge=0)
        made = None if default.is_required() else functools.partial(default.get_default, call_default_factory=True)
        return Parameter(parameter.name, Annotated[hint, default], made)
    return Parameter(parameter.name, hint, _constant(default))


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _is_async(function: Callable[..., Any]) -> bool:
    inner = innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__)
