"""What must be true in the end, when the session was killed, started again, and left to finish."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .evidence import Database, Evidence, Step
from .invariants import answers_a_wait
from .worker import AgentFigures
from .workload import REPEATABLE, USER, Mail, Workload, expected_of

_STUMBLES = "stumble"


def in_the_end(
    deaths: Sequence[Evidence],
    end: Evidence,
    workload: Workload,
    *,
    figures: Mapping[str, AgentFigures],
    set_aside: frozenset[str],
) -> Iterator[str]:
    """What is wrong in the end. `set_aside` are the tasks that must be dead letters; nothing else may be one."""
    database = end.database
    yield from _unfinished(database, set_aside)
    yield from _unhandled(database)
    yield from _not_as_expected(database, workload)
    yield from _repeated(deaths, end)
    yield from _effects(deaths, end, workload)
    yield from _miscounted(database, figures)
    unheard = {operation.id for operation in workload.operations} - end.acknowledged
    if unheard:
        yield f"never acknowledged: {sorted(unheard)}"


def _unfinished(database: Database, set_aside: frozenset[str]) -> Iterator[str]:
    for task in database.tasks.values():
        wanted = ("dead", None) if task.id in set_aside else ("completed", "All of it is done.")
        if (task.state, task.final) != wanted:
            yield f"task {task.id} of {task.agent} is {task.state} with {task.final!r}, not {wanted[0]}"
    for step in database.steps.values():
        if step.state == "started":
            yield f"step {step.id} is still open"
    for agent in database.agents.values():
        if agent.state != "idle" or agent.is_asleep:
            yield f"agent {agent.id} is {agent.state}"
    if database.timers or database.trials or database.waits:
        yield f"timers are left: {database.timers} {database.trials}, waits are left: {database.waits}"


def _unhandled(database: Database) -> Iterator[str]:
    for mail in database.mails.values():
        unanswered = "queued" if mail.recipient == USER else "read"
        replied = any(reply.reply_to == mail.id for reply in database.mails.values())
        if mail.state != ("replied" if replied else unanswered):
            yield f"mail {mail.id} from {mail.sender} to {mail.recipient} is {mail.state}"
        if answers_a_wait(database, mail):
            asking = database.steps[str(mail.reply_to).removesuffix("~mail")]
            if (asking.task_id, asking.state) != (mail.task_id, "done") or mail.id not in asking.content:
                yield f"answer {mail.id} is not the result of {asking}"
        elif mail.recipient != USER and (mail.task_id is None or database.tasks[mail.task_id].mail_id != mail.id):
            yield f"mail {mail.id} and task {mail.task_id} do not belong together"


def _not_as_expected(database: Database, workload: Workload) -> Iterator[str]:
    expected = expected_of(workload)
    tasks = Counter((task.agent, task.kind) for task in database.tasks.values())
    mails = Counter(
        Mail(mail.sender, mail.recipient, is_reply=mail.reply_to is not None, is_awaited=bool(mail.awaited))
        for mail in database.mails.values()
    )
    last_token = max((lock.token for lock in database.locks.values()), default=0)
    if last_token != sum(expected.locks.values()) or any(lock.name for lock in database.locks.values()):
        yield f"locks: {dict(expected.locks)} were to be taken and given back, they are {database.locks}"
    for what, wanted, found in (("tasks", expected.tasks, tasks), ("mails", expected.mails, mails)):
        if wanted != found:
            yield f"{what}: missing {dict(wanted - found)}, too many {dict(found - wanted)}"  # type: ignore[operator]
    prompts = Counter((task.agent, task.prompt) for task in database.tasks.values() if task.kind == "user_prompt")
    for (agent, prompt), times in prompts.items():
        if times != 1:
            yield f"{agent} was given {prompt!r} {times} times"


def _repeated(deaths: Sequence[Evidence], end: Evidence) -> Iterator[str]:
    """A step is begun once, and once more only for each death at which it was open."""
    for key, times in Counter(request.key for request in end.requests).items():
        step = end.database.steps.get(key)
        if step is None:
            continue  # reported as begun without a journal
        stumbles = step.kind == "model" and _STUMBLES in end.database.tasks[step.task_id].prompt
        allowed = 1 + _open_at(deaths, step) + stumbles
        if times > allowed:
            yield f"step {key} was begun {times} times, {allowed} at most were to be"


def _effects(deaths: Sequence[Evidence], end: Evidence, workload: Workload) -> Iterator[str]:
    """What tools did to the world, by the label that names each effect."""
    happened: dict[str, list[str]] = defaultdict(list)
    for request in end.requests:
        if request.label is not None:
            happened[request.label].append(request.key)
    steps: dict[str, list[Step]] = defaultdict(list)
    for step in end.database.steps.values():
        if step.label is not None:
            steps[step.label].append(step)
    for label, tool in expected_of(workload).effects.items():
        if len(steps[label]) != 1 or set(happened[label]) - {steps[label][0].id}:
            yield f"{tool} {label} has the steps {[step.id for step in steps[label]]} and happened as {happened[label]}"
        else:
            yield from _effect(deaths, steps[label][0], len(happened[label]))


def _effect(deaths: Sequence[Evidence], step: Step, times: int) -> Iterator[str]:
    was_open = _open_at(deaths, step) > 0
    may_repeat = step.tool in REPEATABLE
    if not may_repeat and times > 1:
        yield f"{step.tool} {step.label} happened {times} times"
    if step.state != ("unknown" if was_open and not may_repeat else "done"):
        yield f"{step.tool} {step.label} is {step.state}; it {'was' if was_open else 'was not'} under way at a death"
    if step.state == "done" and times == 0:
        yield f"{step.tool} {step.label} is done and never happened"


def _miscounted(database: Database, figures: Mapping[str, AgentFigures]) -> Iterator[str]:
    """A task has used what its answers cost, an agent what its tasks have used."""
    for task in database.tasks.values():
        cost = sum(step.tokens for step in database.steps.values() if step.task_id == task.id)
        if task.tokens != cost:
            yield f"task {task.id} has used {cost} tokens and counts {task.tokens}"
    for agent, told in figures.items():
        costs = [task.tokens for task in database.tasks.values() if task.agent == agent]
        if (told.tasks, told.tokens) != (len(costs), sum(costs)):
            yield (
                f"agent {agent} had {len(costs)} tasks with {sum(costs)} tokens, "
                f"and says {told.tasks} with {told.tokens}"
            )


def _open_at(deaths: Sequence[Evidence], step: Step) -> int:
    """At how many deaths the step was under way."""
    return sum(
        known is not None and known.state == "started"
        for known in (death.database.steps.get(step.id) for death in deaths)
    )
