"""Tools from files of a project: every `@tool` in `.whisperer/tools/*.py`, and every tool of LangChain or pydantic-ai.

A file that begins with `_` holds code that the others share. The files are run as modules of one package, so that
`from ._shared import …` works, and so does `from _shared import …`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec

from ai_whisperer.errors import InvalidInputError, ToolFileError
from ai_whisperer.secrets import redacted
from ai_whisperer.tools.callee import is_of_others
from ai_whisperer.tools.function import Tool, as_tool
from ai_whisperer.tools.signature import innermost

_MAX_FILE_BYTES = 1 << 20


class ToolFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with the tools that it has; with an `error`, one that cannot be used, or not all of it."""

    path: Path
    tools: tuple[Tool, ...] = ()
    error: str | None = None


def standard_folder(project: Path | None = None) -> Path | None:
    """Where a project has its tools; None if there is no current folder any more."""
    try:
        return (Path.cwd() if project is None else project) / ".whisperer" / "tools"
    except FileNotFoundError:
        return None


def load_tool_files(folders: Iterable[Path]) -> list[ToolFile]:
    """Run the tool files of these folders, in the order of their names. What goes wrong is in the entries.

    Only files that nobody but the user and the administrator can change are run: they run with the rights of the user.
    """
    found: list[ToolFile] = []
    for folder in dict.fromkeys(folders):
        if os.path.lexists(folder):
            found.extend(_files_of(folder))
    return found


def run_file(path: Path) -> ModuleType:
    """Run one file anew: nothing is left in it of another run. Raises `ToolFileError` that names the line."""
    source = _source_of(path)
    package = _package_of(path.parent)
    with _neighbours_found(path.parent):
        return _run(path, source, package)


def tools_in(module: ModuleType, path: Path) -> list[Tool]:
    """The tools of a file that was run; raises `ToolFileError` if models cannot call one of them."""
    try:
        return [as_tool(each) for each in _tools_of(module, path.parent)]
    except InvalidInputError as error:
        raise ToolFileError(f"{path}: {error.message}") from error


def _files_of(folder: Path) -> Iterator[ToolFile]:
    try:
        _check_trusted(os.stat(folder), folder)
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".py" and path.name[0] != ".")
        for shared in paths:
            if shared.name.startswith("_"):
                _check_trusted(os.stat(shared), shared)
    except OSError as error:
        yield ToolFile(path=folder, error=_unreadable(folder, error))
        return
    except ToolFileError as error:
        yield ToolFile(path=folder, error=f"{error.message} No tool of '{folder}' is loaded.")
        return
    package = _package_of(folder)
    with _neighbours_found(folder):
        for path in paths:
            if not path.name.startswith("_"):
                yield _load(path, package)


def _load(path: Path, package: str) -> ToolFile:
    try:
        source = _source_of(path)
        module = _run(path, source, package)
    except ToolFileError as error:
        return ToolFile(path=path, error=error.message)
    tools: list[Tool] = []
    complaints: list[str] = []
    for each in _tools_of(module, path.parent):
        try:
            tools.append(as_tool(each))
        except InvalidInputError as error:
            complaints.append(f"{path}: {error.message} The tool is left out.")
    if not tools and not complaints:
        complaints.append(f"{path}: there is no tool in it. Put @tool before a function.")
    return ToolFile(path=path, tools=tuple(tools), error=" ".join(complaints) or None)


def _source_of(path: Path) -> bytes:
    """What the file says; the file that is looked at is the one that is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(descriptor)
            if not stat.S_ISREG(seen.st_mode):
                raise ToolFileError(f"{path}: cannot be read: it is not a file.")
            _check_trusted(seen, path)
            source = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ToolFileError(_unreadable(path, error)) from error
    if len(source) > _MAX_FILE_BYTES:
        raise ToolFileError(f"{path}: it has more than {_MAX_FILE_BYTES:,} bytes. Split it.")
    return source


def _run(path: Path, source: bytes, package: str) -> ModuleType:
    name = f"{package}.{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = package
    sys.modules[name] = module
    try:
        exec(_compiled(source, str(path)), module.__dict__)  # noqa: S102 - the user's own code
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(name, None)
        raise ToolFileError(_complaint(path, error)) from error
    return module


@lru_cache(maxsize=64)
def _compiled(source: bytes, path: str) -> CodeType:
    """What runs. A file that is run again and again is read as Python once."""
    return compile(source, path, "exec", dont_inherit=True)


def _tools_of(module: ModuleType, folder: Path) -> Iterator[Any]:
    """The tools that the file makes, each once; those that it took from its neighbours are theirs."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Tool) or is_of_others(value)}
    theirs: set[int] | None = None
    for each in found.values():
        function = each.function if isinstance(each, Tool) else each
        if is_of_others(function):  # its class, or its function, may be a neighbour's and itself not
            if theirs is None:
                theirs = {id(value) for other in _neighbours(module, folder) for value in vars(other).values()}
            is_own = id(each) not in theirs
        else:
            home = getattr(innermost(function), "__module__", None)
            source = getattr(sys.modules.get(home or ""), "__file__", None)
            is_own = home == module.__name__ or source is None or Path(source).parent != folder
        if is_own:
            yield each


def _neighbours(module: ModuleType, folder: Path) -> list[ModuleType]:
    """The other modules of the folder, as far as they are loaded."""
    return [
        other
        for other in list(sys.modules.values())
        if other is not module and (source := getattr(other, "__file__", None)) and Path(source).parent == folder
    ]


def _package_of(folder: Path) -> str:
    """The name of the package that the files of the folder are in; what was loaded of it before is forgotten."""
    name = f"whisperer_tools_{hashlib.sha256(str(folder).encode(errors='surrogateescape')).hexdigest()[:16]}"
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[known]
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    package.__spec__ = ModuleSpec(name, None, is_package=True)
    sys.modules[name] = package
    return name


@contextmanager
def _neighbours_found(folder: Path) -> Iterator[None]:
    """Let files import their neighbours by their plain names, those of another folder not."""
    before = set(sys.modules)
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            source = getattr(sys.modules[name], "__file__", None)
            if "." not in name and source is not None and Path(source).parent == folder:
                del sys.modules[name]


def _check_trusted(seen: os.stat_result, path: Path) -> None:
    if seen.st_uid not in (0, os.geteuid()):
        raise ToolFileError(
            f"{path}: it belongs to another user (number {seen.st_uid}), who could have anything run here. Make it "
            "your own if you trust it."
        )
    if seen.st_mode & stat.S_IWOTH:
        raise ToolFileError(f"{path}: everybody can change it, and so have anything run here. Run: chmod o-w '{path}'")


def _complaint(path: Path, error: BaseException) -> str:
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        words = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    except Exception:  # noqa: BLE001 - anybody's code: an error may fail to say what it is
        words = type(error).__name__
    where = f"{path}, line {line}" if line is not None else str(path)
    return redacted(f"{where}: the file cannot be loaded: {words}"[:2000])


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror or error}). Check the path and the permissions."
