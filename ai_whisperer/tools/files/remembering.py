"""`memory`: files that an agent keeps for itself, beneath the folder `memory` of its own folder.

Paths are relative to that folder, and nothing leads out of it. The file tools do the work, in a workplace that has this
folder and no other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NoReturn

from msgspec.structs import replace

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.memory import INDEX, MEMORY, MemoryFile, MemoryText
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import DIRECTORY, Links, open_beneath
from ai_whisperer.tools.files.changing import FileChange, edit_file, write_file
from ai_whisperer.tools.files.content import text_of
from ai_whisperer.tools.files.listing import list_directory
from ai_whisperer.tools.files.opening import OpenPlace, opened, shown
from ai_whisperer.tools.files.reading import read_file
from ai_whisperer.tools.files.removing import remove_beneath
from ai_whisperer.tools.files.searcher import DRAFT_PREFIX
from ai_whisperer.tools.function import ToolContext, in_thread, tool
from ai_whisperer.tools.workplace import OWN, Folder, Workplace

Command = Literal["view", "create", "replace", "insert", "delete", "rename"]

MOST_FILES = 1_000
_DEEPEST = 10
_MOST_BYTES = 1 << 20
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "view": (),
    "create": ("path", "content"),
    "replace": ("path", "old", "new"),
    "insert": ("path", "line", "content"),
    "delete": ("path",),
    "rename": ("path", "new_path"),
}
_IN_WORDS = {
    "list_directory shows what is there": "view without a path shows what is there",
    "; write_file makes files": "; create makes files",
    "write_file writes whole files": "create with overwrite writes whole files",
    "the folder 'memory'": "your memory",
}


def _may_be_repeated(arguments: Mapping[str, Any]) -> bool:
    return arguments["command"] == "view" or (arguments["command"] == "create" and bool(arguments["overwrite"]))


@tool(name=MEMORY, idempotent=_may_be_repeated, untrusted=True)
async def memory(
    context: ToolContext,
    command: Command,
    path: str = "",
    content: str | None = None,
    old: str | None = None,
    new: str | None = None,
    line: int | None = None,
    new_path: str | None = None,
    overwrite: bool = False,  # noqa: FBT001, FBT002 - a parameter that models see
) -> str | ToolResult:
    """Keep notes in files of your own that last beyond this task. Paths are relative to your memory.

    view lists all files, or shows the one at path; create writes content to a new file, with overwrite also to one that
    is there; replace puts new in the place of old, which must be there once; insert puts content after that line, 0 for
    the beginning; delete removes a file or a folder; rename moves it to new_path. The file MEMORY.md is told to you at
    the beginning of each task: keep it short, with what matters most and which file holds what.
    """
    given = {"path": path or None, "content": content, "old": old, "new": new, "line": line, "new_path": new_path}
    missing = [name for name in _NEEDED[command] if given[name] is None]
    if missing:
        raise ToolError(f"{command} needs {' and '.join(missing)}. Call again with it.")
    inside = replace(context, workplace=memory_of(context.workplace))
    try:
        match command:
            case "view":
                return await _view(inside, path)
            case "create":
                await in_thread(_check_room, {"workplace": inside.workplace, "path": path}, context.cancelled)
                mode = "replace" if overwrite else "new"
                return await _call(write_file, inside, path=path, content=content, mode=mode)
            case "replace":
                return await _call(edit_file, inside, path=path, old=old, new=new)
            case "insert":
                return await FileChange(inside, path, _insertion(path, line or 0, content or ""), version=None).made(
                    None, None
                )
            case "delete":
                return str(await in_thread(_delete, {"context": inside, "path": path}, context.cancelled))
            case "rename":
                values = {"context": inside, "path": path, "new_path": new_path}
                return str(await in_thread(_rename, values, context.cancelled))
    except ToolError as error:
        _retold(error)


def memory_of(workplace: Workplace | None) -> Workplace:
    """A workplace that has the memory of the agent and nothing else."""
    if workplace is None:
        raise ToolError("There is no memory here. The tool works for agents of a session only.")
    folder = Folder(path=workplace.own.path / MEMORY, access=Access.WRITE)
    return replace(workplace, folders={OWN: folder}, network=(), sandbox=None, working=OWN)


def files_in(workplace: Workplace) -> list[MemoryFile]:
    """The files of a memory, by path; none if there is none. Raises `ToolError` if it is no folder of the agent's."""
    if not os.path.lexists(workplace.own.path):
        return []
    with opened(workplace, ".") as place:
        found = list(_walked(place.open(".", DIRECTORY), "", _DEEPEST))
    return sorted(found, key=lambda each: each.path)


def text_in(workplace: Workplace, path: str, *, most_bytes: int = _MOST_BYTES) -> MemoryText | None:
    """The beginning of a file of a memory; None if it is not there. Raises `ToolError` for what is no text file."""
    if not os.path.lexists(workplace.own.path):
        return None
    with opened(workplace, path) as place:
        try:
            descriptor, status = place.open_file()
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb", buffering=0) as file:
            data = file.read(most_bytes + 1) or b""
    is_cut = len(data) > most_bytes
    if is_cut:
        data = data[:most_bytes].decode(errors="ignore").encode()  # not through the middle of a character
    text = text_of(data, path=shown(path), size=status.st_size)
    return MemoryText(path=place.place.path, size=status.st_size, changed_at=status.st_mtime, text=text, is_cut=is_cut)


