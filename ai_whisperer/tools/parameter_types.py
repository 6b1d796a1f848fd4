"""The types of a tool's parameters: which there is a JSON Schema for, and how what a model wrote becomes a value.

msgspec reads what it knows. The rest is for pydantic, which is imported only then: its own models, fields and
dataclasses, paths, and unions that cannot be told apart by their JSON kind alone, such as two dataclasses.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_MARKS_OF_PYDANTIC = ("__get_pydantic_core_schema__", "__pydantic_core_schema__")
_SHOWN_MISTAKES = 5


class NoSchemaError(Exception):
    """There is no JSON Schema for a type. The text says why, if it says anything."""


def adapter_for(hint: Any) -> TypeAdapter[Any] | None:
    """What reads values of this type; None if msgspec does. Raises `NoSchemaError` if nothing can."""
    if not _mentions_pydantic(hint, set()) and _is_for_msgspec(hint):
        return None
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except PydanticUserError as error:
        raise NoSchemaError(error.message if error.code == "typed-dict-version" else "") from error
    except (Exception, SystemExit) as error:  # a class may have its own say about its schema
        raise NoSchemaError(type(error).__name__) from error
    return adapter


def schemas_of(
    adapters: Mapping[str, TypeAdapter[Any]], *, taken: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON Schema of each, and the definitions that they refer to, under names that are not taken."""
    if not adapters:
        return {}, {}
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Without the titles of fields, which say nothing but the names again."""

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
            return False

    wanted: Any = [(name, "validation", adapter) for name, adapter in adapters.items()]
    prefix = ""
    while True:
        by_key, shared = TypeAdapter.json_schemas(
            wanted, ref_template=f"#/$defs/{prefix}{{model}}", schema_generator=Untitled
        )
        definitions = {f"{prefix}{name}": schema for name, schema in shared.get("$defs", {}).items()}
        if definitions.keys().isdisjoint(taken):
            return {name: dict(by_key[name, "validation"]) for name in adapters}, definitions
        prefix += "_"


def told_by(error: ValidationError, *, below: str = "") -> str:
    """What does not fit, and where, without the values themselves."""
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{each['msg']} - at `{_path((below, *each['loc']) if below else each['loc'])}`" for each in mistakes]
    more = f"; and {len(told) - _SHOWN_MISTAKES} more" if len(told) > _SHOWN_MISTAKES else ""
    return "; ".join(told[:_SHOWN_MISTAKES]) + more


def _path(places: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in places)


def _is_for_msgspec(hint: Any) -> bool:
    try:
        msgspec.json.Decoder(hint)
        msgspec.json.schema(hint)
    except Exception:  # noqa: BLE001 - it looks into anybody's classes, and each has its own way to fail
        return False
    return True


def _mentions_pydantic(hint: Any, seen: set[int]) -> bool:
    """Whether pydantic has a say about values of this type: msgspec would pass over what it asks for."""
    if id(hint) in seen:
        return False
    seen.add(id(hint))
    if _is_of_pydantic(hint) or any(map(_is_of_pydantic, getattr(hint, "__metadata__", ()))):
        return True
    inside = [*typing.get_args(hint), getattr(hint, "__supertype__", None), getattr(hint, "__value__", None)]
    if isinstance(hint, type) and _has_fields(hint):
        try:
            inside.extend(typing.get_type_hints(hint, include_extras=True).values())
        except Exception:  # noqa: BLE001 - anybody's annotations; whoever reads the type complains of them
            return False
    return any(_mentions_pydantic(each, seen) for each in inside if each is not None)


def _is_of_pydantic(thing: Any) -> bool:
    if any(hasattr(thing, mark) for mark in _MARKS_OF_PYDANTIC):
        return True
    home = type(thing).__module__.partition(".")[0]
    return home in ("pydantic", "annotated_types")


def _has_fields(hint: type) -> bool:
    return dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or hasattr(hint, "_fields")
