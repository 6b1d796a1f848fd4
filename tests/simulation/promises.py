"""The promises, seen from outside, after a random run. Each failure says which one was broken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.tasks import base_id
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskKind, TaskRecord, TaskState
from ai_whisperer.domain.waits import WaitKind
from tests.simulation.promises_of_talk import check_notices, check_questions, check_steering
from tests.simulation.promises_of_time import TASK_ENDS, check_time, due_times
from tests.simulation.promises_of_waits import check_approvals, check_waits_now
from tests.simulation.world import AGENTS, ALWAYS_ASKS, World

TREE_CANCELLED = "cancelled with its tree"
SLACK_SECONDS = 1.0
"""How much later than due something may be: the disk is slow."""

GRACE_SECONDS = 5.0
"""So long steps may go on when the session is closed, and no clock is watched any more."""


class Findings:
    """All that a session says about itself at the end."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskRecord] = {}

    async def gather(self, manager: AsyncAgentSessionManager) -> None:
        self.tasks = {task.id: task for name in AGENTS for task in await manager.list_tasks(name, limit=100_000)}
        self.mails = {
            mail.id: mail for name in (*AGENTS, "user") for mail in await manager.mailbox(name, limit=100_000)
        }
        self.steps = {task_id: await manager.list_steps(task_id) for task_id in self.tasks}
        self.notes = await manager.notifications(limit=1_000_000)
        self.events = await manager.list_events(limit=100_000)

    def named(self, *names: str) -> list[Notification]:
        return [note for note in self.notes if note.name in names]

    def step(self, step_id: str) -> StepRecord:
        task_id, _, number = step_id.rpartition(".")
        return next(step for step in self.steps[task_id] if step.number == int(number))


def task_of(step_id: str) -> str:
    return step_id.rpartition(".")[0]


async def check_now(manager: AsyncAgentSessionManager, *, loops: int, places: int) -> None:
    """What must hold at every moment. So many loops of an agent, and of all, may be at work."""
    session = manager._session
    for agent in session.roster.agents.values():
        ordinary = [loop for loop in agent.work.loops.values() if not loop.task.answers_a_switch]
        assert len(ordinary) <= loops, "an agent runs more loops than it may"
    at_work = [
        loop
        for loop in session.roster.running.values()
        if loop.worker is not None and not loop.task.answers_a_switch and not loop.is_waiting  # for its next attempt
    ]
    assert max(len(at_work), session.slots.used) <= places, "more loops work than there are places"
    await check_waits_now(manager)
    waits_for = _who_waits_for_whom(manager)
    for task_id in waits_for:
        reached, ahead = set[str](), {task_id}
        while ahead:
            ahead = {other for each in ahead for other in waits_for.get(each, ())} - reached
            reached |= ahead
        assert task_id not in reached, "some wait in a circle"


def _who_waits_for_whom(manager: AsyncAgentSessionManager) -> dict[str, set[str]]:
    """By waiting task, the tasks it waits for: those that answer its questions and hold the locks that it wants."""
    session = manager._session
    running = [loop.task for loop in session.roster.running.values()]
    answering = {task.origin.answers: task.id for task in running if task.origin is not None}
    holders = {lock.name: lock.task_id for lock in manager.list_locks()}
    found: dict[str, set[str]] = defaultdict(set)
    for wait in session.waits.by_step.values():
        other = (holders if wait.kind is WaitKind.LOCK else answering).get(wait.target)
        if other is not None:
            found[wait.task_id].add(other)
    return found


