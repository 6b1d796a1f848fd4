"""What must be true whenever the process is dead. Each function yields a sentence for each thing that is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .evidence import Database, Evidence, Mail
from .workload import WAITING_TOOLS, Workload

_ENDED = ("completed", "failed", "cancelled", "dead")
_UNDER_WAY = ("delivered", "read", "replied")


def always(now: Evidence, before: Evidence | None, workload: Workload) -> Iterator[str]:
    """What is wrong at this moment, given what was known at the moment before."""
    database = now.database
    if database.integrity != "ok":
        yield f"the database is damaged: {database.integrity}"
    yield from _lost(now, workload)
    yield from _misnumbered(database)
    yield from _begun_unjournaled(now)
    yield from _out_of_order(database)
    yield from _half_done(database)
    yield from _half_waited(database)
    yield from _misheld(database)
    yield from _unreported(database)
    yield from _untold(database)
    yield from _restless(database)
    if before is not None:
        yield from _taken_back(before.database, database)
        yield from _asked_again(before, now)


def _lost(now: Evidence, workload: Workload) -> Iterator[str]:
    """Acknowledged means on disk."""
    database = now.database
    for operation in workload.operations:
        if operation.id not in now.acknowledged:
            continue
        match operation.kind:
            case "create":
                lost = operation.agent not in database.agents
            case "task":
                lost = operation.id not in database.tasks
            case "mail":
                lost = operation.id not in database.mails
            case "pause":
                lost = "resume" not in now.tried and database.agents[operation.agent].state != "paused"
            case "sleep":
                lost = not database.agents[operation.agent].is_asleep and not _has_woken(database, operation.agent)
            case _:
                lost = database.agents[operation.agent].state == "paused"
        if lost:
            yield f"{operation.id} was acknowledged and is lost"


def _has_woken(database: Database, agent: str) -> bool:
    return any(task.agent == agent and task.kind == "wake_up" for task in database.tasks.values())


def _misnumbered(database: Database) -> Iterator[str]:
    if [note.seq for note in database.notes] != list(range(1, len(database.notes) + 1)):
        yield "the notifications are not numbered from 1 without a gap"
    for sender in {mail.sender for mail in database.mails.values()}:
        sequence = [mail.sequence for mail in database.mails.values() if mail.sender == sender]
        if sequence != list(range(1, len(sequence) + 1)):
            yield f"the mails of {sender} are numbered {sequence}"


def _begun_unjournaled(now: Evidence) -> Iterator[str]:
    """Each attempt of a step is journaled before it begins."""
    for key, times in Counter(request.key for request in now.requests).items():
        step = now.database.steps.get(key)
        if step is None:
            yield f"step {key} was begun and is not in the journal"
        elif times > step.attempt:
            yield f"step {key} was begun {times} times, its journal says {step.attempt}"


def _out_of_order(database: Database) -> Iterator[str]:
    """No model is asked before the results that it is to be shown are on disk."""
    open_steps: dict[str, str] = {}
    for step in database.steps.values():
        if step.kind == "model" and step.task_id in open_steps:
            yield f"step {step.id} was begun while {open_steps[step.task_id]} was open"
        if step.state == "started":
            open_steps[step.task_id] = step.id
            if database.tasks[step.task_id].state in _ENDED:
                yield f"the task of step {step.id} has ended, the step has not"


def _half_done(database: Database) -> Iterator[str]:
    """What belongs together is on disk together."""
    handling = Counter(task.mail_id for task in database.tasks.values() if task.mail_id is not None)
    for mail_id, tasks in handling.items():
        if tasks != 1:
            yield f"mail {mail_id} has {tasks} tasks"
    for mail in database.mails.values():
        if answers_a_wait(database, mail):
            continue  # whoever waited for it has it
        if mail.recipient in database.agents and (mail.state in _UNDER_WAY) != (mail.id in handling):
            yield f"mail {mail.id} is {mail.state} and has {handling[mail.id]} tasks"
    sleepers = sorted(agent.id for agent in database.agents.values() if agent.sleep_until is not None)
    if sleepers != sorted(database.timers):
        yield f"the sleepers are {sleepers}, the timers are of {sorted(database.timers)}"
    for task_id in database.trials:
        if database.tasks[task_id].state != "running":
            yield f"task {task_id} is held back and {database.tasks[task_id].state}"


def answers_a_wait(database: Database, mail: Mail) -> bool:
    return mail.reply_to is not None and database.mails[mail.reply_to].awaited


def _half_waited(database: Database) -> Iterator[str]:
    """A call that waits, its row, and what it waits for are on disk together; so are its end and the answer."""
    waiting = {step.id for step in database.steps.values() if step.tool in WAITING_TOOLS and step.state == "started"}
    if waiting != set(database.waits):
        yield f"the calls {sorted(waiting)} wait, there are rows for {sorted(database.waits)}"
    told = Counter(note.about for note in database.notes if note.name == "switch.began")
    told -= Counter(note.about for note in database.notes if note.name == "switch.ended")
    asking = Counter(wait.id for wait in database.waits.values() if wait.kind == "reply")
    if told != asking:
        yield f"switches {sorted(told)} have begun and not ended, those that wait are {sorted(asking)}"
    for wait in database.waits.values():
        question = database.mails.get(wait.target)
        if wait.kind == "reply" and (question is None or not question.awaited or question.state == "replied"):
            yield f"call {wait.id} waits for a reply to {question}"


def _misheld(database: Database) -> Iterator[str]:
    """A lock is held by a task that runs, and has been taken as often as the log says."""
    taken = Counter(note.about for note in database.notes if note.name == "lock.acquired")
    if max((lock.token for lock in database.locks.values()), default=0) != sum(taken.values()):
        yield f"locks were told to be taken {sum(taken.values())} times, the tokens are {database.locks}"
    for lock in database.locks.values():
        if lock.task_id is not None and database.tasks[lock.task_id].state != "running":
            yield f"lock {lock.name} is held by a task that is {database.tasks[lock.task_id].state}"


def _unreported(database: Database) -> Iterator[str]:
    """The end of a delegated task and the mail with its result are on disk together."""
    for task in database.tasks.values():
        if task.kind == "delegated_task":
            reports = sum(mail.body.startswith(f"Task {task.id}:") for mail in database.mails.values())
            if reports != (task.state in _ENDED):
                yield f"task {task.id} is {task.state} and was reported {reports} times"


def _untold(database: Database) -> Iterator[str]:
    """Every change is in the log, once."""
    told = Counter((note.name, note.about) for note in database.notes)
    expected = Counter(("mail.sent", mail.id) for mail in database.mails.values())
    expected += Counter(("agent.created", agent) for agent in database.agents)
    expected += Counter(("async.task.completed", task.id) for task in database.tasks.values() if task.final is not None)
    expected += Counter(("step.finished", step.id) for step in database.steps.values() if step.state != "started")
    names = {name for name, _ in expected} | {"mail.sent", "async.task.completed", "step.finished"}
    actual = Counter({entry: times for entry, times in told.items() if entry[0] in names})
    for name, about in (expected - actual) + (actual - expected):
        yield f"{name} of {about} was told {told[name, about]} times, not {expected[name, about]}"


def _restless(database: Database) -> Iterator[str]:
    """No step of an agent begins between its pause and its resumption."""
    paused: set[str | None] = set()
    for note in database.notes:
        if note.name == "agent.paused":
            paused.add(note.agent)
        elif note.name == "agent.resumed":
            paused.discard(note.agent)
        elif note.name == "step.started" and note.agent in paused:
            yield f"step {note.about} of {note.agent} was begun while it was paused"


def _taken_back(before: Database, now: Database) -> Iterator[str]:
    """What was once on disk stays."""
    if now.notes[: len(before.notes)] != before.notes:
        yield "notifications have changed after they were told"
    for task in before.tasks.values():
        if task.id not in now.tasks:
            yield f"task {task.id} has vanished"
        elif task.state in _ENDED and now.tasks[task.id] != task:
            yield f"task {task.id} was {task.state} and has changed"
    for mail in before.mails.values():
        if mail.id not in now.mails:
            yield f"mail {mail.id} has vanished"
    for step in before.steps.values():
        if step.id not in now.steps or (step.state != "started" and now.steps[step.id] != step):
            yield f"step {step.id} was {step.state} and has changed or vanished"


def _asked_again(before: Evidence, now: Evidence) -> Iterator[str]:
    """A step whose end is on disk is never begun again."""
    times_before = Counter(request.key for request in before.requests)
    times_now = Counter(request.key for request in now.requests)
    for key, times in times_now.items():
        step = before.database.steps.get(key)
        if step is not None and step.state != "started" and times != times_before[key]:
            yield f"step {key} was {step.state} and was begun again"
