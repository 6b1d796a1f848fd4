"""The file of a failure that was found: which team, which schedule, what did not hold. It replays exactly."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from ai_whisperer.choices import nearest, valid_values
from ai_whisperer.errors import StormError
from ai_whisperer.storm.faults import Schedule
from ai_whisperer.storm.invariants import Violation

VERSION = 1
_MOST_BYTES = 1 << 20


class Found(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure of a universe. Paths are relative to the folder of the file.

    `digest` is that of the log of the universe: what replays exactly has the same one. `expects` says that the lines
    of the script which expect something count as invariants.
    """

    storm: int = VERSION
    team: str
    invariants: tuple[str, ...] = ()
    expects: bool = False
    seed: int | None = None
    violation: Violation
    schedule: Schedule
    digest: str = ""


def write_found(found: Found, file: Path) -> Path:
    """Write it for people to read, too; its paths get relative to the folder of the file.

    Another schedule of that name is a test that somebody keeps: this one gets a number then. Returns the file.
    """
    folder = file.resolve().parent
    found = msgspec.structs.replace(
        found,
        team=_relative(found.team, folder),
        invariants=tuple(_relative(each, folder) for each in found.invariants),
    )
    content = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    try:
        return _written(content, file)
    except OSError as error:
        raise StormError(f"The schedule cannot be written to {file}: {error.strerror}.") from error


def _written(content: bytes, wanted: Path) -> Path:
    for number in count(1):
        file = wanted if number == 1 else wanted.with_stem(f"{wanted.stem}-{number}")
        try:
            with file.open("xb") as new:
                new.write(content)
        except FileExistsError:
            if file.is_file() and file.read_bytes() == content:  # it was found before
                return file
        else:
            return file
    raise AssertionError("numbers have no end")


def read_found(file: Path) -> Found:
    """The failure in a file, with whole paths; raises `StormError` that says what is wrong with it."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise StormError(f"The schedule {file} cannot be read: {error.strerror}.") from error
    if len(raw) > _MOST_BYTES:
        raise StormError(f"The schedule {file} is larger than {_MOST_BYTES >> 20} MiB: no storm has written it.")
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StormError(f"{file} is no schedule of a storm: it is not JSON ({error}).") from error
    if not isinstance(content, dict) or "storm" not in content:
        raise StormError(f'{file} is no schedule of a storm: it does not begin with its version, "storm": {VERSION}.')
    version = content["storm"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StormError(f'{file}: "storm" has to be the version of the file, {VERSION}, and is {version!r:.50}.')
    if version > VERSION:
        raise StormError(
            f"{file} was written by a newer release: it has version {version}, and this one reads {VERSION}. Install "
            "that release, or run the storm again."
        )
    unknown = sorted(content.keys() - set(Found.__struct_fields__))
    if unknown:
        near = nearest(unknown[0], Found.__struct_fields__)
        raise StormError(f"{file}: there is no field '{unknown[0]}'." + (f" Did you mean '{near}'?" if near else ""))
    try:
        found = msgspec.convert(content, Found)
    except msgspec.ValidationError as error:
        raise StormError(
            f"{file} was changed so that it cannot be replayed: {error}.{valid_values(error, Found)}"
        ) from error
    folder = file.resolve().parent
    return msgspec.structs.replace(
        found,
        team=str(folder / found.team),
        invariants=tuple(str(folder / each) for each in found.invariants),
    )


def _relative(path: str, folder: Path) -> str:
    return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()
