"""The file of a recording: JSON lines, closed by a digest. Long texts are in a folder beside it, by their digests.

It is written beside its name and gets it when it is whole. What is read is checked first: a file that was cut, changed
by hand or written by a newer version is refused with what to do. Data of the session that looks like the name of a long
text, `{"$body": …}`, has one `$` more in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from ai_whisperer.errors import RecordingError
from ai_whisperer.replay.recording.format import (
    FORMAT,
    Agent,
    AnyLine,
    Body,
    End,
    Entry,
    Header,
    Input,
    Recording,
    Reply,
    Result,
    Tool,
)

LARGE_BYTES = 64 << 10
"""A text of more is kept in the folder."""
_BODY = "$body"
_MARKED = b'$body"'
_LOOKS = re.compile(r"\$+body")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""What may be half of a character, which not every reader takes."""
_OURS = re.compile(r"[0-9a-f]{64}$|\.[0-9a-f]{64}\.")
"""A text in the folder, or the draft of one."""
_BEGINNING = b'{"line":"recording"'

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def bodies_folder(path: Path) -> Path:
    """Where the long texts of a recording are."""
    return path.with_name(f"{path.name}.bodies")


def is_recording(path: Path) -> bool:
    """Whether the file says that it is a recording, whole or not. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def write_recording(recording: Recording, path: str | Path) -> Path:
    """Write the file, in place of one that is there, for its owner alone to read; raises `RecordingError`.

    Long texts that the file no longer names are deleted from the folder.
    """
    path = Path(path)
    if recording.unredacted:
        raise RecordingError("This recording has the secrets of its session: it is for a fork, and not for a file.")
    bodies = _Bodies(bodies_folder(path))
    try:
        with _in_place(path) as file:
            digest, lines = hashlib.sha256(), 0
            for line in _lines_of(recording):
                written = _written(line, bodies) + b"\n"
                digest.update(written)
                file.write(written)
                lines += 1
            file.write(_encode(End(lines=lines, digest=digest.hexdigest())) + b"\n")
        bodies.forget_others()
    except BaseException as error:
        bodies.take_back()
        if not isinstance(error, OSError):
            raise
        raise RecordingError(
            f"The recording cannot be written to '{path}': {error.strerror}. Choose another place; nothing was written."
        ) from error
    return path


@contextmanager
def _in_place(path: Path) -> Iterator[IO[bytes]]:
    """A draft beside the file, which gets its name when it is whole; nobody but its owner can read it."""
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        draft = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


class _Bodies:
    """The long texts of a recording, in the folder beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._named: set[str] = set()
        self._new: list[Path] = []

    def add(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / digest
        if digest not in self._named:
            self._named.add(digest)
            if not path.exists():
                self._new.append(path)
            with _in_place(path) as file:
                file.write(content)
        return digest

    def forget_others(self) -> None:
        """Delete what the file that is there now does not name, and what a write that was cut off has left."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in self._named and _OURS.match(path.name):
                    path.unlink(missing_ok=True)
            self._drop_if_empty()

    def take_back(self) -> None:
        """The file was not written: leave the folder as it was."""
        for path in self._new:
            path.unlink(missing_ok=True)
        if self._new:
            self._drop_if_empty()

    def _drop_if_empty(self) -> None:
        with suppress(OSError):
            self._folder.rmdir()


def _lines_of(recording: Recording) -> Iterator[AnyLine]:
    yield recording.header
    yield from recording.agents
    yield from recording.tools
    yield from recording.inputs
    yield from recording.replies
    yield from recording.results
    yield from recording.entries
    for digest in sorted(recording.bodies):
        yield Body(digest=digest, text=recording.bodies[digest])


def _written(line: AnyLine, bodies: _Bodies) -> bytes:
    try:
        written = _encode(line)
    except UnicodeEncodeError:  # half of a character: JSON has it as an escape
        return json.dumps(_outsourced(msgspec.to_builtins(line, str_keys=True), bodies)).encode()
    if len(written) <= LARGE_BYTES and _MARKED not in written:
        return written
    return _encode(_outsourced(msgspec.json.decode(written), bodies))


def _outsourced(value: Any, bodies: _Bodies) -> Any:
    """The value with long texts put into the folder. Data that looks like the name of one gets a mark."""
    if isinstance(value, str) and len(value) > LARGE_BYTES // 4:
        content = value.encode(errors="surrogatepass")
        return value if len(content) <= LARGE_BYTES else {_BODY: bodies.add(content)}
    if isinstance(value, dict):
        mark = "$" if len(value) == 1 and _LOOKS.fullmatch(next(iter(value))) else ""
        return {f"{mark}{name}": _outsourced(each, bodies) for name, each in value.items()}
    return [_outsourced(each, bodies) for each in value] if isinstance(value, list | tuple) else value


def read_recording(path: str | Path) -> Recording:
    """Read a recording and check it; raises `RecordingError` that says what is wrong and what to do."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"The recording '{path}' cannot be read: {error.strerror}.") from error
    if not content.startswith(_BEGINNING):
        raise RecordingError(
            f"'{path}' is not a recording. Make one: whisperer record SESSION -o {path.name}. Conversation scripts are "
            "played by whisperer replay."
        )
    raw = content.split(b"\n")
    _check_format(raw[0], path)
    if raw.pop() != b"" or len(raw) < 2:
        raise _cut(path)
    *lines, last = (_line(each, number, path) for number, each in enumerate(raw, 1))
    if not isinstance(last, End):
        raise _cut(path)
    digest = hashlib.sha256(content[: content.rfind(b"\n", 0, -1) + 1]).hexdigest()
    if last.lines != len(lines) or last.digest != digest:
        raise RecordingError(
            f"'{path}' was changed after it was written: its lines do not have the digest of its last line. Get it "
            "back from your version control, or record the session again. To leave something out of a recording, scrub "
            "it while it is recorded (whisperer record --scrub)."
        )
    return _gathered(lines, path)


def _check_format(line: bytes, path: Path) -> None:
    try:
        header = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        raise _cut(path) from None
    found, version = header.get("format"), header.get("version", "")
    if isinstance(found, int) and found > FORMAT:
        raise RecordingError(
            f"'{path}' has format {found} and was written by AI Whisperer {version}; this one reads formats up to "
            f"{FORMAT}. Update AI Whisperer, or record the session again with this one."
        )


def _cut(path: Path) -> RecordingError:
    return RecordingError(
        f"'{path}' ends before its end: it was cut off while it was copied or written. Copy it again, or record the "
        "session again."
    )


def _line(raw: bytes, number: int, path: Path) -> AnyLine:
    try:
        if _MARKED in raw or _HALF.search(raw):
            line: AnyLine = msgspec.convert(_brought_back(json.loads(raw), path), AnyLine)
            return line
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise RecordingError(
            f"'{path}', line {number} does not fit the format: {error}. Record the session again."
        ) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise RecordingError(
            f"'{path}', line {number} is no JSON ({error}): the file was cut or changed. Copy it again, or record the "
            "session again."
        ) from error


def _brought_back(value: Any, path: Path) -> Any:
    """The value with the long texts from the folder."""
    if isinstance(value, dict):
        if value.keys() == {_BODY}:
            return _body(str(value[_BODY]), path)
        if len(value) == 1 and _LOOKS.fullmatch(next(iter(value))):
            return {name[1:]: _brought_back(each, path) for name, each in value.items()}
        return {name: _brought_back(each, path) for name, each in value.items()}
    return [_brought_back(each, path) for each in value] if isinstance(value, list) else value


def _body(digest: str, path: Path) -> str:
    folder = bodies_folder(path)
    try:
        content = (folder / Path(digest).name).read_bytes()
    except OSError as error:
        raise RecordingError(
            f"'{path}' needs the text {digest[:12]}… in '{folder}', which cannot be read: {error.strerror}. Keep the "
            "folder beside the recording."
        ) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise RecordingError(f"'{folder / digest}' was changed. Get it back, or record the session again.")
    return content.decode(errors="surrogatepass")


def _gathered(lines: list[AnyLine], path: Path) -> Recording:
    header, *rest = lines
    if not isinstance(header, Header):
        raise RecordingError(f"'{path}' does not begin with what it is. Record the session again.")
    kinds: dict[type, list[Any]] = {kind: [] for kind in (Agent, Tool, Input, Reply, Result, Entry, Body, Header, End)}
    for line in rest:
        kinds[type(line)].append(line)
    return Recording(
        header=header,
        agents=tuple(kinds[Agent]),
        tools=tuple(kinds[Tool]),
        inputs=tuple(kinds[Input]),
        replies=tuple(kinds[Reply]),
        results=tuple(kinds[Result]),
        entries=tuple(kinds[Entry]),
        bodies={body.digest: body.text for body in kinds[Body]},
    )
