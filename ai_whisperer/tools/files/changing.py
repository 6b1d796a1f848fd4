"""`write_file` and `edit_file`: a file is changed whole or not at all, and what others wrote is not lost."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.definition import Access
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.content import text_of, version_of
from ai_whisperer.tools.files.drafts import Target
from ai_whisperer.tools.files.opening import OpenPlace, opened, shown, told
from ai_whisperer.tools.files.replacing import NoSingleMatchError, replaced
from ai_whisperer.tools.files.searcher import DRAFT_PREFIX
from ai_whisperer.tools.function import ToolContext, in_thread, tool

Mode = Literal["replace", "append", "new"]
Make = Callable[[bytes | None], bytes]
"""What the file is to hold, from what it holds; None if there is no file."""

_MOST_TRIES = 50
_MOST_EDITED_BYTES = 2 << 20
"""To look for a piece in more, and to replace it, would keep other threads from running for too long."""


def _may_be_repeated(arguments: Mapping[str, Any]) -> bool:
    return arguments["mode"] == "replace" and arguments["version"] is None and arguments["lock"] is None


@tool(touches="write file:{path}", idempotent=_may_be_repeated)
async def write_file(
    context: ToolContext,
    path: str,
    content: str,
    mode: Mode = "replace",
    version: str | None = None,
    lock: str | None = None,
    token: int | None = None,
) -> str:
    """Write a text file; folders on the way are made. The path is relative to your working folder.

    mode "new" fails if the file is there already, "append" adds to its end; neither ever loses what others wrote.
    "replace" writes the whole file: give the version that read_file told, and it fails if somebody else has changed
    the file since. If the file is guarded by a lock, give its name and the token that acquire_lock told, and it fails
    if you no longer hold the lock. Others see the old content or the new one, never a part.
    """

    def make(before: bytes | None) -> bytes:
        if mode == "new" and before is not None:
            raise ToolError(f"There is a file '{shown(path)}' already; it was left as it is. Choose another name.")
        try:
            return (before or b"" if mode == "append" else b"") + content.encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"The content has a lone surrogate at character {error.start}. Remove it.") from error

    change = FileChange(context, path, make, version=version)
    change.is_blind = mode == "replace" and version is None
    change.makes_files = version is None
    return await change.made(lock, token)


@tool(touches="write file:{path}", untrusted=True)
async def edit_file(
    context: ToolContext,
    path: str,
    old: str,
    new: str,
    all: bool = False,  # noqa: A002, FBT001, FBT002 - a parameter that models see
    version: str | None = None,
    lock: str | None = None,
    token: int | None = None,
) -> str | ToolResult:
    """Replace a piece of a text file by another: old is the exact text, with its spaces and line ends.

    It must be there once; with all, every place is changed. What others write to other places of the file is not lost.
    Give the version that read_file told, and it fails if the file was changed at all since. For lock and token see
    write_file. The path is relative to your working folder.
    """

    def make(before: bytes | None) -> bytes:
        if before is None:
            raise ToolError(f"There is no '{shown(path)}'. list_directory shows what is there; write_file makes files.")
        text = text_of(before, path=shown(path), size=len(before))
        return replaced(text, old, new, path=shown(path), everywhere=all, most_characters=_MOST_EDITED_BYTES).encode()

    change = FileChange(context, path, make, version=version)
    change.most_bytes = _MOST_EDITED_BYTES
    try:
        return await change.made(lock, token)
    except NoSingleMatchError as error:  # it quotes the file, so it has to be marked like what is read
        return ToolResult(content=error.message, is_error=True)


class FileChange:
    """One change of one file. It `is_blind` if it does not matter what the file holds.

    `most_bytes` is a limit beside that of the agent.
    """

    is_blind = False
    makes_files = False
    most_bytes: int | None = None

    def __init__(self, context: ToolContext, path: str, make: Make, *, version: str | None) -> None:
        self._context = context
        self._path = path
        self._make = make
        self._version = version

    async def made(self, lock: str | None, token: int | None) -> str:
        """Make the change and tell it; raises `ToolError` if it cannot be made, and then nothing has changed."""
        guard = self._guard(lock, token)
        cancelled = self._context.cancelled
        for _ in range(_MOST_TRIES):
            target, done = await in_thread(self._prepared, {}, cancelled)
            try:
                with guard():
                    is_in_place = await in_thread(self._put, {"target": target}, cancelled)
            finally:
                if target.is_open:  # the lock is not held any more
                    await in_thread(target.close, {}, cancelled)
            if is_in_place:
                return str(done)
        raise ToolError(
            f"'{shown(self._path)}' is being changed by others all the time; nothing was written. Try later."
        )

    def _guard(self, lock: str | None, token: int | None) -> Callable[[], contextlib.AbstractContextManager[Any]]:
        if lock is None and token is None:
            return contextlib.nullcontext
        if lock is None or token is None:
            raise ToolError("lock and token go together: the name of the lock, and the token that acquire_lock told.")
        return partial(self._context.guard, lock, token)

    def _prepared(self) -> tuple[Target, str]:
        """The file with its draft on disk, and what to tell when it is in place."""
        with opened(self._context.workplace, self._path, access=Access.WRITE) as place:
            _check_name(place)
            target = Target(place, makes_folders=self.makes_files)
            try:
                data = self._after(target, min(place.limits.max_file_bytes, self.most_bytes or math.inf))
                target.write_draft(data)
            except BaseException:
                target.close()
                raise
            return target, f"Wrote '{place.name}': {len(data):,} bytes, version {version_of(data)}."

    def _after(self, target: Target, max_bytes: float) -> bytes:
        data = self._make(self._before(target, max_bytes))
        if len(data) > max_bytes:
            raise ToolError(
                f"'{target.name}' would have {len(data):,} bytes, at most {max_bytes:,} are allowed; nothing was "
                "written. Write less, or in several files."
            )
        return data

    def _before(self, target: Target, max_bytes: float) -> bytes | None:
        """What the file holds, as far as that matters; raises `ToolError` if it is not the version that was named."""
        data: bytes | None = None
        if target.current is not None:
            if self.is_blind:
                return b""
            if target.current.status.st_size > max_bytes:
                raise ToolError(
                    f"'{target.name}' has {target.current.status.st_size:,} bytes; files of more than {max_bytes:,} "
                    f"cannot be {'changed, only replaced' if self.most_bytes is None else 'edited'}. Write to another "
                    "file, or change this one with a program."
                )
            data = target.current.read(target.name)
        if self._version is not None and (data is None or version_of(data) != self._version):
            now = "it was deleted" if data is None else f"its version is {version_of(data)}"
            raise ToolError(
                f"'{target.name}' is not as you read it: {now}; nothing was written. Read it again, see what others "
                "changed, and make your change to that."
            )
        return data

    def _put(self, target: Target) -> bool:
        with told(shown(self._path)), contextlib.closing(target):
            return target.replace() if self.is_blind else target.replace_if_unchanged()


def _check_name(place: OpenPlace) -> None:
    if place.place.path.rpartition("/")[2].startswith(DRAFT_PREFIX):
        raise ToolError(
            f"'{place.name}' cannot be written: names that begin with {DRAFT_PREFIX} are those of drafts, which are "
            "removed. Choose another name."
        )
