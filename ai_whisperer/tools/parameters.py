"""The parameters of a tool: their JSON Schema, and the values that a model's JSON text holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from ai_whisperer.choices import valid_values
from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.errors import InvalidInputError, ToolArgumentsError
from ai_whisperer.tools.nesting import check_depth, check_unions
from ai_whisperer.tools.parameter_types import NoSchemaError, adapter_for, schemas_of, told_by

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Struct = TypeVar("Struct", bound=msgspec.Struct)

_INSTEAD = (
    "Use str, int, float, bool, list, dict, Literal, an Enum, a datetime, a Path, a TypedDict, a dataclass or a "
    "pydantic model instead."
)


class ArgumentsParser(Generic[Struct]):
    """Reads the JSON text that a model wrote as the parameters of a tool."""

    def __init__(self, struct: type[Struct]) -> None:
        self.type = struct
        self._decode = msgspec.json.Decoder(struct).decode

    def parse(self, arguments: str) -> Struct:
        """The parameters; raises `ToolArgumentsError` that names the field that does not fit."""
        try:
            return self._decode(arguments or "{}")
        except msgspec.ValidationError as error:
            raise misfit(f"{error}", self.type.__struct_fields__, valid_values(error, self.type)) from error
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise no_object(error) from error


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function. `default` makes its value if the model gives none; without one it has to."""

    name: str
    hint: Any
    default: Any = None


_MOST_TOLD = 64


class Parameters:
    """The parameters that a model gives.

    Raises `InvalidInputError` if there is no JSON Schema for the type of one, or if it takes exponential time to read.
    """

    __slots__ = ("_adapters", "_parser", "_told", "schema")

    def __init__(self, tool: str, parameters: Iterable[Parameter]) -> None:
        known = list(parameters)
        found = {each.name: _adapter_of(tool, each) for each in known}
        self._adapters = {name: adapter for name, adapter in found.items() if adapter is not None}
        self._parser = ArgumentsParser(_struct_of(known, raw=self._adapters))
        self.schema = self._merged(object_schema(self._parser.type))
        if self._adapters:
            check_unions(tool, self.schema)
        self._told: dict[tuple[str, str, bool], ToolSpec] = {}

    def told(self, name: str, description: str, *, untrusted: bool) -> ToolSpec:
        """What models are told of a tool that takes these: one object for the same tool of many agents."""
        key = name, description, untrusted
        known = self._told.get(key)
        if known is None:
            if len(self._told) == _MOST_TOLD:  # somebody makes up names
                self._told.clear()
            known = ToolSpec(name=name, description=description, parameters=self.schema, untrusted=untrusted)
            self._told[key] = known
        return known

    def parse(self, arguments: str) -> dict[str, Any]:
        """The values by name; raises `ToolArgumentsError` that says what does not fit."""
        names = self._parser.type.__struct_fields__
        try:
            parsed = self._parser.parse(arguments)
            values = {name: getattr(parsed, name) for name in names}
            for name, adapter in self._adapters.items():
                if isinstance(raw := values[name], msgspec.Raw):
                    check_depth(raw)
                    values[name] = validated(adapter.validate_json, bytes(raw), known=names, below=name)
        except (ToolArgumentsError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a class checks its values by code of its own
            raise unreadable(error) from error
        return values

    def _merged(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with what pydantic says of its parameters."""
        known = schema.pop("$defs", {})
        properties, definitions = schemas_of(self._adapters, taken=known)
        schema["properties"] = {**schema.get("properties", {}), **properties}
        return {**schema, "$defs": {**known, **definitions}} if known or definitions else schema


def misfit(why: str, known: Iterable[str], valid: str = "") -> ToolArgumentsError:
    """What a model is told of arguments that it can correct; `valid` is a sentence about the values that fit."""
    names = ", ".join(known) or "none"
    return ToolArgumentsError(
        f"The arguments do not fit: {why}.{valid} Parameters: {names}. Call again with the right ones."
    )


def no_object(error: Exception | None = None) -> ToolArgumentsError:
    """What a model is told of a text that is no JSON object."""
    why = "" if error is None else f": {error}"
    return ToolArgumentsError(f"The arguments are not a JSON object{why}. Call again with one.")


def unreadable(error: BaseException) -> ToolArgumentsError:
    """What a model is told of arguments at which the code of a type broke."""
    return ToolArgumentsError(f"The arguments cannot be read: {type(error).__name__}. Call again with others.")


def json_object(arguments: str) -> dict[str, Any]:
    """The JSON object that the text is; raises `ToolArgumentsError`."""
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise no_object(error) from error


def validated(check: Callable[[Any], Any], given: Any, *, known: Iterable[str], below: str = "") -> Any:
    """What a check by pydantic returns, of the parameter `below` or of all; raises `ToolArgumentsError`."""
    from pydantic import ValidationError

    try:
        return check(given)
    except KeyboardInterrupt:
        raise
    except ValidationError as error:
        raise misfit(told_by(error, below=below), known) from error
    except BaseException as error:  # a class checks its values by code of its own
        raise unreadable(error) from error


def object_schema(of: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of an object of this type, with what it refers to inside."""
    _, components = msgspec.json.schema_components([of], ref_template="#/$defs/{name}")
    schema = dict(components.pop(of.__name__))
    schema.pop("title", None)
    if components:
        schema["$defs"] = components
    return schema


def _adapter_of(tool: str, parameter: Parameter) -> TypeAdapter[Any] | None:
    try:
        return adapter_for(parameter.hint)
    except NoSchemaError as error:
        why = f" ({error})" if str(error) else ""
        raise InvalidInputError(
            f"The tool '{tool}' has the parameter '{parameter.name}' of the type {_words(parameter.hint)}, which "
            f"models cannot give: there is no JSON Schema for it{why}. {_INSTEAD}"
        ) from error


def _words(hint: Any) -> str:
    if isinstance(hint, type) and not hasattr(hint, "__args__"):
        return hint.__qualname__ if hint.__module__ == "builtins" else f"{hint.__module__}.{hint.__qualname__}"
    return str(hint)[:200]


def _struct_of(parameters: Iterable[Parameter], *, raw: Iterable[str]) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    as_written = set(raw)
    for each in parameters:
        hint = msgspec.Raw if each.name in as_written else each.hint
        if each.default is None:
            fields.append((each.name, hint))
        else:
            fields.append((each.name, hint, msgspec.field(default_factory=each.default)))
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
