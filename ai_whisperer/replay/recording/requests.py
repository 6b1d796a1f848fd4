"""Whether a model is asked what it was asked when the session was recorded."""

from __future__ import annotations

from collections.abc import Mapping

from ai_whisperer.choices import nearest
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.replay.recording.asking import each_tool
from ai_whisperer.replay.recording.differences import Difference, diff_of
from ai_whisperer.replay.recording.format import Asked, Recording, Reply

_PARTS = {
    "system": "the system prompt differs",
    "tools": "the tools differ",
    "settings": "the settings differ",
    "model": "the model differs",
}

_IGNORED = ("system", "tools", "settings", "turns")


class RequestComparison:
    """Compares requests by their digests, and shows what differs by the texts."""

    def __init__(self, recording: Recording, ignore: frozenset[str]) -> None:
        """Raises `InvalidInputError` if something is to be ignored that no request has."""
        for name in sorted(ignore.difference(_IGNORED)):
            near = nearest(name, _IGNORED)
            meant = "" if near is None else f" Did you mean '{near}'?"
            raise InvalidInputError(
                f"'{name}' is nothing of a request that could be ignored.{meant} There are: {', '.join(_IGNORED)}."
            )
        self._ignore = ignore
        self._bodies = recording.bodies
        # Of a request that was repeated the first attempt: the others say that they continue it.
        asked = ((reply.key, reply.asked) for reply in reversed(recording.replies))
        self._recorded = {key: each for key, each in asked if each is not None}
        self._now: dict[str, Asked] = {}
        self._requests: dict[str, list[str]] = {}

    def place(self, key: str, task: str) -> str:
        """Where a request is, for people: `writer, task 3, request 2`."""
        made = self._requests.setdefault(key.rpartition("/")[0], [])
        if key not in made:
            made.append(key)
        return f"{task}, request {made.index(key) + 1 if len(made) < 100 else len(made)}"

    def compare(self, reply: Reply, now: Asked, bodies: Mapping[str, str], *, place: str) -> Difference | None:
        """The first thing in which the request differs from the recorded one; None if nothing was recorded of it."""
        recorded = reply.asked
        self._now.setdefault(reply.key, now)
        if recorded is None:
            return None
        for part, what in _PARTS.items():
            before, after = getattr(recorded, part), getattr(now, part)
            if not (part in self._ignore or self._is_same(part, before, after, bodies)):
                return self._found(reply, place, what, before, after, bodies)
        if "turns" in self._ignore:
            return None
        if (recorded.after, recorded.before, recorded.turns) == (now.after, now.before, now.turns):
            return None  # the request that it continues was compared before
        was, turns = _whole(recorded, self._recorded), _whole(now, self._now)
        for number, (before, after) in enumerate(zip(was, turns, strict=False), 1):
            if before != after:
                return self._found(reply, place, f"turn {number} differs", before, after, bodies)
        if len(was) == len(turns):
            return None
        shorter = min(len(was), len(turns))
        before, after = (was[shorter], "") if len(was) > shorter else ("", turns[shorter])
        what = f"turn {shorter + 1} {'is missing' if len(was) > shorter else 'was not there'}"
        return self._found(reply, place, what, before, after, bodies)

    def _is_same(self, part: str, before: str, after: str, bodies: Mapping[str, str]) -> bool:
        """By their digests. Tools may have been provided in another order, and who knows no model compares none."""
        if before == after:
            return True
        if part == "model":
            return "settings" in self._ignore or not (before and after)
        was, told = self._bodies.get(before), bodies.get(after)
        if part != "tools" or was is None or told is None:
            return False
        return sorted(each_tool(was)) == sorted(each_tool(told))

    def _found(
        self, reply: Reply, place: str, what: str, before: str, after: str, bodies: Mapping[str, str]
    ) -> Difference:
        diff = diff_of(self._bodies.get(before, ""), bodies.get(after, ""))
        return Difference(kind="request", place=place, what=what, key=reply.key, seq=reply.seq, diff=diff)


def _whole(asked: Asked, requests: Mapping[str, Asked]) -> tuple[str, ...]:
    """The digests of all turns, those of the requests before it too."""
    turns, most = asked.turns, asked.before
    pieces = [turns]
    while asked.after and asked.after in requests:
        asked = requests[asked.after]
        kept = asked.turns[: max(most - asked.before, 0)]
        pieces.append(kept)
        most = min(most, asked.before)
    return tuple(digest for piece in reversed(pieces) for digest in piece)
