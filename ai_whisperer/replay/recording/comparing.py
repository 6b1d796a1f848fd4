"""Whether the log of a run is the one that was recorded.

Entries are compared strand by strand: what a task does, each of its tool calls, what an agent goes through, the order
of the mails to each recipient, the messages of a room, the holders of a lock. Within a strand the order counts, and so
it does among all that one task causes at different moments. Else it may be another, as it is between things that happen
at the same time.

Not compared are the numbers of entries, times of the log (a timer fires a little late) and moments in texts, what only
the provider or the machine causes (`UNCOMPARED`), some fields (`_UNCOMPARED_FIELDS`), and how often the process had
been started.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ai_whisperer.replay.recording.asking import plain
from ai_whisperer.replay.recording.differences import Difference, diff_of
from ai_whisperer.replay.recording.format import Entry

UNCOMPARED = frozenset(
    {
        "agent.tools_missing",
        "agent.redefined",
        "clock.changed",
        "mcp.server_failed",
        "mcp.server_started",
        "mcp.server_stopped",
        "mcp.tools_listed",
        "mcp.tools_missing",
        "provider.held",
        "provider.opened",
        "resource.granted",
        "resource.waiting",
        "session.opened",
        "step.interrupted",
    }
)
"""What the recording cannot bring about: gates of providers, MCP servers, files, the clock on the wall."""

_UNCOMPARED_FIELDS: Mapping[str, frozenset[str]] = {
    "async.task.started": frozenset({"attempt"}),
    "agent.created": frozenset({"createdBy"}),
    "step.finished": frozenset({"requests", "run"}),
    "step.retried": frozenset({"requests", "model", "nextModel"}),
    "step.started": frozenset({"model"}),
}


_BEYOND = 1 << 60
_CUT_ID = re.compile(r"[0-9a-f]{1,31}$")
"""What may be the beginning of an id: a summary ends wherever it is long enough."""


def strand_of(name: str, params: Mapping[str, Any]) -> str:
    """The order of what an entry counts in."""
    if name == "mail.sent":
        return f"mail to {params['recipient']}"
    if name.startswith("room."):
        return f"room {params['roomId']}"
    if name == "event.broadcast":
        return f"events of {params['sender']}"
    if params.get("kind") == "tool" and "stepId" in params:
        return f"call {params['stepId']}"
    for field in ("taskId", "mailId", "scheduleId"):
        if isinstance(params.get(field), str):
            return f"{field} {params[field]}"
    if name.startswith("lock."):
        return f"lock {params['name']}"
    return f"agent {params['agentId']}" if params.get("agentId") else "session"


def comparable(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What of an entry is compared."""
    left_out = _UNCOMPARED_FIELDS.get(name, frozenset())
    found = {field: _plain(value) for field, value in params.items() if field not in left_out and not _is_time(field)}
    if isinstance(found.get("again"), dict):
        found["again"] = {field: value for field, value in found["again"].items() if not _is_time(field)}
    if isinstance(found.get("summary"), str):
        found["summary"] = _CUT_ID.sub("", found["summary"])
    return found


def _is_time(field: str) -> bool:
    return field.endswith(("At", "Until", "until")) or field in ("retryAfterSeconds", "clockOffsetSeconds", "offset")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