async def check(manager: AsyncAgentSessionManager, world: World) -> None:
    """Raise `AssertionError` with the promise that was broken."""
    found = Findings()
    await found.gather(manager)
    assert [note.seq for note in found.notes] == list(range(1, len(found.notes) + 1)), "the log has a gap"
    check_time(found.notes, found.tasks, lambda due_at, until: _latest(world, due_at, until=until))
    _check_tasks(found, world)
    _check_trees(found)
    _check_journals(found, world)
    _check_mails(found, world)
    _check_mail_order(found)
    _check_threads(found)
    _check_switches(found, world)
    _check_locks(manager, found, world)
    _check_turns(found, world)
    await check_approvals(manager, found.notes, always=ALWAYS_ASKS)
    await check_questions(manager, found.notes, world.accepted_answers)
    check_steering(found.tasks, found.steps, world)
    check_notices(found.mails, found.tasks, found.notes)
    _check_delegation(found)
    _check_budgets(found)
    _check_usage(manager, found)
    _check_events(found, world)
    _check_turns_at_providers(manager, found)
    await _check_nothing_is_left(manager)


def _check_turns_at_providers(manager: AsyncAgentSessionManager, found: Findings) -> None:
    """The provider of some runs refuses who comes while others are answered, and never one that comes alone."""
    for account in manager.list_provider_accounts():
        assert (account.under_way, account.waiting) == (0, 0), "somebody holds a turn, or waits for one, and is gone"
    refused = [note.params["stepId"] for note in found.named("step.retried") if _is_refusal(note)]
    failures = Counter(note.params["stepId"] for note in found.named("step.retried") if not _is_refusal(note))
    for step_id in refused:
        if (step := found.step(step_id)).attempt > 1:
            assert step.failures <= failures[step_id], "a refusal for which others are the reason counts as a failure"
    errors = [task.error.code for task in found.tasks.values() if task.error is not None]
    assert "model_rate_limit" not in errors, "a task failed because others asked at the same time"


def _is_refusal(note: Notification) -> bool:
    return bool(note.params["error"]["code"] == "model_rate_limit")


def _check_tasks(found: Findings, world: World) -> None:
    assert world.accepted_tasks <= set(found.tasks), "an accepted task was lost"
    assert all(task.state.ended for task in found.tasks.values()), "a task never ended"
    for task in found.tasks.values():
        if task.error is not None and task.error.code == "internal":
            assert any(name in task.error.message for name in ("PlannedFaultError", "ExceptionGroup")), "a loop broke"
            assert task.state is TaskState.DEAD, "a task whose loop broke is no dead letter"


def _check_trees(found: Findings) -> None:
    for task in found.tasks.values():
        above: TaskRecord | None = task
        while above is not None and above.id != task.root_id:
            above = found.tasks.get(above.parent_id or "")
        assert above is not None, f"{task.id} is not found from the root of its tree"


def _check_journals(found: Findings, world: World) -> None:
    assert not world.asked_again, "a finished model request was repeated"
    assert all(count == 1 for count in world.effects.values()), "an outside effect happened twice"
    for task_id, journal in found.steps.items():
        numbers = {step.number for step in journal}
        missing = set(range(1, max(numbers, default=0))) - numbers
        assert missing <= _never_begun(found.tasks[task_id], journal), "a journal has a gap"
        for step in journal:
            assert step.state is not StepState.STARTED, f"{task_id} has a step without an end"
            assert step.kind is not StepKind.TOOL or step.result is not None, "a call ended without a result"
            happened = world.effects[step.id] + world.repeatable_effects[step.id]
            if step.call is not None and step.state is StepState.DONE and step.call.name in world.outside:
                assert step.result is not None
                assert bool(happened) is not step.result.is_error, "the result of a call is not what happened"


def _never_begun(task: TaskRecord, journal: list[StepRecord]) -> set[int]:
    """The calls of the last answer, if the task ended before all of them had begun: they may have waited for a turn."""
    asked = next((step for step in reversed(journal) if step.answer is not None), None)
    if asked is None or asked.answer is None or task.state in (TaskState.COMPLETED, TaskState.CONTINUED):
        return set()
    return set(range(asked.number + 1, asked.number + 1 + len(asked.answer.tool_calls)))


