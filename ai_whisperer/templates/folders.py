"""Folders of templates: which files are in them, and what each file says."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.addresses import normalized
from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.claude import claude_draft
from ai_whisperer.templates.drafts import Draft, draft_of
from ai_whisperer.templates.front_matter import has_front_matter, split

_MAX_FILE_BYTES = 1 << 20
_SUFFIX = ".md"
_NAME = re.compile(r"^name:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9_.\-]*)", re.MULTILINE)

Stamp = tuple[int, int, int]
"""Changes when a file does: time, size and number of the file."""


class TemplateKind(StrEnum):
    """Where a template is from."""

    PROJECT = "project"
    CLAUDE = "claude"
    USER = "user"
    FOLDER = "folder"
    BUILTIN = "built-in"


class TemplateFolder(msgspec.Struct, frozen=True):
    """A folder of the search path; one that does not exist is empty."""

    path: Path
    kind: TemplateKind


class TemplateFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was found, and what it says: a draft, or why it cannot be used. A folder has no name."""

    path: Path
    name: str
    content: Draft | TemplateError


class Listing(msgspec.Struct, frozen=True):
    """What was found in a folder, and the first file of each name as `normalized` has it."""

    files: Sequence[TemplateFile]
    by_name: Mapping[str, TemplateFile]


EMPTY = Listing((), {})


def folder_at(path: str | Path) -> TemplateFolder:
    """The folder at that path. In a `.claude/agents` the rules of Claude Code hold."""
    absolute = Path(os.path.abspath(Path(path).expanduser()))
    is_claude = (".claude", "agents") in zip(absolute.parts, absolute.parts[1:], strict=False)
    return TemplateFolder(absolute, TemplateKind.CLAUDE if is_claude else TemplateKind.FOLDER)


def look_into(folder: TemplateFolder) -> Listing:
    """What is in the folder and the folders in it, in the order of the paths.

    A file or folder that cannot be read is there too, with its error; of two templates of one name the second is such.
    The built-in folder does not change and is looked at once.
    """
    return _look_once(folder) if folder.kind is TemplateKind.BUILTIN else _look(folder)


def _look(folder: TemplateFolder) -> Listing:
    found: list[TemplateFile] = []
    _collect(str(folder.path), folder.kind, set(), found)
    if not found:
        return EMPTY
    first: dict[str, TemplateFile] = {}
    for index, file in enumerate(found):
        before = first.setdefault(normalized(file.name), file)
        if before is not file and file.name:
            complaint = f"{file.path}: the name '{file.name}' is that of {before.path} too. Rename one of them."
            found[index] = replace(file, content=TemplateError(complaint))
    return Listing(found, first)


_look_once = cache(_look)


def read_file(path: Path, kind: TemplateKind) -> TemplateFile | None:
    """What a file says; None for a file of Claude Code's folder that is no template (it has no fields)."""
    try:
        seen = os.stat(path)
    except (OSError, ValueError) as error:
        return _broken(path, _unreadable(str(path), error))
    if not stat.S_ISREG(seen.st_mode):
        return _broken(path, TemplateError(f"{path}: cannot be read: it is not a file."))
    return _read(str(path), kind, (seen.st_mtime_ns, seen.st_size, seen.st_ino))


def _collect(path: str, kind: TemplateKind, visited: set[tuple[int, int]], found: list[TemplateFile]) -> None:
    """Add the files under the path. A link that leads back to a folder on the way is not followed again."""
    try:
        this = os.stat(path)
        if (this.st_dev, this.st_ino) in visited:
            return
        visited.add((this.st_dev, this.st_ino))
        with os.scandir(path) as scanned:
            entries = sorted((entry for entry in scanned if entry.name[0] != "."), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        found.append(TemplateFile(path=Path(path), name="", content=_unreadable(path, error)))
        return
    for entry in entries:
        if entry.name.endswith(_SUFFIX):
            file = read_file(Path(entry.path), kind)
            if file is not None:
                found.append(file)
        elif _is_folder(entry):
            _collect(entry.path, kind, visited, found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _read(path: str, kind: TemplateKind, stamp: Stamp) -> TemplateFile | None:
    """Read the file once for each stamp that it has had."""
    del stamp
    text = ""
    try:
        text = _text_of(path)
        if kind is not TemplateKind.CLAUDE:
            draft = draft_of(split(text, path), path)
        elif has_front_matter(text):
            draft = claude_draft(split(text, path), path, file_name=Path(path).stem)
        else:
            return None
    except TemplateError as error:
        return _broken(Path(path), error, text)
    return TemplateFile(path=Path(path), name=draft.name, content=draft)


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(content) > _MAX_FILE_BYTES:
        raise TemplateError(f"{path}: cannot be read: it has more than {_MAX_FILE_BYTES:,} bytes. Shorten it.")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TemplateError(
            f"{path}, line {line}: cannot be read as text: it is not UTF-8. Save it with that encoding."
        ) from error


def _broken(path: Path, error: TemplateError, text: str = "") -> TemplateFile:
    """The file under the name that it claims or, if that cannot be read, its own."""
    claimed = _NAME.search(text)
    return TemplateFile(path=path, name=claimed[1] if claimed else path.stem, content=error)


def _unreadable(path: str, error: Exception) -> TemplateError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return TemplateError(f"{path}: cannot be read ({reason}). Check the path and the permissions.")
