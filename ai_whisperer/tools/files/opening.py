"""From a path that a model wrote to something open on disk, or to an error in words that help it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import DIRECTORY, Links, open_beneath, open_folder
from ai_whisperer.tools.workplace import OWN, Place, Workplace

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""Without a wait: a pipe that nobody writes to would hold the call up for ever."""

_FAILURES = {
    errno.ENOENT: "There is no {path}. list_directory shows what is there.",
    errno.ENOTDIR: "In {path} something is used as a folder that is not one. list_directory shows what is there.",
    errno.EISDIR: "{path} is a folder. Name a file in it; list_directory shows what is there.",
    errno.ELOOP: "{path} is, or leads through, a symbolic link that is not followed here. Use the name of what it "
    "leads to.",
    errno.EXDEV: "{path} leads out of your folders. Use a file that lies in them.",
    errno.ENAMETOOLONG: "{path} is too long: a name can have 255 bytes, a path 4,095. Choose a shorter one.",
    errno.EACCES: "{path}: the system does not allow that. Use another file.",
    errno.EPERM: "{path}: the system does not allow that. Use another file.",
    errno.EROFS: "{path} is on a disk that cannot be written. Use another folder.",
    errno.ENOSPC: "The disk is full; {path} is as it was. Write less, or have somebody free space.",
    errno.EDQUOT: "The disk is full for you; {path} is as it was. Write less, or have somebody free space.",
    errno.EFBIG: "That is more than a file can hold here; {path} is as it was. Write it in several files.",
    errno.ENXIO: "{path} is not a plain file. Only plain files can be read and written.",
}

_KINDS = {
    stat.S_IFDIR: "a folder; list_directory shows what is in it",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


class OpenPlace:
    """A place whose folder is open. `name` is the path as the model wrote it, shortened, for messages."""

    def __init__(self, place: Place, folder: int, *, name: str, limits: EffectiveLimits) -> None:
        self.place = place
        self.limits = limits
        self.folder = folder
        self.name = name
        # Links in folders that others use too would give one file several names, and turns are taken by name.
        self.links = Links.BENEATH if place.name == OWN else Links.REFUSED
        self.hidden = place.folder.hidden_identities()

    def open(self, path: str, flags: int) -> int:
        """Open a path that is relative to the folder."""
        return open_beneath(self.folder, path, flags, links=self.links, hidden=self.hidden)

    def open_file(self) -> tuple[int, os.stat_result]:
        """Open the plain file that is meant, for reading; raises `ToolError` if it is anything else."""
        descriptor = self.open(self.place.path, _READING)
        try:
            return descriptor, self.check_plain(os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise

    def check_plain(self, status: os.stat_result) -> os.stat_result:
        """The status itself; raises `ToolError` if it is not that of a plain file."""
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no plain file")
            raise ToolError(f"'{self.name}' is {kind}. Only plain files can be read and written.")
        return status

    def parent(self) -> tuple[int, str]:
        """The directory in which the path lies, opened, and the last name of the path."""
        above, _, last = self.place.path.rpartition("/")
        if last == ".":
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), self.name)
        return self.open(above or ".", DIRECTORY), last

    def made_parent(self) -> tuple[int, str]:
        """The same, and the directory is made if it is not there."""
        try:
            return self.parent()
        except FileNotFoundError:
            self._make(self.place.path.split("/")[:-1])
        return self.parent()

    def _make(self, names: list[str]) -> None:
        """Make the directories that are not there, one in the other, and see to it that they outlive a power cut."""
        inside = self.open(".", DIRECTORY)
        try:
            for count, name in enumerate(names, 1):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=inside)
                    os.fsync(inside)
                below = self.open("/".join(names[:count]), DIRECTORY)
                os.close(inside)
                inside = below
        finally:
            os.close(inside)


@contextlib.contextmanager
def opened(workplace: Workplace | None, path: str, *, access: Access = Access.READ) -> Iterator[OpenPlace]:
    """The place of the path while the block runs; what the system refuses in it becomes a `ToolError`."""
    if workplace is None:
        raise ToolError("There are no folders to work in. File tools work for agents of a session only.")
    place = workplace.place(path)
    name = shown(path)
    if access is Access.WRITE and place.folder.access is not Access.WRITE:
        raise ToolError(
            f"You may read '{name}' but not change it: the folder '{place.name}' is granted for reading. Write into "
            "your own folder, or into one that you may change."
        )
    with told(name):
        folder = _open_folder(workplace, place)
        try:
            yield OpenPlace(place, folder, name=name, limits=workplace.limits)
        finally:
            os.close(folder)


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    """Turn what the system refuses in the block into a `ToolError` about the path of that name."""
    try:
        yield
    except UnicodeError as error:
        raise ToolError(f"The path '{name}' has a character that no file name can have. Use another.") from error
    except OSError as error:
        known = _FAILURES.get(error.errno or 0, "{path}: {reason}. Try another file, or try again later.")
        raise ToolError(known.format(path=f"'{name}'", reason=error.strerror or error)) from error


def shown(path: str) -> str:
    """The path as it is named in messages: short, and on one line."""
    line = path.encode(errors="backslashreplace").decode()
    line = "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)
    return line if len(line) <= 200 else f"{line[:200]}…"


def _open_folder(workplace: Workplace, place: Place) -> int:
    try:
        return open_folder(str(place.folder.path))
    except FileNotFoundError:
        workplace.prepare()
    return open_folder(str(place.folder.path))
