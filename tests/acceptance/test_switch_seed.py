"""The nine steps that are expected when Alice asks Patricia about the review of an RFC, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ai_whisperer import Notification
from ai_whisperer.domain.conversation import ToolTurn, UserTurn
from ai_whisperer.domain.mail import MailState
from tests.acceptance.workflow_stage import Outcome, calm


def told(name: str, **params: Any) -> Callable[[Notification], bool]:
    return lambda note: note.name == name and params.items() <= note.params.items()


def place_of(outcome: Outcome, what: Callable[[Notification], bool]) -> int:
    (note,) = (note for note in outcome.log if what(note))
    return note.seq


def test_the_nine_steps_of_a_switch_happen_in_their_order() -> None:
    outcome = calm("switch")
    question, reply = outcome.mails
    patricias = outcome.tasks_of("patricia")[0]
    steps = [
        # 1. Alice: "Send mail to Patricia asking about RFC review"
        told("async.task.queued", agentId="alice", summary="Send mail to Patricia asking about RFC review"),
        # 2. System: Executes send_mail tool
        told("mail.sent", sender="alice", recipient="patricia", mailId=question.id),
        # 3. System: Detects agent_switch required
        told("switch.began", agentId="alice", toAgent="patricia", mailId=question.id),
        # 4. System: Switches to Patricia
        told("async.task.started", agentId="patricia", taskId=patricias.id, mailId=question.id),
        # 5. Patricia: "You have mail from Alice"
        told("mail.state_changed", agentId="patricia", mailId=question.id, state=MailState.READ),
        # 6. Patricia: Checks mail and processes request
        told("step.finished", agentId="patricia", tool="check_mail"),
        # 7. Patricia: Sends reply
        told("mail.sent", sender="patricia", recipient="alice", replyTo=question.id),
        # 8. System: Switches back to Alice
        told("switch.ended", agentId="alice", outcome="answered", replyId=reply.id),
        # 9. Alice: "Patricia replied with..."
        told("async.task.completed", agentId="alice", taskId="ask-patricia"),
    ]
    places = [place_of(outcome, step) for step in steps]
    assert places == sorted(places)
    assert outcome.told == "Patricia replied with: The review is done; two questions are left open."


def test_patricia_is_told_of_the_mail_and_finds_it_with_check_mail() -> None:
    first, second, *_ = [request for request in calm("switch").requests if request.agent_id == "patricia"]
    (prompt,) = (turn.text for turn in first.turns if isinstance(turn, UserTurn))
    assert prompt.startswith("You have mail.")
    assert "From: alice" in prompt
    shown = second.turns[-1]
    assert isinstance(shown, ToolTurn)
    assert shown.call.name == "check_mail"
    assert "From: alice" in shown.content
    assert "How far is the review of the RFC?" in shown.content


def test_both_mails_are_kept_with_their_states() -> None:
    question, reply = calm("switch").mails
    assert (question.state, question.awaited) == (MailState.REPLIED, True)
    assert (reply.state, reply.reply_to) == (MailState.READ, question.id)


def test_alice_asks_nothing_of_her_model_while_she_waits() -> None:
    outcome = calm("switch")
    (began,), (ended,) = outcome.moments("switch.began"), outcome.moments("switch.ended")
    asked = outcome.moments("step.started", agentId="alice", kind="model")
    assert began < ended
    assert not [moment for moment in asked if began < moment < ended]
