"""`whisperer tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import (
    AttachOption,
    DeliverOption,
    LimitOption,
    PriorityOption,
    SchemaOption,
    TimeoutOption,
    YesOption,
    once_option,
    reason_option,
    schema_in,
    text_argument,
)
from ai_whisperer.cli.calling import Call, Connected, Following, group
from ai_whisperer.cli.confirming import confirmed
from ai_whisperer.cli.connecting import AgentName, AgentOption
from ai_whisperer.cli.fleet import cost, hindrance, progress, style_of, tokens
from ai_whisperer.cli.long_waits import tools_of, with_a_word
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.short_ids import whole_id
from ai_whisperer.cli.steps import STEPS, whole_step
from ai_whisperer.core.attachments import described
from ai_whisperer.core.moments import moment
from ai_whisperer.core.tasks import check_not_erased, erased_in_words, host_of
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.tasks import (
    Budget,
    Deliver,
    Failure,
    Priority,
    RetriedTasks,
    TaskRecord,
    TaskState,
    ThreadSummary,
)
from ai_whisperer.errors import InvalidInputError, TaskEndedError

_ERASED = "erased"
"""What stands where content was."""

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The id of the task, or how it begins."), IdKind.TASK]


def register(app: typer.Typer) -> None:
    told = "Show the tasks; send, cancel or retry one; show or erase threads."
    group(app, "tasks", list_tasks, send, show, wait, tree, cancel, retry, dead, dismiss, threads, erase, help=told)


async def list_tasks(call: Connected, *, agent: AgentOption = None, limit: LimitOption = 100) -> None:
    """Show the tasks, the newest first."""
    tasks = await call.client.list_tasks(agent, limit=limit)
    empty = 'There are no tasks. Send one: whisperer tasks send AGENT "what to do"'
    call.output.table(tasks, TASKS, empty=empty, limit=limit)


async def send(
    call: Following,
    agent: AgentName,
    prompt: Annotated[str, text_argument("PROMPT", "What to do")],
    *,
    until_done: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the answer and show it.")] = False,
    priority: PriorityOption = Priority.NORMAL,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="Tasks of one thread share their history.")
    ] = None,
    task_id: Annotated[str | None, once_option("sent")] = None,
    seconds: TimeoutOption = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="For the task and everything that it causes.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", help="For the task and everything that it causes.")
    ] = None,
    output_schema: SchemaOption = None,
    attach: AttachOption = None,
    deliver: DeliverOption = Deliver.IN_TURN,
) -> None:
    """Give an agent a task, or with `--deliver next-step` a message to the task that it is at."""
    unlimited = max_tokens is None and max_cost is None
    task = await call.client.send_task(
        agent,
        prompt,
        priority=priority,
        thread_id=thread,
        task_id=task_id,
        timeout_seconds=seconds,
        budget=None if unlimited else Budget(max_tokens=max_tokens, max_cost_usd=max_cost),
        output=schema_in(output_schema),
        parts=attach or (),
        deliver=deliver,
    )
    waits = hindrance(await call.client.get_agent_status(task.agent_id))
    if waits is not None:
        call.output.note(waits)
    if until_done:
        _show_answer(call, await call.client.wait_task(task.id))
        return
    call.output.told(task, f"Sent task {task.id} to {task.agent_id}.")


async def wait(call: Following, task: TaskId) -> None:
    """Wait until a task has ended, and show its answer."""
    _show_answer(call, await call.client.wait_task(task))


async def show(
    call: Connected,
    task: TaskId,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show each step in full.")] = False,
) -> None:
    """Show a task with its steps and its answer."""
    record = await call.client.get_task(task)
    steps = await call.client.list_steps(record.id)
    if call.output.as_json:
        call.output.json({"task": record, "steps": steps})
        return
    call.output.details(
        record,
        [
            ("task", record.id),
            ("agent", record.agent_id),
            ("kind", record.kind),
            ("state", record.state),
            ("progress", progress(record)),
            ("thread", record.thread_id),
            ("priority", record.priority),
            ("caused by", record.cause),
            ("joined", _joined(record)),
            ("created", moment(record.created_at)),
            ("started", moment(record.started_at)),
            ("finished", moment(record.finished_at)),
            *([] if record.dismissed_at is None else [("dismissed", moment(record.dismissed_at))]),
            ("tokens", tokens(record.usage)),
            ("cost", cost(record.usage)),
            ("error", "" if record.error is None else f"{record.error.code}: {record.error.message}"),
            ("prompt", _prompt(record)),
            *([] if record.parts is None else [("with", ", ".join(map(described, record.parts)))]),
        ],
    )
    if full:
        for step in steps:
            call.output.text(f"\n{whole_step(step)}")
    elif steps:
        call.output.text("")
        call.output.rows(steps, STEPS)
    if record.erased_at is not None:
        call.output.text(f"\n{erased_in_words(record)}")
    elif record.result is not None:
        call.output.text(f"\n{record.result.final}")


async def tree(call: Connected, task: TaskId) -> None:
    """Show everything that belongs together with a task: what caused it and what it caused."""
    call.output.table(await call.client.get_task_tree(task), TREE, empty="")


async def cancel(
    call: Connected,
    task: TaskId,
    *,
    with_all: Annotated[bool, typer.Option("--tree", help="Cancel everything that it caused, too.")] = False,
    reason: Annotated[str, reason_option("it is kept")] = "cancelled by the user",
) -> None:
    """End a task."""
    if with_all:
        tree = [each.id for each in await call.client.get_task_tree(task) if each.state is TaskState.RUNNING]
        work = call.client.cancel_tree(task, reason=reason)
        cancelled = await with_a_word(work, lambda: tools_of(call.client, tree), call.output)
        call.output.told(cancelled, f"Cancelled: {', '.join(each.id for each in cancelled)}.")
    else:
        ending = call.client.cancel_task(task, reason=reason)
        record = await with_a_word(ending, lambda: tools_of(call.client, [task]), call.output)
        call.output.told(record, f"Task {record.id} of {record.agent_id} is {record.state}.")


async def retry(
    call: Call,
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="The id of the task, or how it begins.")] = None,
    *,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="All failed tasks that nobody has dismissed, the oldest first.")
    ] = False,
    agent: AgentOption = None,
) -> None:
    """Take a failed, cancelled or dead task up again where it ended; no finished step is repeated."""
    if all_failed is (task is not None):
        raise InvalidInputError("Name one task, or give --all-failed to retry all failed ones.")
    if agent is not None and not all_failed:
        raise InvalidInputError("--agent goes with --all-failed: a task has its agent already.")
    async with call.server() as client:
        if task is None:
            _tell_retried(call, await client.retry_failed_tasks(agent))
            return
        record = await client.retry_task(await whole_id(client, IdKind.TASK, task))
    call.output.told(record, f"Task {record.id} of {record.agent_id} is {record.state} again.")


def _tell_retried(call: Call, outcome: RetriedTasks) -> None:
    """How many were queued again, and of those that could not be, why."""
    for task_id, reason in outcome.reasons.items():
        call.output.note(f"Not retried: {task_id}: {reason}")
    call.output.told(outcome, retried_in_words(outcome))


def retried_in_words(outcome: RetriedTasks) -> str:
    if not outcome.retried and not outcome.not_retried:
        return "No task has failed."
    left = f"; {outcome.not_retried} could not be" if outcome.not_retried else ""
    retried = "1 failed task was" if outcome.retried == 1 else f"{outcome.retried} failed tasks were"
    return f"{retried} retried{left}."


async def dead(call: Connected) -> None:
    """Show the tasks and mails that could not be done and wait for a person."""
    letters = await call.client.dead_letters()
    if call.output.as_json:
        call.output.json(letters)
        return
    call.output.table(letters.tasks, TASKS, empty="There are no dead letters.")
    for mail in letters.mails:
        call.output.text(f"mail {mail.id} from {mail.sender} to {mail.recipient}: {mail.subject}")


async def dismiss(call: Connected, task: TaskId) -> None:
    """Take a failed or dead task off the dead letters. It is kept, and can still be retried."""
    record = await call.client.dismiss_task(task)
    call.output.told(record, f"Task {record.id} of {record.agent_id} was dismissed.")


async def threads(call: Connected, agent: AgentName) -> None:
    """Show the conversations of an agent."""
    call.output.table(await call.client.list_threads(agent), THREADS, empty=f"{agent} has no threads yet.")


async def erase(
    call: Connected,
    agent: AgentName,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The id of the thread: whisperer tasks threads.")],
    *,
    yes: YesOption = False,
) -> None:
    """Erase a conversation of an agent, for good. Its tasks stay known by their ids, without content."""
    await confirmed(call, f"Erase thread {thread} of {agent} with all that was said in it, for good?", yes=yes)
    erased = await call.client.delete_thread(agent, thread)
    call.output.told(erased, f"Erased thread {erased.id} of {agent}: {erased.tasks} tasks.")


def _show_answer(call: Call, task: TaskRecord) -> None:
    """Show the answer of a task that has ended; raises what it failed with."""
    answer = "" if task.result is None else task.result.final
    if call.output.as_json:
        call.output.json(task)
    elif answer:
        call.output.text(answer)
    check_not_erased(task)
    if task.state is not TaskState.COMPLETED:
        error = task.error or Failure(code="task_ended", message="no reason was recorded.")
        raise TaskEndedError(f"Task {task.id} of {task.agent_id} ended as {task.state}: {error.message}")


def _joined(task: TaskRecord) -> str:
    """The task that it has joined, and the step of that before which its prompt was said."""
    if task.joined_step is None:
        return ""
    return f"task {host_of(task)}, before step {task.joined_step.rpartition('.')[2]}"


def _prompt(task: TaskRecord) -> str:
    return task.prompt if task.erased_at is None else _ERASED


def _outcome(task: TaskRecord) -> str:
    if task.erased_at is not None:
        return _ERASED
    if task.error is not None:
        return task.error.message
    return "" if task.result is None else task.result.final


TASKS: Sequence[Column[TaskRecord]] = (
    Column("TASK", lambda each: each.id, whole=True),
    Column("AGENT", lambda each: each.agent_id, whole=True),
    Column("KIND", lambda each: each.kind),
    Column("STATE", lambda each: each.state, whole=True, style=style_of),
    Column("CREATED", lambda each: moment(each.created_at)),
    Column("PROGRESS", progress),
    Column("PROMPT", _prompt),
    Column("RESULT", _outcome),
)
THREADS: Sequence[Column[ThreadSummary]] = (
    Column("THREAD", lambda each: each.id, whole=True),
    Column("TASKS", lambda each: str(each.tasks), right=True),
    Column("FIRST", lambda each: moment(each.first_at)),
    Column("LAST", lambda each: moment(each.last_at)),
)
TREE: Sequence[Column[TaskRecord]] = (
    *TASKS[:4],
    Column("CAUSED BY", lambda each: each.parent_id or each.cause, whole=True),
    TASKS[-1],
)