def _check_mails(found: Findings, world: World) -> None:
    assert world.accepted_mails <= set(found.mails), "an accepted mail was lost"
    handled = Counter(task.mail_id for task in found.tasks.values() if task.mail_id and task.state != "cancelled")
    sequences: dict[str, list[int]] = defaultdict(list)
    for mail in found.mails.values():
        sequences[mail.sender].append(mail.sequence)
        assert mail.recipient == "user" or mail.state not in ("queued", "delivered"), "a mail was never handled"
        owner = found.tasks.get(mail.task_id or "")
        if owner is not None and owner.mail_id == mail.id and owner.state in ("failed", "dead"):
            assert mail.state in ("dead", "replied"), "a mail whose task failed is no dead letter"
        assert handled[mail.id] <= 1, "a mail was handled twice"
        if mail.state in ("read", "replied") and mail.recipient != "user":
            assert mail.id in world.shown_mail, "a mail counts as read that no model was shown"
    for sender, numbers in sequences.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"the sequence of {sender} has a gap"


def _check_mail_order(found: Findings) -> None:
    """One sender's mails of one priority to one recipient never overtake: their first delivery is in order.

    Questions for whose answer somebody waits pass the others, and the answers to them are handed over at once.
    """
    delivered: dict[tuple[str, str, str, bool], list[int]] = defaultdict(list)
    seen: set[str] = set()
    for note in found.named("mail.state_changed"):
        mail = found.mails[note.params["mailId"]]
        if note.params["state"] == "delivered" and mail.id not in seen and not _answers_a_switch(found, mail):
            seen.add(mail.id)
            delivered[mail.sender, mail.recipient, mail.priority, mail.awaited].append(mail.sequence)
    for key, sequence in delivered.items():
        assert sequence == sorted(sequence), f"mail from {key[0]} to {key[1]} was overtaken"


def _answers_a_switch(found: Findings, mail: MailRecord) -> bool:
    return mail.reply_to is not None and found.mails[mail.reply_to].awaited


def _check_threads(found: Findings) -> None:
    running: dict[tuple[str, str], str] = {}
    for note in found.notes:
        task = found.tasks.get(note.params.get("taskId", ""))
        if task is None:
            continue
        key = (task.agent_id, task.thread_id)
        if note.name == "async.task.started":
            assert running.get(key, task.id) == task.id, "two tasks of one thread ran at the same time"
            running[key] = task.id
        elif note.name in {*TASK_ENDS, "async.task.continuation"} and running.get(key) == task.id:
            del running[key]


def _check_switches(found: Findings, world: World) -> None:
    began = {note.params["stepId"]: note for note in found.named("switch.began")}
    ended = Counter(note.params["stepId"] for note in found.named("switch.ended"))
    assert ended == Counter(dict.fromkeys(began, 1)), "a switch did not end exactly once"
    deadlines = due_times(found.notes, "deadlineAt")
    for note in found.named("switch.ended"):
        step = found.step(note.params["stepId"])
        assert step.result is not None
        assert found.mails[note.params["mailId"]].awaited, "somebody waits for the answer to an ordinary mail"
        match note.params["outcome"]:
            case "answered":
                assert step.result.mails == (note.params["replyId"],), "an answer is not the result of the call"
            case "abandoned":
                assert step.state is StepState.UNKNOWN, "a call that was given up has a result"
            case _:
                assert step.result.is_error, "a call without an answer says nothing of it"
                assert step.state is StepState.DONE, "a call that got no answer has no result"
        due_at = deadlines[began[step.id].seq]
        assert note.at <= _latest(world, due_at, until=note.at), "somebody waited longer than they wanted"
    for task in found.tasks.values():
        mail = found.mails.get(task.mail_id or "")
        if mail is not None and mail.awaited:
            assert task.answers_a_switch, "a question was answered among the ordinary work"
            if _last_of(found, task).state is TaskState.COMPLETED:
                assert mail.state == "replied", "a question whose task is done was not answered"


