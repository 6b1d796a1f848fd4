"""The program that searches files, in a process of its own: an expression can keep an interpreter busy for ever.

It is handed to the interpreter as text, so it uses nothing but the standard library. It reads a request from its
standard input, as JSON, and writes a line of JSON for each match and one at the end.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator
from typing import Any

DRAFT_PREFIX = ".whisperer-draft-"
"""How the names of drafts begin, which are none of anybody's files."""

_LOOKED_AT_BYTES = 8192
_SHOWN_CHARACTERS = 300
_DEEPEST = 100
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class GlobError(ValueError):
    """The pattern of names is none."""


class Search:
    """One search. `request` has `folder`, `path`, `pattern`, `glob`, `max_matches`, `max_file_bytes`, `hidden`.

    What is hidden is named by device and number; it is as if it were not there.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._pattern = re.compile(request["pattern"])
        self._glob = None if request["glob"] is None else _compiled_glob(request["glob"])
        self._hidden = {(device, number) for device, number in request["hidden"]}
        self.is_cut = False
        self.counts = {"files": 0, "binary": 0, "large": 0, "unreadable": 0}

    def run(self) -> Iterator[dict[str, Any]]:
        """What is found, as far as it is asked for."""
        left = self._request["max_matches"]
        for name, file in self._found():
            for number, line in enumerate(self._lines(file), 1):
                if self._pattern.search(line):
                    yield {"path": _as_text(name), "line": number, "text": _excerpt(line, self._pattern)}
                    left -= 1
                    if not left:
                        self.is_cut = True
                        return

    def _found(self) -> Iterator[tuple[str, int]]:
        folder, path = self._request["folder"], self._request["path"]
        try:
            yield from self._files(self._entered(f"{folder}/{path}"), "" if path == "." else f"{path}/")
        except NotADirectoryError:
            above, _, name = path.rpartition("/")
            file = self._opened(name, _FILE, self._entered(f"{folder}/{above}"))
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.ENXIO, os.strerror(errno.ENXIO)) from None
            yield path, file

    def _files(self, directory: int, path: str) -> Iterator[tuple[str, int]]:
        """The plain files beneath, opened, by name. No link is followed."""
        if path.count("/") > _DEEPEST:
            os.close(directory)
            return
        for name in sorted(os.listdir(directory)):
            whole = f"{path}{name}"
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if (status.st_dev, status.st_ino) in self._hidden:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    yield from self._files(self._opened(name, _DIRECTORY, directory), f"{whole}/")
                elif stat.S_ISREG(status.st_mode) and not name.startswith(DRAFT_PREFIX) and self._is_meant(whole):
                    yield whole, self._opened(name, _FILE, directory)
            except OSError:
                self.counts["unreadable"] += 1
        os.close(directory)

    def _entered(self, path: str) -> int:
        """The directory at the absolute path, opened without following a link."""
        passing = _DIRECTORY | getattr(os, "O_PATH", 0)
        directory = os.open("/", passing)
        for name in [*(name for name in path.split("/") if name not in ("", ".")), "."]:
            below = self._opened(name, _DIRECTORY if name == "." else passing, directory)
            os.close(directory)
            directory = below
        return directory

    def _opened(self, name: str, flags: int, directory: int) -> int:
        """What has that name in the directory; what is hidden is not found."""
        descriptor = os.open(name, flags, dir_fd=directory)
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in self._hidden:
            os.close(descriptor)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return descriptor

    def _is_meant(self, path: str) -> bool:
        return self._glob is None or self._glob.fullmatch(path) is not None

    def _lines(self, descriptor: int) -> list[str]:
        with open(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size > self._request["max_file_bytes"]:
                self.counts["large"] += 1
                return []
            data = file.read()
        if b"\0" in data[:_LOOKED_AT_BYTES]:
            self.counts["binary"] += 1
            return []
        self.counts["files"] += 1
        return data.decode(errors="replace").split("\n")


def _compiled_glob(glob: str) -> re.Pattern[str]:
    try:
        return re.compile(translated(glob))
    except (re.error, OverflowError, RecursionError) as error:
        raise GlobError(getattr(error, "msg", str(error))) from error


def translated(glob: str) -> str:
    """The expression for a pattern of names: `*` and `?` stay in a folder, `**` goes through any.

    Without a slash it is for names in all folders.
    """
    parts: list[str] = [] if "/" in glob else ["(?:.*/)?"]
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            end = glob.find("]", at + 2) if glob[at] == "[" else -1
            if end > 0:
                inside = glob[at + 1 : end].replace("\\", "\\\\")
                parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
                at = end + 1
            else:
                parts.append({"*": "[^/]*", "?": "[^/]"}.get(glob[at]) or re.escape(glob[at]))
                at += 1
    return "(?s)" + "".join(parts)


def _as_text(name: str) -> str:
    """The name with bytes that are not text written out."""
    return name.encode(errors="backslashreplace").decode()


def _excerpt(line: str, pattern: re.Pattern[str]) -> str:
    line = line.rstrip("\r")
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    found = pattern.search(line)
    start = max(0, (found.start() if found else 0) - _SHOWN_CHARACTERS // 3)
    shown = line[start : start + _SHOWN_CHARACTERS]
    return f"{'…' * (start > 0)}{shown}{'…' * (start + _SHOWN_CHARACTERS < len(line))}"


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All that is told: the matches, and in the end how it went."""
    try:
        search = Search(request)
        yield from search.run()
        yield {"counts": search.counts, "is_cut": search.is_cut}
    except GlobError as error:
        yield {"wrong_glob": str(error)}
    except (re.error, OverflowError, RecursionError) as error:
        yield {"wrong": str(error), "at": getattr(error, "pos", None)}
    except OSError as error:
        yield {"failed": error.errno}


def limit_this_process(cpu_seconds: int, memory_bytes: int) -> None:
    """Let the kernel hold this process to so much, where it can."""
    for kind, value in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, memory_bytes)):
        with contextlib.suppress(ValueError, OSError):  # there is a lower limit already, or none can be set
            resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    if sys.argv[1:]:
        limit_this_process(*map(int, sys.argv[1:]))
    for told in answers(json.load(sys.stdin)):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