def index_in(workplace: Workplace, *, most_bytes: int) -> str:
    """What the agent is told as a task begins: the file MEMORY.md, as far as there is room; nothing if it cannot be."""
    try:
        found = text_in(workplace, INDEX, most_bytes=most_bytes)
    except ToolError as error:
        return f"[{INDEX} cannot be shown: {error.message}]"
    if found is None or not found.text.strip():
        return ""
    if not found.is_cut:
        return found.text
    note = f"[… cut: {INDEX} has {found.size:,} bytes, and {most_bytes:,} are told. Keep it short; view shows all.]"
    return f"{found.text}\n{note}"


async def _view(context: ToolContext, path: str) -> str:
    if path and await in_thread(_is_file, {"context": context, "path": path}, context.cancelled):
        return str(await in_thread(read_file.function, {"context": context, "path": path}, context.cancelled))
    values = {"context": context, "path": path or ".", "depth": _DEEPEST}
    return str(await in_thread(list_directory.function, values, context.cancelled))


async def _call(used: Any, context: ToolContext, **values: Any) -> str | ToolResult:
    done: str | ToolResult = await used.function(context, **values)
    return done


def _is_file(context: ToolContext, path: str) -> bool:
    with opened(context.workplace, path) as place:
        return not stat.S_ISDIR(_status(place).st_mode)


def _status(place: OpenPlace) -> os.stat_result:
    if place.place.path == ".":
        return os.fstat(place.folder)
    parent, last = place.parent()
    try:
        return os.stat(last, dir_fd=parent, follow_symlinks=False)
    finally:
        os.close(parent)


def _insertion(path: str, line: int, content: str) -> Any:
    def make(before: bytes | None) -> bytes:
        if before is None:
            raise ToolError(f"There is no '{shown(path)}'. create makes files.")
        lines = text_of(before, path=shown(path), size=len(before)).splitlines(keepends=True)
        if not 0 <= line <= len(lines):
            raise ToolError(f"line must be from 0 to {len(lines)}, the number of lines that '{shown(path)}' has.")
        if line and not lines[line - 1].endswith("\n"):
            lines[line - 1] += "\n"
        added = content if content.endswith("\n") or line == len(lines) else f"{content}\n"
        try:
            return "".join([*lines[:line], added, *lines[line:]]).encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"The content has a lone surrogate at character {error.start}. Remove it.") from error

    return make


def _check_room(workplace: Workplace, path: str) -> None:
    """Raise `ToolError` if there are as many files as there may be, and this would be one more."""
    files = files_in(workplace)
    if len(files) >= MOST_FILES and workplace.place(path).path not in {each.path for each in files}:
        raise ToolError(
            f"Your memory has {len(files):,} files, and may have {MOST_FILES:,}. Put several notes into one file, or "
            "delete some."
        )


def _delete(context: ToolContext, path: str) -> str:
    with opened(context.workplace, path, access=Access.WRITE) as place:
        if place.place.path == ".":
            raise ToolError("The memory itself cannot be deleted. Name what is to go.")
        _status(place)  # it must be there
        root = place.place.folder.path
        remove_beneath(root, root / place.place.path)
        return f"Deleted '{place.name}'."


def _rename(context: ToolContext, path: str, new_path: str) -> str:
    workplace = context.workplace
    with opened(workplace, path, access=Access.WRITE) as source, opened(workplace, new_path) as goal:
        if goal.place.path.rpartition("/")[2].startswith(DRAFT_PREFIX):
            raise ToolError(f"'{goal.name}' cannot be a name here: it is one of drafts. Choose another.")
        is_folder = stat.S_ISDIR(_status(source).st_mode)
        with contextlib.ExitStack() as stack:
            old_parent, old_name = source.parent()
            stack.callback(os.close, old_parent)
            new_parent, new_name = goal.made_parent()
            stack.callback(os.close, new_parent)
            try:
                _move(old_parent, old_name, new_parent, new_name, is_folder=is_folder)
            except FileExistsError as error:
                raise ToolError(
                    f"There is a '{goal.name}' already; both were left as they are. Choose another name."
                ) from error
            os.fsync(new_parent)
            os.fsync(old_parent)
        return f"Renamed '{source.name}' to '{goal.name}'."


def _move(old_parent: int, old: str, new_parent: int, new: str, *, is_folder: bool) -> None:
    if is_folder:
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=new_parent, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(old, new, src_dir_fd=old_parent, dst_dir_fd=new_parent)
        return
    os.link(old, new, src_dir_fd=old_parent, dst_dir_fd=new_parent, follow_symlinks=False)
    os.unlink(old, dir_fd=old_parent)


def _walked(directory: int, path: str, depth: int) -> Iterator[MemoryFile]:
    """The plain files in the open folder and below; it is closed at the end."""
    try:
        with os.scandir(directory) as entries:
            known = [entry for entry in entries if not entry.name.startswith(DRAFT_PREFIX)]
        for entry in known:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                name = f"{path}{entry.name}"
                if stat.S_ISREG(status.st_mode):
                    yield MemoryFile(path=name, size=status.st_size, changed_at=status.st_mtime)
                elif stat.S_ISDIR(status.st_mode) and depth > 1:
                    below = open_beneath(directory, entry.name, DIRECTORY, links=Links.REFUSED)
                    yield from _walked(below, f"{name}/", depth - 1)
    finally:
        os.close(directory)


def _retold(error: ToolError) -> NoReturn:
    """Raise the error in words for whoever may have this tool and no other."""
    message = error.message
    for words, others in _IN_WORDS.items():
        message = message.replace(words, others)
    raise ToolError(message) from error