def _check_locks(manager: AsyncAgentSessionManager, found: Findings, world: World) -> None:
    assert not manager.list_locks(), "a lock is still held"
    waits = {note.params["stepId"]: note for note in found.named("lock.waiting")}
    ended = Counter(note.params["stepId"] for note in found.named("lock.wait_ended"))
    assert ended == Counter(dict.fromkeys(waits, 1)), "a wait for a lock did not end exactly once"
    deadlines = due_times(found.notes, "deadlineAt")
    for note in found.named("lock.wait_ended"):
        due_at = deadlines[waits[note.params["stepId"]].seq]
        assert note.at <= _latest(world, due_at, until=note.at), "somebody waited longer for a lock than they wanted"
    held: dict[str, int] = {}
    last_token = 0
    for note in found.named("lock.acquired", "lock.renewed", "lock.released", "lock.expired", "lock.broken"):
        name, token = note.params["name"], note.params["token"]
        if note.name == "lock.acquired":
            assert name not in held, "a lock has two holders"
            assert token == last_token + 1, "the token of a lock did not rise"
            held[name] = last_token = token
        else:
            assert held[name] == token, "a lock was given back by somebody who does not hold it"
            if note.name != "lock.renewed":
                del held[name]


def _check_turns(found: Findings, world: World) -> None:
    assert not world.collisions, "two touched the same thing at the same time"
    waiting: dict[str, int] = {}
    moments = ("resource.waiting", "resource.granted", "step.started", "step.finished", "approval.requested")
    for note in found.named(*moments, *TASK_ENDS):
        step_id, life = note.params.get("stepId", ""), sum(seq < note.seq for seq in world.opened_after)
        if note.name in TASK_ENDS:
            waiting = {each: since for each, since in waiting.items() if task_of(each) != note.params["taskId"]}
        elif note.name == "approval.requested":
            waiting.pop(note.params["approvalId"], None)
        elif note.name == "step.finished":
            waiting.pop(step_id, None)
        elif note.name == "resource.waiting":
            waiting[step_id] = life
        elif note.name == "resource.granted":
            assert waiting.pop(step_id, None) == life, "a turn came to one who did not wait for it"
        else:
            assert waiting.get(step_id) != life, "a call began before its turn"


def _check_delegation(found: Findings) -> None:
    """Each end of a delegated task is reported once, unless it is cancelled as part of a tree."""
    reports: Counter[str] = Counter()
    for mail in found.mails.values():
        if mail.body.startswith("Task ") and mail.reply_to is None:
            task = found.tasks[mail.body.split(":\n")[0].removeprefix("Task ")]
            reports[base_id(task)] += 1
    ends: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    for note in found.named(*TASK_ENDS):
        task = found.tasks[note.params["taskId"]]
        if found.tasks[base_id(task)].kind is TaskKind.DELEGATED:
            ends[base_id(task)] += 1
            silent[base_id(task)] += note.params.get("reason") == TREE_CANCELLED
    for task_id, count in ends.items():
        told = reports.pop(task_id, 0)
        assert count - silent[task_id] == told, f"{task_id} ended {count} times and was reported {told} times"
    assert not reports, "something was reported that was not delegated"


def _check_budgets(found: Findings) -> None:
    used: Counter[str] = Counter()
    for note in found.named("step.started", "step.finished"):
        task = found.tasks[note.params["taskId"]]
        if task.budget is None or task.budget.max_tokens is None or note.params["kind"] == StepKind.TOOL:
            continue
        if note.name == "step.finished":
            usage = note.params.get("usage", {})
            tokens = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
            used[task.root_id] += tokens
            before = used[task.root_id] - tokens
            assert not tokens or before < task.budget.max_tokens, "a budget was overdrawn by two requests"
        elif "attempt" not in note.params:
            assert used[task.root_id] < task.budget.max_tokens, "a tree went on when its budget was spent"


