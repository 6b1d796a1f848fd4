"""The workflows of the user guide, as programs that work with a session on a server; some also with one in process.

Each may be called again at any time, also after the server or the connection was lost: agents are created if they are
not there yet, and work carries an id, so that it is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.tasks import TaskRecord, TaskState
from ai_whisperer.examples.tools import combine_and_test, read_feedback
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import COORDINATION_TOOLS

if TYPE_CHECKING:
    from ai_whisperer import AsyncAgentSessionManager

Session: TypeAlias = "Client | AsyncAgentSessionManager"

WELL = (TaskState.COMPLETED, TaskState.CONTINUED)
"""How tasks end that went well."""

_WAKE_EVENTS = ("alert", "hourly_check")
_LOOK_NOW = "User requested immediate check"
_TOOL_OF = {"analyzer": read_feedback, "integrator": combine_and_test}
"""The agents that need a tool beside those that every agent has."""


class Order(NamedTuple):
    """What a workflow is asked to do, for how long, and what its agents have that their templates do not say."""

    prompt: str
    timeout_seconds: float | None = None
    config: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Workflow(NamedTuple):
    """A workflow of the guide. `work` needs its agents, and returns when they are done: with what they do not mail."""

    name: str
    description: str
    prompt: str
    work: Callable[[Client, Order], Coroutine[Any, Any, str | None]]
    agents: tuple[str, ...]
    tools: tuple[Tool, ...] = ()

    async def run(self, client: Client, order: Order) -> str:
        """Create the agents, let them work, and return what has come of it for the person."""
        for agent in self.agents:
            await _create_agent(client, agent, order)
        answer = await self.work(client, order)
        return await _news(client, self.agents) if answer is None else answer


async def parallel_report(session: Session, order: Order) -> None:
    # Start parallel workflow. In one thread, so that the writer still knows its template when the results come.
    await session.send_task(
        "analyzer",
        f"Analyze this: {order.prompt}. The tool read_feedback has the material. Mail the result to the writer.",
        task_id="analysis",
        thread_id="report",
        timeout_seconds=order.timeout_seconds,
    )
    await session.send_task(
        "writer",
        f"Prepare report template for this: {order.prompt}. The analyzer will mail you the result. Mail the finished "
        "report to the reviewer, who delivers it to the user.",
        task_id="template",
        thread_id="report",
        timeout_seconds=order.timeout_seconds,
    )

    # Analyzer finishes and sends results to writer
    # Writer incorporates results and sends to reviewer
    # Reviewer approves and notifies completion
    await session.at_rest()


async def monitoring(client: Client, order: Order) -> None:
    # Let the monitor sleep until an event
    await _back_to_sleep(client)

    # An "alert" event is broadcast: the monitor wakes, looks around, reports and sleeps again
    await client.broadcast_event("alert", {"what": order.prompt}, event_id="alert")
    await _done(client, "Event 'alert'")
    await _back_to_sleep(client)

    # Manual wake is triggered
    if not await _tasks_with(client, _LOOK_NOW):
        await client.wake_agent("monitor", reason=_LOOK_NOW)
    await _done(client, _LOOK_NOW)
    await _back_to_sleep(client)


async def decomposition(session: Session, order: Order) -> None:
    # Planner decomposes work
    await session.send_task(
        "planner",
        f"Create plan for new feature implementation: {order.prompt}. Delegate a part to each of coder1, coder2 and "
        "coder3. Each of them mails its Python code to the integrator, who puts the parts together with "
        "combine_and_test and mails the module to the user.",
        task_id="plan",
        timeout_seconds=order.timeout_seconds,
    )

    # Coders work in parallel
    # Each sends results to integrator when done
    # Integrator combines and tests
    await session.at_rest()


async def switch(client: Client, order: Order) -> str:
    # Alice asks Debbie, waits for her reply, and goes on with it
    task = await client.send_task(
        "alice",
        f"Ask Debbie with send_mail_with_switch: {order.prompt} Then say what she answered.",
        task_id="ask-debbie",
        timeout_seconds=order.timeout_seconds,
    )
    ended = await client.wait_task(task)
    return "" if ended.result is None else await client.answer_of(ended)


async def _create_agent(client: Client, agent_id: str, order: Order) -> None:
    """Let the agent be there, made of the template that is called like it but for a number, without its schedule.

    Raises `DefinitionError` if it needs a tool that the server does not have.
    """
    if all(agent_id != known.agent_id for known in await client.list_agents()):
        tools = {"tools": [*COORDINATION_TOOLS, _TOOL_OF[agent_id].name]} if agent_id in _TOOL_OF else {}
        config = {"schedule": [], **tools, **order.config}
        await client.create_agent(agent_id, config, template=agent_id.rstrip("0123456789"))


async def _back_to_sleep(client: Client) -> None:
    """Put a monitor to sleep that is awake for no reason: a new one, or one that forgot to do so by itself."""
    status = await client.get_agent_status("monitor")
    if status.state is AgentState.IDLE and not status.queue_size:
        await client.sleep_agent("monitor", wake_events=_WAKE_EVENTS)


async def _done(client: Client, why: str) -> None:
    """Wait until the monitor has done what it was woken for."""
    for task in await _tasks_with(client, why):
        await client.wait_task(task)


async def _tasks_with(client: Client, words: str) -> list[TaskRecord]:
    return [task for task in await client.list_tasks("monitor") if words in task.prompt]


async def _news(client: Client, senders: tuple[str, ...]) -> str:
    """What these agents have mailed to the user, the oldest first."""
    mails = [mail for mail in await client.mailbox() if mail.sender in senders]
    return "\n\n".join(f"{mail.subject} (from {mail.sender})\n{mail.body}" for mail in reversed(mails))


def troubles_of(tasks: Iterable[TaskRecord]) -> list[str]:
    """What became of the tasks that did not end well, each in a sentence."""
    return [
        f"Task {task.id} of {task.agent_id} {'ended as' if task.state.ended else 'is'} {task.state}: "
        f"{task.error.message if task.error else 'no reason was recorded.'}"
        for task in tasks
        if task.state not in WELL
    ]


PARALLEL_REPORT = Workflow(
    name="parallel-report",
    description="An analyzer and a writer at the same time, and a reviewer who delivers the report.",
    prompt="customer sentiment in the feedback",
    work=parallel_report,
    agents=("analyzer", "writer", "reviewer"),
    tools=(read_feedback,),
)
MONITORING = Workflow(
    name="monitoring",
    description="A monitor that sleeps until an alert or a person wakes it.",
    prompt="the disk is 90 % full",
    work=monitoring,
    agents=("monitor",),
)
DECOMPOSITION = Workflow(
    name="decomposition",
    description="A planner that delegates, three coders in parallel, an integrator that joins their parts.",
    prompt="statistics about the words of a text, as the three Python functions count_words, longest_word and "
    "most_common_word",
    work=decomposition,
    agents=("planner", "coder1", "coder2", "coder3", "integrator"),
    tools=(combine_and_test,),
)
SWITCH = Workflow(
    name="switch",
    description="Alice asks Debbie, waits for the answer, and continues with it.",
    prompt="Is any of the agents stuck?",
    work=switch,
    agents=("alice", "debbie"),
)
WORKFLOWS = {each.name: each for each in (PARALLEL_REPORT, MONITORING, DECOMPOSITION, SWITCH)}
