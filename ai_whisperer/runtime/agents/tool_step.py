"""One tool call of a loop. Whatever goes wrong becomes a result that the model can read."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from ai_whisperer.core.failure_records import failed
from ai_whisperer.core.marks import harmless
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.steps import StepOutput
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import ToolError, WhispererError
from ai_whisperer.runtime.agents.acting import AgentDesk
from ai_whisperer.runtime.agents.journal import TaskJournal
from ai_whisperer.runtime.agents.looking_up import Found
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.session.current import current_step
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.function import CancelSignal, Tool, ToolContext

_SHOWN_CHARACTERS = 1 << 20
"""So much of the output of one call is shown while it runs."""


def run_coordination_tool(
    agent: Owner,
    running: TaskJournal,
    decision: Decision,
    step: StepRecord,
    tool: CoordinationTool,
    found: Found | None,
) -> ToolResult | None:
    """Run a tool that touches only the store: its effects join the decision. None: the call waits for its result."""
    try:
        return tool.run(AgentDesk(agent, running, decision, step, found), _call_of(step).arguments)
    except WhispererError as error:
        return ToolResult(content=error.message, is_error=True)


async def run_tool(agent: Owner, step: StepRecord) -> ToolResult:
    """Run a tool with effects outside. Returns the result, or raises `CancelledError` once the tool has ended."""
    step_id = step.id
    current_step.set(step_id)
    try:
        result = await _run(agent, step, step_id)
    finally:
        agent.parts.permission.call_ended(step_id)
    content, untrusted = mended(result.content), result.untrusted
    if result.is_error:
        # It may quote what came from outside, so it is as trusted as the tool's results are.
        tool = agent.registry.find(_call_of(step).name)
        untrusted = isinstance(tool, Tool) and tool.untrusted
    if not untrusted:
        content = harmless(content)  # nobody but the runtime says who said something
    content = agent.parts.reached.bounded_result(agent.agent_id, step.task_id, content)
    return replace(result, content=content, untrusted=untrusted, not_run=False)


async def _run(agent: Owner, step: StepRecord, step_id: str) -> ToolResult:
    call = _call_of(step)
    try:
        tool = agent.registry.outside(call.name)
        return await tool.call(call.arguments, _context_of(agent, step, step_id, tool))
    except WhispererError as error:
        return failed(error.message)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return ToolResult(content=f"The tool '{call.name}' cancelled itself.", is_error=True)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - anybody's code: what it raises is for the model to read
        return failed(f"The tool '{call.name}' failed: {_words_of(error)}")


def _context_of(agent: Owner, step: StepRecord, step_id: str, tool: Tool) -> ToolContext:
    """The context of a call; one that the tool never sees has only what stands for the call."""
    context = ToolContext(
        session_id=step.session_id,
        agent_id=agent.agent_id,
        task_id=step.task_id,
        step_id=step_id,
        cancelled=CancelSignal(),
    )
    if not tool.takes_context:
        return context
    return replace(
        context,
        workplace=agent.workplace,
        progress=_Progress(agent, step).tell,
        guards=partial(agent.parts.locks.guards.guard, step.task_id),
    )


class _Progress:
    """Passes on what a tool shows of its output while it runs, to those who watch; not without end."""

    def __init__(self, agent: Owner, step: StepRecord) -> None:
        self._parts = agent.parts
        self._agent_id = agent.agent_id
        self._task_id = step.task_id
        self._step_id = step.id
        self._left = _SHOWN_CHARACTERS

    def tell(self, text: str) -> None:
        if not text or self._left <= 0 or not self._parts.kernel.log.wants_deltas:
            return
        shown = mended(text[: self._left])
        self._left -= len(shown)
        if self._left <= 0:
            shown += "\n[… the rest is not shown while it runs …]\n"
        told = StepOutput(agent_id=self._agent_id, task_id=self._task_id, step_id=self._step_id, text=shown)
        self._parts.kernel.log.publish_delta(
            Notification.unnumbered(
                told,
                session_id=self._parts.kernel.session_id,
                cause=f"task:{self._task_id}",
                at=self._parts.kernel.clock.now(),
            )
        )


def _words_of(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - anybody's code: an error may fail to say what it is
        return type(error).__name__


def _call_of(step: StepRecord) -> ToolCall:
    if step.call is None:
        raise ToolError(f"Step {step.id} is not a tool call.")
    return step.call


def is_being_cancelled() -> bool:
    """Whether a `CancelledError` that was caught is meant for the task that runs, not something inside of it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
