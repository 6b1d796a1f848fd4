"""What the agents of a session, or of a task tree, have used."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.tasks import TaskKind, TaskRecord
from ai_whisperer.domain.usage import UsageReport, UsageTotals
from ai_whisperer.runtime.life.open_session import OpenSession


def usage_of_session(session: OpenSession) -> UsageReport:
    """What each agent has used since it was made; in the total is what those had used that were deleted."""
    post = session.mail
    agents = {
        agent.agent_id: UsageTotals(
            tasks=agent.work.used.tasks,
            usage=agent.work.used.usage,
            mails_received=post.received(agent.agent_id),
            context_bytes=agent.work.context_bytes,
        )
        for agent in session.roster.agents.values()
    }
    report = _report(agents, mails_to_people=post.received(USER))
    former = session.roster.former
    if former is None:
        return report
    total = replace(report.total, tasks=report.total.tasks + former.tasks, usage=report.total.usage + former.usage)
    return replace(report, total=total)


def usage_of_tree(session: OpenSession, tasks: Iterable[TaskRecord]) -> UsageReport:
    """What each agent has used for these tasks. The mails that came in are those that became one of them."""
    agents: dict[str, UsageTotals] = {}
    for task in tasks:
        before = agents.get(task.agent_id, UsageTotals(tasks=0, usage=Usage(), mails_received=0, context_bytes=0))
        loop = session.roster.running.get(task.id)
        agents[task.agent_id] = UsageTotals(
            tasks=before.tasks + (task.started_at is not None),
            usage=before.usage + task.usage,
            mails_received=before.mails_received + (task.kind is TaskKind.MAIL),
            context_bytes=before.context_bytes + (0 if loop is None else loop.context_bytes),
        )
    return _report(agents, mails_to_people=0)


def _report(agents: dict[str, UsageTotals], *, mails_to_people: int) -> UsageReport:
    return UsageReport(
        agents=agents,
        total=UsageTotals(
            tasks=sum(each.tasks for each in agents.values()),
            usage=sum((each.usage for each in agents.values()), Usage()),
            mails_received=sum((each.mails_received for each in agents.values()), mails_to_people),
            context_bytes=sum(each.context_bytes for each in agents.values()),
        ),
    )
