"""Values of settings: from what people write into flags, variables and files to what the definition asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from ai_whisperer.choices import nearest

_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def kind_of(declared: inspect.Type) -> inspect.Type:
    """What a value is once it is there: without the description, and without the None of what can be missing."""
    if isinstance(declared, inspect.Metadata):
        return kind_of(declared.type)
    if isinstance(declared, inspect.UnionType):
        return next(kind_of(each) for each in declared.types if not isinstance(each, inspect.NoneType))
    return declared


def from_text(text: str, kind: inspect.Type) -> Any:
    """A text of the environment or of a flag, taken apart; raises `ValueError` for what is no number.

    Folders are parted as in `PATH`, other lists by commas, and a mapping is written `name=value,name=value`.
    """
    match kind:
        case inspect.IntType():
            return int(text)
        case inspect.FloatType():
            return float(text)
        case inspect.BoolType():
            return _TRUTH.get(text.lower(), text)
        case inspect.LiteralType():
            return text.lower()
        case inspect.VarTupleType(item_type=inspect.CustomType()):
            return _parts(text, os.pathsep)
        case inspect.VarTupleType():
            return _parts(text, ",")
        case inspect.StructType():
            return {name: _number(value) for name, value in _pairs(_parts(text, ",")).items()}
        case inspect.DictType(value_type=inspect.StructType()):
            return json.loads(text)
        case inspect.DictType():
            return _pairs(_parts(text, ","))
    return text


def from_object(value: Any, kind: inspect.Type) -> Any:
    """A value of a file or of a flag as plain data; one text stands for a list of one."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(kind, inspect.VarTupleType):
        several = [value] if isinstance(value, str) else value
        return [from_object(each, kind.item_type) for each in several] if isinstance(several, list | tuple) else value
    return dict(value) if isinstance(value, Mapping) else value


def checked(value: Any, declared: Any, *, folder: Path) -> Any:
    """The value as the declared type, with relative paths under `folder`; raises `ValueError` if it does not fit."""

    def path_from(_: type, written: Any) -> Path:
        if not isinstance(written, str) or not written or "\0" in written:
            raise ValueError("It must be a path")
        try:
            return folder / Path(written).expanduser()
        except RuntimeError as error:
            raise ValueError("There is no such home") from error

    return msgspec.convert(value, declared, dec_hook=path_from)


def expected(kind: inspect.Type) -> str:
    """What a person should write."""
    match kind:
        case inspect.IntType():
            return "a whole number" + _range(kind)
        case inspect.FloatType():
            return "a number" + _range(kind)
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of {', '.join(str(value) for value in kind.values)}"
        case inspect.CustomType():
            return "a path"
        case inspect.VarTupleType():
            return "a list of folders" if isinstance(kind.item_type, inspect.CustomType) else "a list of texts"
    return "text that is not empty"


def reason_in_table(value: Any, kind: inspect.Type) -> tuple[str, str] | None:
    """Which name in a table is wrong, and why, if that is why it does not fit."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(kind, inspect.StructType):
        known = [field.encode_name for field in kind.fields]
        for name in value:
            if name not in known:
                near = nearest(str(name), known)
                hint = f" Did you mean {near}?" if near else ""
                return str(name), f"there is no {name!r}.{hint} There are: {', '.join(known)}."
    of_folders = isinstance(kind, inspect.DictType) and isinstance(kind_of(kind.value_type), inspect.CustomType)
    if of_folders and "shared" in value:
        return "shared", "every session has a folder 'shared' already. Give this one another name."
    if of_folders and "own" in value:
        return "own", "paths that begin with 'own' lead to the own folder of an agent. Give this one another name."
    return None


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.gt is not None:
        return f" above {kind.gt:g}" + ("" if kind.le is None else f" and up to {kind.le:,g}")
    if kind.ge is None:
        return ""
    return f" of at least {kind.ge:,}" if kind.le is None else f" from {kind.ge:g} to {kind.le:.10g}"


def _number(text: str) -> int | float:
    """A number; one that is whole is a whole number, however it is written."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _parts(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _pairs(parts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or name.strip() in pairs:
            raise ValueError("not name=value, or a name twice")
        pairs[name.strip()] = value.strip()
    return pairs
