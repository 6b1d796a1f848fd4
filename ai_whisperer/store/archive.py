"""Files that carry a whole data folder, or one session, elsewhere: a zip with a manifest that says what is in it.

A file is written beside its name and gets it when it is whole. What is read is checked against the manifest before it
is used: one that was cut off, changed, or made by a newer version is refused.

A name in it is the path of the file, in which `%` and bytes that are no UTF-8 are written as in addresses of the web.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from ai_whisperer.errors import ArchiveError
from ai_whisperer.version import __version__

FORMAT = 1
MANIFEST = "manifest.json"
FILES = "files/"
_CHUNK = 1 << 20

Kind = Literal["backup", "session"]
Progress = Callable[[float], object]
"""Is told how much is done, from 0 to 1."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive is: made by which version, of a database of which version; its members with their digests."""

    format: int
    kind: Kind
    made_by: str
    schema: int
    made_at: float
    session_id: str | None = None
    title: str = ""
    members: dict[str, str] = {}


class TransferReport(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was exported or imported: the file, and how many rows of each kind."""

    session_id: str
    file: str
    rows: dict[str, int]
    files: int


class Writer:
    """An archive that is being written. What has to lie somewhere meanwhile can lie in `beside`."""

    def __init__(self, archive: zipfile.ZipFile, beside: Path) -> None:
        self._archive = archive
        self.beside = beside
        self.members: dict[str, str] = {}

    @contextmanager
    def member(self, name: str, *, mode: int = 0o600) -> Iterator[Callable[[bytes], object]]:
        """Write a member piece by piece."""
        digest = hashlib.sha256()
        info = zipfile.ZipInfo(name, time.localtime()[:6])
        info.external_attr = (stat.S_IFREG | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=True) as file:

            def write(piece: bytes) -> None:
                digest.update(piece)
                file.write(piece)

            yield write
        self.members[name] = digest.hexdigest()

    def add(self, name: str, path: Path) -> None:
        """Add a file; raises `FileNotFoundError`, or `ArchiveError` if it cannot be read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ArchiveError(f"'{path}' cannot be read ({error.strerror}). Nothing was written.") from error
        with open(descriptor, "rb") as source:
            mode = os.fstat(source.fileno()).st_mode
            if stat.S_ISREG(mode):
                with self.member(name, mode=_mode_of(mode)) as write:
                    while piece := source.read(_CHUNK):
                        write(piece)

    def add_files(self, folder: Path) -> None:
        """Add the files beneath a folder as they are now; links and what is no file are left out, as is what goes."""
        folder, beside = folder.resolve(), self.beside.resolve()
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            try:
                if stat.S_ISREG(path.lstat().st_mode) and beside not in path.parents:
                    self.add(FILES + _written_name(path.relative_to(folder)), path)
            except FileNotFoundError:
                continue  # it was removed meanwhile


@contextmanager
def written(
    file: Path, *, kind: Kind, schema: int, made_at: float, session_id: str | None = None, title: str = ""
) -> Iterator[Writer]:
    """Write an archive; it is there when the block has ended well. Raises `ArchiveError`."""
    if file.exists():
        raise ArchiveError(f"'{file}' is there already. Choose another name, or remove it; nothing was written.")
    with _room_beside(file) as beside, _told_of(file):
        draft = beside / "draft"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
                writer = Writer(archive, beside)
                yield writer
                manifest = Manifest(
                    format=FORMAT,
                    kind=kind,
                    made_by=__version__,
                    schema=schema,
                    made_at=made_at,
                    session_id=session_id,
                    title=title,
                    members=writer.members,
                )
                archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
            raw.flush()
            os.fsync(raw.fileno())
        draft.rename(file)


@contextmanager
def _room_beside(file: Path) -> Iterator[Path]:
    """A folder beside a file that is to be written. What a process left in it that was killed is removed."""
    beside = file.absolute().with_name(f".{file.name}.making")
    with _told_of(file):
        beside.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveError(f"Another process is writing '{file}'. Choose another name, or wait for it.") from None
        try:
            with _told_of(file):
                for left in beside.iterdir():
                    left.unlink()
            yield beside
        finally:
            discard(beside)
    finally:
        os.close(descriptor)


@contextmanager
def _told_of(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"'{file}' cannot be written ({error.strerror or error}). Choose another place.") from error


class Reader:
    """An archive whose manifest was read."""

    def __init__(self, file: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._file = file
        self._archive = archive
        self.manifest = manifest

    def check(self, on_progress: Progress = lambda _: None) -> None:
        """Raise `ArchiveError` unless every member is what the manifest says, and there is nothing else."""
        names = set(self._archive.namelist()) - {MANIFEST}
        if names != set(self.manifest.members):
            raise self._damaged("its members are not those of its manifest")
        total = sum(each.file_size for each in self._archive.infolist()) or 1
        done = 0
        for name, expected in self.manifest.members.items():
            _check_name(self._file, name)
            digest = hashlib.sha256()
            for piece in self.pieces(name):
                digest.update(piece)
                done += len(piece)
                on_progress(min(done / total, 1.0))
            if digest.hexdigest() != expected:
                raise self._damaged(f"'{name}' is not what it was")

    def pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._archive.open(name) as member:
                while piece := member.read(_CHUNK):
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise self._damaged(str(error)) from error

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        with self._archive.open(name) as member:
            yield member

    def extract(self, name: str, path: Path) -> None:
        """Write a member to a file that is not there yet; it is on disk when this returns."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = _mode_of(self._archive.getinfo(name).external_attr >> 16)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as target:
            for piece in self.pieces(name):
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())

    @property
    def files(self) -> list[str]:
        """The names of the members that are files of agents."""
        return [name for name in self.manifest.members if name.startswith(FILES)]

    def extract_files(self, folder: Path) -> None:
        """Write the files of agents beneath a folder that has none of them."""
        for name in self.files:
            self.extract(name, folder / _read_name(name.removeprefix(FILES)))

    def _damaged(self, why: str) -> ArchiveError:
        return ArchiveError(f"'{self._file}' is damaged or was cut off ({why}). Use another copy; nothing was changed.")


@contextmanager
def read(file: Path, *, kind: Kind, schema: int) -> Iterator[Reader]:
    """Read an archive of this kind; raises `ArchiveError` that says what is wrong with it."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ArchiveError(
            f"'{file}' is no whole archive of AI Whisperer: it was cut off, or is something else ({error}). Use "
            "another copy; nothing was changed."
        ) from error
    except OSError as error:
        raise ArchiveError(f"'{file}' cannot be read ({error.strerror or error}).") from error
    with archive:
        manifest = _manifest_of(file, archive)
        if manifest.format > FORMAT or manifest.schema > schema:
            raise ArchiveError(
                f"'{file}' was made by AI Whisperer {manifest.made_by}, which is newer than this one ({__version__}). "
                "Upgrade AI Whisperer; nothing was changed."
            )
        if manifest.kind != kind:
            command = {"backup": "whisperer restore", "session": "whisperer import"}[manifest.kind]
            raise ArchiveError(f"'{file}' is a {manifest.kind}: use `{command}`. Nothing was changed.")
        yield Reader(file, archive, manifest)


def _manifest_of(file: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        return msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    except (KeyError, msgspec.MsgspecError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise ArchiveError(
            f"'{file}' has no manifest that can be read ({error}): it was not made by `whisperer backup` or `whisperer "
            "export`, or is damaged. Nothing was changed."
        ) from error


def _check_name(file: Path, name: str) -> None:
    """Nothing in an archive leads out of where it is unpacked."""
    path = PurePosixPath(_read_name(name))
    if path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise ArchiveError(f"'{file}' has a member that leads elsewhere ({name!r:.100}). Nothing was changed.")


def _written_name(path: Path) -> str:
    """A path as the name of a member, which is UTF-8: see the top."""
    escaped = path.as_posix().replace("%", "%25")
    return "".join(f"%{os.fsencode(each)[0]:02X}" if "\udc80" <= each <= "\udcff" else each for each in escaped)


def _read_name(name: str) -> str:
    return os.fsdecode(unquote_to_bytes(name))


def _mode_of(mode: int) -> int:
    """What only the owner may do with a file: run it, if that was so."""
    return 0o700 if mode & stat.S_IXUSR else 0o600


def discard(folder: Path) -> None:
    """Remove what was unpacked, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
