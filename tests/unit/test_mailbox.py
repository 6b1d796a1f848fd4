import pytest
from msgspec.structs import replace

from ai_whisperer.core.mailbox import as_prompt, check_mail_text, in_order, move
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.core.text import PieceMender, check_text, mended
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.errors import InvalidInputError, StateError, TooLargeError

MAIL = MailRecord(
    session_id="s",
    id="m1",
    thread_id="t",
    sender="alice",
    sequence=1,
    recipient="bob",
    subject="Plan",
    body="Please look.",
    arrival=1,
    cause="test",
)


def test_mail_goes_from_queued_over_delivered_and_read_to_replied() -> None:
    delivered = move(MAIL, MailState.DELIVERED, now=1.0, task_id="task")
    read = move(delivered, MailState.READ, now=2.0)
    replied = move(read, MailState.REPLIED, now=3.0)
    assert (replied.state, replied.task_id, replied.read_at) == (MailState.REPLIED, "task", 2.0)


def test_mail_that_goes_back_to_the_queue_has_no_task_any_more() -> None:
    delivered = move(MAIL, MailState.DELIVERED, now=1.0, task_id="task")
    assert move(delivered, MailState.QUEUED, now=2.0).task_id is None


def test_a_move_that_makes_no_sense_is_refused_with_what_would() -> None:
    archived = move(MAIL, MailState.ARCHIVED, now=1.0)
    with pytest.raises(StateError, match=r"archived and cannot become read.*delivered"):
        move(archived, MailState.READ, now=2.0)


@pytest.mark.parametrize(("subject", "body"), [("", ""), (" ", "\n")])
def test_empty_mail_is_refused(subject: str, body: str) -> None:
    with pytest.raises(InvalidInputError, match="neither a subject nor a body"):
        check_mail_text(subject, body, 100)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_mail_that_cannot_be_stored_is_refused_wherever_that_is(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^The subject has"):
        check_mail_text(text, "body", 100)
    with pytest.raises(InvalidInputError, match=r"^The mail body has"):
        check_mail_text("subject", text, 100)


def test_mail_may_have_no_subject_or_no_body_and_any_characters() -> None:
    for subject, body in (("", "body"), ("subject", ""), ("two\nlines", "body"), ("Grüße", "für dich"), ("s", "\n")):
        check_mail_text(subject, body, 100)


def test_oversized_mail_is_refused_with_the_numbers() -> None:
    with pytest.raises(TooLargeError, match="101 bytes, at most 100"):
        check_mail_text("s", "x" * 101, 100)
    with pytest.raises(TooLargeError, match="501 characters"):
        check_mail_text("s" * 501, "x", 1000)


def test_size_is_counted_in_bytes_not_in_characters() -> None:
    with pytest.raises(TooLargeError):
        check_text("prompt", "é" * 51, max_bytes=100)


def test_a_lone_surrogate_is_refused_since_it_cannot_be_stored() -> None:
    with pytest.raises(InvalidInputError, match="lone surrogate at character 1"):
        check_text("prompt", "a\ud800", max_bytes=100)


def test_nul_is_refused_from_people_and_mended_from_models_since_it_is_no_text_to_a_database() -> None:
    with pytest.raises(InvalidInputError, match="the character NUL at 1,"):
        check_text("prompt", "a\0b", max_bytes=100)
    assert mended("a\0é") == "a\ufffdé"
    mender = PieceMender()
    assert [mender.feed("a"), mender.feed("\0b"), mender.feed("é\0")] == ["a", "\ufffdb", "é\ufffd"]
    assert not can_be_id("a\0b")


def test_the_model_is_shown_who_wrote_and_how_to_answer() -> None:
    shown = as_prompt(replace(MAIL, reply_to="m0"))
    assert shown.startswith("You have mail.")
    for part in ("From: alice", "Subject: Plan", "In reply to: m0", "Please look.", "reply_mail with mail_id m1"):
        assert part in shown


def test_mail_is_ordered_by_priority_and_then_by_arrival() -> None:
    mails = [
        replace(MAIL, id="a", arrival=1, priority=Priority.LOW),
        replace(MAIL, id="b", arrival=3),
        replace(MAIL, id="c", arrival=2),
        replace(MAIL, id="d", arrival=4, priority=Priority.URGENT),
    ]
    assert [mail.id for mail in in_order(mails)] == ["d", "c", "b", "a"]
