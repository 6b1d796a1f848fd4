"""The pieces of streams that wait for a reader: joined when it lags, and bounded."""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec.structs import replace

from ai_whisperer.domain.notification import Notification

MAX_PENDING = 32 << 10
"""So many characters of pieces wait for one reader; then the oldest give way."""

_LEAST_SIZE = 512
"""A piece counts at least as many, for what it takes beside its text."""

_KEPT_AFTER_A_CUT = MAX_PENDING * 3 // 4
_TEXTS_BEFORE_JOIN = 64

_UNTIL = "analysisUntil"

_Step = tuple[Any, Any]


class _Piece:
    """One or more deltas of a step that follow each other in one channel."""

    __slots__ = ("characters", "cut_characters", "note", "position", "step", "texts")

    def __init__(self, position: int, note: Notification, step: _Step) -> None:
        self.position = position
        self.note = note
        self.step = step
        self.texts: list[str] = [note.params["text"]]
        self.characters = len(self.texts[0])
        self.cut_characters = 0

    @property
    def size(self) -> int:
        return max(self.characters, _LEAST_SIZE)

    def append(self, text: str) -> None:
        self.texts.append(text)
        self.characters += len(text)
        if len(self.texts) > _TEXTS_BEFORE_JOIN:  # many small texts take far more memory than one
            self.texts = ["".join(self.texts)]

    def cut(self, characters: int) -> None:
        """Take so many characters away at the front."""
        self.texts = ["".join(self.texts)[characters:]]
        self.characters -= characters
        self.cut_characters += characters

    def joined(self, *, skipped: int) -> Notification:
        if len(self.texts) == 1 and not skipped and self.texts[0] is self.note.params["text"]:
            return self.note
        params = {**self.note.params, "text": "".join(self.texts)}
        if "offset" in params:
            params["offset"] += self.cut_characters
        return replace(self.note, params={**params, "skipped": skipped} if skipped else params)


def _continues(params: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether the piece goes on in the same channel, and nothing was said in between of what came before."""
    return before.get("channel") == params.get("channel") and before.get(_UNTIL) == params.get(_UNTIL)


class PendingDeltas:
    """The deltas that one subscriber has not read yet, in order.

    A delta that goes on with what waits of its step, in the same channel, is joined to it. When too much waits the
    oldest gives way, and the next one that is read says in `skipped` how many characters of streams, its own or
    others, were left out before it. The whole answer comes with the step's end, so nothing is lost for good.
    """

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque()
        self._last_of_step: dict[_Step, _Piece] = {}
        self._size = 0
        self._skipped = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def size(self) -> int:
        """What is held, in characters; a piece counts for 512 at least."""
        return self._size

    @property
    def position(self) -> int:
        """The numbered notification after which the first one comes."""
        return self._pieces[0].position

    def put(self, position: int, note: Notification) -> None:
        """Take a delta that came after the numbered notification of this position."""
        step = (
            note.params["stepId"],
            note.params.get("attempt"),
        )  # the output of a tool has neither attempt nor channel
        last = self._last_of_step.get(step)
        if last is not None and _continues(note.params, last.note.params):
            before = last.size
            last.append(note.params["text"])
            self._size += last.size - before
        else:
            piece = _Piece(position, note, step)
            self._pieces.append(piece)
            self._last_of_step[step] = piece
            self._size += piece.size
        if self._size > MAX_PENDING:
            self._give_way()

    def put_all_of(self, other: PendingDeltas) -> None:
        """Take what waits in the other too; it waits there still."""
        self._skipped += other._skipped
        for piece in other._pieces:
            self.put(piece.position, piece.joined(skipped=0))

    def take(self) -> Notification:
        piece = self._remove_first()
        skipped, self._skipped = self._skipped, 0
        return piece.joined(skipped=skipped)

    def _give_way(self) -> None:
        """Leave out the oldest, by some more than is needed, so that this is rare."""
        while (excess := self._size - _KEPT_AFTER_A_CUT) > 0:
            first = self._pieces[0]
            if first.size > excess + _LEAST_SIZE:
                first.cut(excess)
                self._size -= excess
                self._skipped += excess
            else:
                self._skipped += self._remove_first().characters

    def _remove_first(self) -> _Piece:
        piece = self._pieces.popleft()
        self._size -= piece.size
        if self._last_of_step.get(piece.step) is piece:
            del self._last_of_step[piece.step]
        return piece
