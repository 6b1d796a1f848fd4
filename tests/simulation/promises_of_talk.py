"""The promises about what goes back to those who asked: notices of failure, answers of people, messages to tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.tasks import base_id
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, TaskState
from tests.simulation.world import World


def check_notices(
    mails: Mapping[str, MailRecord], tasks: Mapping[str, TaskRecord], notes: Iterable[Notification]
) -> None:
    """Each failure of a mail that somebody wrote and nobody has answered is told its sender once, and no other."""
    due: Counter[str] = Counter()
    settled: set[str] = set()
    for note in notes:
        if note.name == "mail.state_changed" and note.params["state"] in ("replied", "archived"):
            settled.add(note.params["mailId"])
        elif note.name == "mail.state_changed" and note.params["state"] == "delivered":
            settled.discard(note.params["mailId"])  # one that was archived is taken up again
        elif note.name == "async.task.error":
            mail = mails.get(tasks[base_id(tasks[note.params["taskId"]])].mail_id or "")
            if mail is not None and not (mail.awaited or mail.id in settled or _is_quiet(mail)):
                due[mail.id] += 1
    sent = Counter(mail.reply_to for mail in mails.values() if mail.subject.startswith("Not done: "))
    assert not any(_is_quiet(mails[each]) for each in sent if each), "a notice was sent about a notice"
    assert sent == due, "a failure was told twice, or not at all"
    for mail in mails.values():
        if mail.reply_to is not None and mail.reply_to in due and mail.subject.startswith("Not done: "):
            assert mail.recipient == mails[mail.reply_to].sender, "somebody else was told of a failure"


async def check_questions(
    manager: AsyncAgentSessionManager, notes: Iterable[Notification], accepted: Mapping[str, int]
) -> None:
    """Each question to a person ends once, and an answer that was accepted is the result of its call."""
    told: dict[str, str] = {}
    for note in notes:
        if note.name == "question.asked":
            assert note.params["questionId"] not in told, "a person was asked twice"
            told[note.params["questionId"]] = "pending"
        elif note.name.startswith("question."):
            assert told[note.params["questionId"]] == "pending", "a question ended twice"
            told[note.params["questionId"]] = note.params.get("state", note.name.partition(".")[2])
    stored = {each.id: each for each in await manager.list_questions(state=None, limit=100_000)}
    assert {each.id: each.state for each in stored.values()} == told, "what was told of questions and is kept differ"
    assert "pending" not in told.values(), "a question never ended"
    assert all(told.get(each) == "answered" for each in accepted), "an accepted answer was lost"
    for question in stored.values():
        steps = await manager.list_steps(question.task_id)
        (result,) = [step.result for step in steps if step.id == question.id]
        assert result is not None
        if question.answer is not None:
            number = question.answer["number"]
            assert accepted.get(question.id, number) == number, "another answer was kept than was accepted"
            assert f'{{"number":{number}}}' in result.content, "an answer did not become the result of its call"
        assert result.is_error is (question.state == "withdrawn" or _is_late(question, result)), "an end is no result"


def check_steering(tasks: Mapping[str, TaskRecord], steps: Mapping[str, list[StepRecord]], world: World) -> None:
    """A message to a task at work is heard once: before the step that has it, or in its turn."""
    assert not world.heard_twice, "a message to a task at work was shown twice"
    said = Counter(each.task_id for journal in steps.values() for step in journal for each in step.said or ())
    for task in tasks.values():
        is_joined = task.state is TaskState.JOINED
        assert said[task.id] == is_joined, "what was said before a step and who has joined it differ"
        if not is_joined:
            continue
        host, _, number = (task.joined_step or "").rpartition(".")
        (step,) = [step for step in steps[host] if step.number == int(number)]
        assert [each.text for each in step.said or () if each.task_id == task.id] == [task.prompt]
        assert step.answer is not None, "a message counts as heard that no model has answered"
        assert step.id in world.heard[task.prompt], "a message counts as heard that no model was shown"
        assert (tasks[host].thread_id, tasks[host].agent_id) == (task.thread_id, task.agent_id)
        assert task.started_at is None, "a message that has joined a task ran by itself too"
        assert not steps[task.id], "a message that has joined a task ran by itself too"
    for task_id in world.steered:
        task = tasks[task_id]
        assert task.state.is_passed_on or task.started_at or task.error, "a message to a task at work was lost"


def _is_late(question: QuestionRecord, result: ToolResult) -> bool:
    """Whether the task ended together with the question, for want of time."""
    return question.state == "expired" and not result.content.startswith("No answer: nobody answered")


def _is_quiet(mail: MailRecord) -> bool:
    return mail.origin is not None and mail.origin.quiet
