"""Causal paths: what something is called by what caused it, not by chance, so that two runs can be laid side by side.

A task that the third input gave to the writer is `3>writer`, the mail that this task sent to the editor is
`3>writer>mail:editor`, the task which that became is `3>writer>mail:editor>editor`. The second of one kind with one
cause ends in `.2`. A step is its task and its number: `3>writer/2`. Ids that were drawn by chance are written as causal
ids: a digest of the path, in the form that ids have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

ID = re.compile(r"(?:(?<![0-9a-zA-Z])|(?<=\\[bfnrt]))(?:[0-9a-f]{32}|[0-9a-f]{24})(?![0-9a-zA-Z])")
"""What may be an id that was drawn by chance. In a text that is JSON it may follow a line break written as `\\n`."""
_ID_DIGITS = 24

_IDS = {
    "taskId": "{agentId}",
    "continuationId": "{agentId}",
    "mailId": "mail:{recipient}",
    "replyId": "reply",
    "eventId": "event:{event}",
    "scheduleId": "schedule",
    "roomId": "room",
    "messageId": "message",
    "waitId": "lock:{name}",
}
"""The params of notifications that name something; what is new is called so, beside its cause."""


def is_drawn(text: object) -> bool:
    """Whether an id was drawn by chance, and not given by a caller who chose it."""
    return isinstance(text, str) and ID.fullmatch(text) is not None


def causal_id(path: str) -> str:
    """The id that stands for what has this path."""
    return sha256(path.encode()).hexdigest()[:_ID_DIGITS]


class Paths:
    """The paths of all that a log tells of, which is fed in order.

    `input` is the number of the input that calls of people belong to now.
    """

    @classmethod
    def restored(cls, paths: Mapping[str, str], counts: Mapping[str, int]) -> Paths:
        """Those of a log that was fed as far as this: the paths by id, and how many were made of those that recur."""
        found = cls()
        for actual, path in paths.items():
            found._paths[actual] = path
            if is_drawn(actual):
                found._know(actual, path)
        found._made.update(counts)
        return found

    def __init__(self) -> None:
        self.input = 0
        self._paths: dict[str, str] = {}
        self._causal: dict[str, str] = {}
        self._actual: dict[str, str] = {}
        self._made: Counter[str] = Counter()
        self._tasks: Counter[str] = Counter()
        self._task_numbers: dict[str, tuple[str, int]] = {}

    @property
    def known(self) -> Mapping[str, str]:
        """The paths by id."""
        return self._paths

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of each path there are: the second of one kind with one cause is counted with the first."""
        return self._made

    def feed(self, name: str, cause: str, params: Mapping[str, Any]) -> None:
        """Take the next entry of the log."""
        for field, called in _IDS.items():
            if field in params:
                made = params[field]
                if isinstance(made, str) and made not in self._paths:
                    self._add(made, f"{self.cause(cause)}>{called.format_map(_Named(params))}")
        if name == "async.task.started":
            self._number(params["taskId"], params["agentId"])

    def _add(self, actual: str, path: str) -> None:
        self._made[path] += 1
        if self._made[path] > 1:
            path = f"{path}.{self._made[path]}"
        self._paths[actual] = path
        if is_drawn(actual):
            self._know(actual, path)

    def _know(self, actual: str, path: str) -> None:
        causal = causal_id(path)
        self._causal[actual] = causal
        self._actual[causal] = actual

    def _number(self, task_id: str, agent_id: str) -> None:
        if task_id not in self._task_numbers:
            self._tasks[agent_id] += 1
            self._task_numbers[task_id] = (agent_id, self._tasks[agent_id])

    def cause(self, cause: str) -> str:
        """The path of a cause; that of a call from outside is the number of the input."""
        kind, _, what = cause.partition(":")
        if kind in ("user", "request"):
            return str(self.input)
        if kind in ("task", "mail", "event") and what in self._paths:
            return self._paths[what]
        return self.causal(cause)

    def of(self, actual: str) -> str:
        """The path of a task, a mail, an event …; the id itself if nothing told of it."""
        return self._paths.get(actual, actual)

    def key(self, step_id: str) -> str:
        """The key of a step, of a request for a summary too."""
        summary = ".summary" if step_id.endswith(".summary") else ""
        task_id, _, number = step_id.removesuffix(".summary").rpartition(".")
        return f"{self.of(task_id)}/{number}{summary}"

    def place(self, step_id: str) -> str:
        """Where a step is, for people: `writer, task 3`."""
        key = step_id.removesuffix(".summary").rpartition(".")[0]
        agent_id, number = self._task_numbers.get(key, (self.of(key), 0))
        return f"{agent_id}, task {number}" if number else agent_id

    def causal(self, text: str) -> str:
        """The text with causal ids for those that were drawn by chance."""
        known = self._causal
        return ID.sub(lambda found: known.get(found[0], found[0]), text) if known else text

    def actual(self, text: str) -> str:
        """The other way round: the text with the ids of this run for causal ones."""
        known = self._actual
        return ID.sub(lambda found: known.get(found[0], found[0]), text) if known else text

    def causal_data(self, data: Any) -> Any:
        """Data as JSON has it, with causal ids."""
        return through(self.causal, msgspec.to_builtins(data, str_keys=True))

    def actual_data(self, data: Any) -> Any:
        return through(self.actual, msgspec.to_builtins(data, str_keys=True))


class _Named(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "session"


def through(change: Callable[[str], str], data: Any) -> Any:
    """Data as JSON has it, with what `change` makes of each text in it."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, dict):
        return {change(name): through(change, each) for name, each in data.items()}
    return [through(change, each) for each in data] if isinstance(data, list | tuple) else data