class LogComparison:
    """Takes the entries of a run one by one and finds the first that is not as it was recorded."""

    def __init__(self, entries: Iterable[Entry], *, since: int = 1, adopts: bool = False) -> None:
        """With `adopts` an entry that says something else is no difference: `adopted` has what it says, by number."""
        self._since = since
        self._adopts = adopts
        self.adopted: dict[int, dict[str, Any]] = {}
        self._strands: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if _counts(entry.name, entry.params):
                self._strands[strand_of(entry.name, entry.params)].append(entry)
        self._last_of: dict[str, Entry] = {}
        self._taken: dict[str, int] = defaultdict(int)
        self._order = [entry.seq for strand in self._strands.values() for entry in strand]
        self._order.sort()
        self._told: set[int] = set()
        self._next = 0
        self._last = 0
        self.compared = 0
        self.out_of_order = 0

    def take(self, name: str, params: dict[str, Any]) -> Difference | None:
        """The next entry of the run, with causal ids."""
        if not _counts(name, params):
            return None
        strand = strand_of(name, params)
        recorded = self._strands.get(strand, ())
        number = self._taken[strand]
        self._taken[strand] += 1
        if number >= len(recorded):
            after = recorded[-1].seq if recorded else 0
            return self._found(
                after,
                Difference(
                    kind="log",
                    place=_place(params),
                    what=f"{name} is new: it was not recorded.",
                    seq=after,
                    diff=diff_of("", _shown(name, comparable(name, params))),
                ),
            )
        entry = recorded[number]
        self.compared += 1
        self._told.add(entry.seq)
        if entry.seq < self._last:
            self.out_of_order += 1
        self._last = max(entry.seq, self._last)
        before, now = comparable(entry.name, entry.params), comparable(name, params)
        if entry.name == name and before == now:
            return self._out_of_its_task(entry)
        if entry.name == name and self._adopts:
            self.adopted[entry.seq] = {**params, **_times(entry.params)}
            return None
        what = f"{name} differs" if entry.name == name else f"{name} is in the place of {entry.name}"
        return self._found(
            entry.seq,
            Difference(
                kind="log",
                place=_place(entry.params),
                what=f"{what} (entry {entry.seq} of the recorded log).",
                seq=entry.seq,
                diff=diff_of(_shown(entry.name, before), _shown(name, now)),
            ),
        )

    def _out_of_its_task(self, entry: Entry) -> Difference | None:
        """What the same task causes comes in the order that was recorded, but for what was at the same moment."""
        last = self._last_of.get(entry.cause)
        if last is None or entry.seq > last.seq:
            self._last_of[entry.cause] = entry
            return None
        if entry.at == last.at or not entry.cause.startswith("task:"):
            return None
        what = f"{entry.name} (entry {entry.seq} of the recorded log) comes after entry {last.seq} now."
        return self._found(entry.seq, Difference(kind="log", place=_place(entry.params), what=what, seq=entry.seq))

    @property
    def first_untold(self) -> int:
        """The number of the first entry that was recorded and has not been told yet."""
        while self._next < len(self._order) and self._order[self._next] in self._told:
            self._told.discard(self._order[self._next])
            self._next += 1
        return self._order[self._next] if self._next < len(self._order) else _BEYOND

    def is_told(self, seq: int) -> bool:
        """Whether the entry with this number was told; one that is not compared, whether all before it were."""
        return seq < self.first_untold or seq in self._told

    def missing(self) -> Difference | None:
        """The first entry that was recorded and was not told, when the run is over."""
        left = [
            entry
            for strand, entries in self._strands.items()
            for entry in entries[self._taken[strand] :]
            if entry.seq >= self._since
        ]
        if not left:
            return None
        first = min(left, key=lambda entry: entry.seq)
        return Difference(
            kind="missing",
            place=_place(first.params),
            what=f"{first.name} was recorded (entry {first.seq} of the log) and is missing now.",
            seq=first.seq,
            diff=diff_of(_shown(first.name, comparable(first.name, first.params)), ""),
        )

    def _found(self, seq: int, difference: Difference) -> Difference | None:
        return difference if seq >= self._since or self._since == 1 else None


def _times(params: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in params.items() if _is_time(field)}


def _counts(name: str, params: Mapping[str, Any]) -> bool:
    return name not in UNCOMPARED and not (name == "limit.reached" and params.get("action") in ("waiting", "refused"))


def _place(params: Mapping[str, Any]) -> str:
    return str(params.get("agentId") or params.get("recipient") or params.get("roomId") or "the session")


def _shown(name: str, params: Mapping[str, Any]) -> str:
    return f"{name}\n{msgspec.json.format(msgspec.json.encode(params, order='sorted'), indent=2).decode()}"
