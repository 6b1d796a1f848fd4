"""What is counted as it happens, since to count it again would take as long as there is history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.domain.tasks import Repaired, Retried, TaskRecord, TaskState
from ai_whisperer.runtime.session.decision import Decision


class Counters:
    """Who had to do with whom in a session, and how many tasks, by agent, and mails wait in it for a person.

    `ended` counts the tasks by the state that they ended in, `retried` what was begun again, `repaired` the tool calls
    that were not written as they should; all since the session was opened.
    """

    def __init__(
        self, session_id: str, links: Iterable[Link], *, dead_tasks: Mapping[str, int], dead_mails: int
    ) -> None:
        self._session_id = session_id
        self._links = {(link.kind, link.sender, link.recipient): link for link in links}
        self.dead_tasks = Counter(dead_tasks)
        self.ended = dict.fromkeys((state for state in TaskState if state.ended), 0)
        self.retried = dict.fromkeys(Retried, 0)
        self.repaired = dict.fromkeys(Repaired, 0)
        self.dead_mails = dead_mails

    def task_ended(self, task: TaskRecord) -> None:
        """A task has ended, or is continued by another."""
        self.ended[task.state] += 1
        if task.state.is_dead_letter:
            self.dead_tasks[task.agent_id] += 1

    def link(self, decision: Decision, kind: LinkKind, sender: str, recipient: str) -> None:
        """One has reached another once more."""
        key = (kind, sender, recipient)
        known = self._links.get(key)
        count = 1 if known is None else known.count + 1
        self._links[key] = link = Link(kind=kind, sender=sender, recipient=recipient, count=count, last_at=decision.at)
        if known is None:
            decision.unit.put_link(self._session_id, link)
        else:
            decision.unit.update_link(self._session_id, link)

    def links(self) -> tuple[Link, ...]:
        return tuple(link for link in self._links.values() if link.count)

    def forget(self, decision: Decision, agent_id: str) -> None:
        """The agent is deleted. Its links stay, empty: they lead to the number of the last mail of each sender."""
        for key, link in self._links.items():
            if agent_id in (link.sender, link.recipient) and link.count:
                self._links[key] = replace(link, count=0)
                decision.unit.put_link(self._session_id, self._links[key])
        self.dead_tasks.pop(agent_id, None)
