"""What has to hold in every universe: the promises of the runtime, and what users say of their own team."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from ai_whisperer.domain.mail import USER, MailState
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import StormError
from ai_whisperer.storm.log import Log, listed

_MARK = "__whisperer_invariant__"
_F = TypeVar("_F", bound=Callable[[Log], object])

_TASK_BEGUN_AGAIN = ("async.task.queued",)


class Invariant(Struct, frozen=True, kw_only=True):
    """A function over the log, which raises `AssertionError` if something does not hold. `where` is its file."""

    name: str
    function: Callable[[Log], object]
    where: str = ""


class Violation(Struct, frozen=True, kw_only=True):
    """An invariant that does not hold, and what it said."""

    invariant: str
    message: str


def invariant(function: _F) -> _F:
    """Say that a function of the `Log` has to hold in every universe: it asserts what it wants."""
    setattr(function, _MARK, True)
    return function


def invariants_in(names: Mapping[str, Any], *, where: str) -> list[Invariant]:
    """The functions among these that are marked with `@invariant`; raises `StormError` for one that cannot be asked."""
    found = []
    for name, value in names.items():
        if not (callable(value) and getattr(value, _MARK, False)):
            continue
        if inspect.iscoroutinefunction(value):
            raise StormError(
                f"{where}: the invariant '{name}' is a coroutine. Make it a plain function: `def {name}(log):`."
            )
        try:
            inspect.signature(value).bind(None)
        except (TypeError, ValueError):
            raise StormError(
                f"{where}: the invariant '{name}' has to take the log alone: `def {name}(log):`."
            ) from None
        found.append(Invariant(name=name, function=value, where=where))
    return found


def violations(invariants: Iterable[Invariant], log: Log) -> list[Violation]:
    """Those that do not hold. Raises `StormError` if one of them fails in another way than by an assertion."""
    found = []
    for each in (*BUILTIN, *invariants):
        try:
            returned = each.function(log)
        except AssertionError as error:
            found.append(Violation(invariant=each.name, message=_told(error)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also one that ends the program
            raise StormError(
                f"{each.where}: the invariant '{each.name}' failed itself, which says nothing about the team: "
                f"{type(error).__name__}: {error}{line_in(each.where, error)}. Only an AssertionError is a finding."
            ) from error
        else:
            if returned is not None:
                raise StormError(
                    f"{each.where}: the invariant '{each.name}' returned {returned!r:.60}, and nobody looks at that. "
                    "Let it assert what has to hold: `assert …`."
                )
    return found


def check_names(invariants: Sequence[Invariant]) -> None:
    """Raise `StormError` if two have one name: nobody could say which of them does not hold."""
    known = {each.name: "a built-in one" for each in BUILTIN}
    for each in invariants:
        if each.name in known:
            raise StormError(
                f"{each.where}: the invariant '{each.name}' has the same name as {known[each.name]}. Rename it."
            )
        known[each.name] = f"one in {each.where}"


def _told(error: AssertionError) -> str:
    """What the assertion says; without a message, the line that it is in."""
    if str(error):
        return str(error)
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ is not None else []
    code = frames[-1].code_context if frames else None
    return code[0].strip() if code else "an assertion without a message does not hold"


def line_in(file: str, error: BaseException) -> str:
    """The line of the file in which the error was raised, in brackets; nothing if it does not come from there."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f" (line {line})"


def _hold(holds: bool, message: str) -> None:  # noqa: FBT001 - what asserts as `assert` does, also without it
    if not holds:
        raise AssertionError(message)


def the_log_has_no_gaps(log: Log) -> None:
    numbers = [entry.seq for entry in log.entries]
    _hold(numbers == list(range(1, len(numbers) + 1)), "the numbers of the log have a gap")


def what_was_accepted_is_not_lost(log: Log) -> None:
    known = {task.id for task in log.tasks()}
    lost = [each for each in log.seen.accepted_tasks if each not in known]
    _hold(not lost, f"tasks were accepted, and there is nothing of them: {listed(lost)}")
    there = {mail.id for mail in log.mails()}
    lost = [each for each in log.seen.accepted_mails if each not in there]
    _hold(not lost, f"mails were accepted, and there is nothing of them: {listed(lost)}")


def every_task_ends_or_waits_for_something_named(log: Log) -> None:
    stuck = [
        f"{task.id} of {task.agent_id} ({task.state})"
        for task in log.tasks()
        if not task.state.ended and not log.waiting.get(task.agent_id)
    ]
    _hold(not stuck, f"tasks have no end, and nothing says what they wait for: {listed(stuck)}")


def every_mail_is_handled_or_waits_for_something_named(log: Log) -> None:
    left = [
        f"{mail.id} from {mail.sender} to {mail.recipient} ({mail.state})"
        for mail in log.mails()
        if mail.recipient != USER
        and mail.state in (MailState.QUEUED, MailState.DELIVERED)
        and not log.waiting.get(mail.recipient)
    ]
    _hold(not left, f"mails were never handled: {listed(left)}")


def what_has_ended_has_no_open_step(log: Log) -> None:
    left = [
        step.id
        for task in log.tasks()
        if task.state.ended
        for step in log.steps(task)
        if step.state is StepState.STARTED
    ]
    _hold(not left, f"tasks have ended, and steps of them have not: {listed(left)}")


def no_finished_step_is_repeated(log: Log) -> None:
    finished: dict[str, float] = {}
    for entry in log.entries:
        step_id = entry.params.get("stepId", "")
        if entry.name == "step.finished" and entry.params["state"] in (StepState.DONE, StepState.UNKNOWN):
            finished[step_id] = log.time_of(entry)
        elif entry.name == "step.started":
            _hold(step_id not in finished, f"{step_id} was begun again, though the log has its end")
        elif entry.name in _TASK_BEGUN_AGAIN and entry.params.get("again"):
            prefix = f"{entry.params['taskId']}."
            finished = {each: at for each, at in finished.items() if not each.startswith(prefix)}
    again = [each.step_id for each in log.seen.requests if each.at > finished.get(each.step_id, each.at)]
    _hold(not again, f"a model was asked again for what it had answered: {listed(again)}")


def no_effect_happens_twice(log: Log) -> None:
    """A function that may not be repeated runs once for a step, however often the process dies."""
    ran = Counter(each.step_id for each in log.seen.runs if not each.may_repeat)
    twice = [f"{run.tool} of {run.agent} ({run.step_id})" for run in log.seen.runs if ran[run.step_id] > 1]
    _hold(not twice, f"a tool that may not be repeated ran twice for one call: {listed(dict.fromkeys(twice))}")


def nothing_breaks_inside(log: Log) -> None:
    broken = list(log.seen.broken)
    broken += [
        f"{task.id}: {task.error.message}"
        for task in log.tasks()
        if task.error is not None and task.error.code == "internal"
    ]
    _hold(not broken, f"the runtime itself failed: {listed(broken)}")


BUILTIN: tuple[Invariant, ...] = tuple(
    Invariant(name=each.__name__, function=each, where="ai_whisperer")
    for each in (
        the_log_has_no_gaps,
        what_was_accepted_is_not_lost,
        every_task_ends_or_waits_for_something_named,
        every_mail_is_handled_or_waits_for_something_named,
        what_has_ended_has_no_open_step,
        no_finished_step_is_repeated,
        no_effect_happens_twice,
        nothing_breaks_inside,
    )
)
"""Those of the runtime, which hold for every team."""