def _check_usage(manager: AsyncAgentSessionManager, found: Findings) -> None:
    for task in found.tasks.values():
        steps = found.steps[task.id]
        assert task.usage.model_calls == sum(step.requests for step in steps), (
            "a task counts other requests than it made"
        )
        made = sum(step.attempt for step in steps if step.kind is not StepKind.TOOL)
        assert task.usage.model_calls <= made, "a request was counted twice"
    for name in AGENTS:
        used = manager.get_agent_status(name).usage
        own = sum((task.usage for task in found.tasks.values() if task.agent_id == name), Usage())
        assert (used.model_calls, used.tool_calls) == (own.model_calls, own.tool_calls), (
            "an agent lost count of its tasks"
        )
        assert (used.input_tokens, used.unpriced_tokens) == (own.input_tokens, own.unpriced_tokens), "tokens were lost"


def _check_events(found: Findings, world: World) -> None:
    recorded = Counter(str(event.data) for event in found.events)
    told = Counter(str(note.params["data"]) for note in found.named("event.broadcast"))
    assert recorded == told, "an event was recorded and not told, or told and not recorded"
    assert all(count == 1 for count in recorded.values()), "an event was broadcast twice"
    assert world.accepted_events <= set(recorded), "an accepted event was lost"
    for step in _calls_of(found, "broadcast_event"):
        happened = any(event.cause == f"task:{step.task_id}" for event in found.events)
        if step.result is not None and not step.result.is_error:
            assert happened, "an event that was broadcast is not there"


async def _check_nothing_is_left(manager: AsyncAgentSessionManager) -> None:
    """Memory and store forget what is over."""
    session = manager._session
    waits, graph, trees, post = session.waits, session.waits.graph, session.trees, session.mail
    kept = {
        "waits in the store": (await session.kernel.store.load(session.kernel.session_id)).waits,
        "waits": list(waits.by_step),
        "the graph of waits": [*graph._by_target, *graph._by_task, *graph._answers, *graph._holds],
        "trees": [*trees._used, *trees._running, *trees._cancelling],
        "mails": [*post._under_way, *post._of_task, *post._moving.values()],
        "ends of tasks": [*session.kernel.ended_lately.values(), *manager._settled.values()],
        "messages": [*session.rooms.transcript._by_id.values(), *session.rooms.transcript._by_number.values()],
        "loops": list(session.roster.running),
        "places of loops": [*session.slots._line, *range(session.slots.used)],
        "what is set aside": [*session.spending._held, *session.spending._ledgers],
        "waits for tokens": [*session.spending._line, *session.spending._lacking],
        "things that are touched": manager.list_resources(),
        "calls in lines": list(session.turns.lines._of_task),
        "approvals": [*session.approvals._of_task, *session.approvals._leaving.values()],
        "questions": [*session.questions._pending, *session.questions._leaving.values()],
        "timers": [key for key in session.kernel.timers.keys if not key.startswith("restart:")],
        "who waits to join a task": [name for name, agent in session.roster.agents.items() if agent.work.steering],
        "busy threads": [
            thread
            for agent in session.roster.agents.values()
            for queue in (agent.work.queue, agent.work._calls)
            for thread in (queue and queue._busy) or ()
        ],
    }
    left = {name: what for name, what in kept.items() if what}
    assert not left, f"something is left that is over: {left}"


def _calls_of(found: Findings, tool: str) -> Iterator[StepRecord]:
    for journal in found.steps.values():
        yield from (step for step in journal if step.call is not None and step.call.name == tool)


def _last_of(found: Findings, task: TaskRecord) -> TaskRecord:
    while task.state is TaskState.CONTINUED:
        task = found.tasks[f"{base_id(task)}~{task.continuation + 1}"]
    return task


def _latest(world: World, due_at: float, *, until: float) -> float:
    """When what was due at that time must have happened, in the life that goes on at `until`."""
    opened_at = max(at for at in world.opened_at if at <= until)
    is_closing = any(opened_at <= at <= until for at in world.closed_at)
    return max(due_at, opened_at) + SLACK_SECONDS + (GRACE_SECONDS if is_closing else 0.0)
