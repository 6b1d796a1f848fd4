"""Many mails in one call: all of them or none, each once."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, MailDraft
from ai_whisperer.core.mailbox import MAX_MAILS
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.errors import (
    DuplicateIdError,
    InvalidInputError,
    QueueFullError,
    TooLargeError,
    UnknownRecipientError,
)
from tests.simulation.stage import play, until


def drafts(*recipients: str) -> list[MailDraft]:
    return [MailDraft(to=to, subject=f"For {to}", body=f"number {number}") for number, to in enumerate(recipients)]


async def two_agents(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("ada", {"limits": {"max_queue_length": 3, "max_mail_bytes": 100}}, auto_start=False)
    await manager.create_agent("bob", auto_start=False)


async def counts(manager: AsyncAgentSessionManager) -> list[int]:
    return [len(await manager.mailbox(name)) for name in ("ada", "bob")]


def test_they_are_in_the_mailboxes_in_the_order_in_which_they_were_given() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        given = [*drafts("ada", "Bob", "ada"), MailDraft(to="bob", subject="!", body="", priority=Priority.URGENT)]
        sent = await manager.send_mails(given)
        assert [(mail.recipient, mail.body, mail.sender) for mail in sent] == [
            ("ada", "number 0", "user"),
            ("bob", "number 1", "user"),
            ("ada", "number 2", "user"),
            ("bob", "", "user"),
        ]
        assert [mail.sequence for mail in sent] == [1, 2, 3, 4]
        assert sent[3].priority is Priority.URGENT
        assert [*reversed(await manager.mailbox("ada"))] == [sent[0], sent[2]]

    play(scenario)


def test_they_are_one_commit_and_each_is_told_of() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        sent = await manager.send_mails(drafts("ada", "bob", "bob"))
        told = [note for note in await manager.notifications() if note.name == "mail.sent"]
        assert [note.params["mailId"] for note in told] == [mail.id for mail in sent]
        assert len({note.at for note in told}) == 1

    play(scenario)


def test_each_becomes_a_task_of_its_agent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.create_agent("bob")
        sent = await manager.send_mails(drafts("ada", "bob", "ada"))
        await until(lambda: not any(status.queue_size or status.running_tasks for status in manager.list_agents()))
        tasks = await manager.list_tasks()
        assert {task.mail_id for task in tasks} == {mail.id for mail in sent}

    play(scenario)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (MailDraft(to="cyd", subject="s", body="b"), UnknownRecipientError),
        (MailDraft(to="user", subject="s", body="b"), InvalidInputError),
        (MailDraft(to="ada", subject="s", body="x" * 101), TooLargeError),
        (MailDraft(to="ada", subject="", body=" "), InvalidInputError),
        (MailDraft(to="ada", subject="s", body="b", thread_id="~"), InvalidInputError),
        (MailDraft(to="ada", subject="s", body="b", mail_id=""), InvalidInputError),
        (MailDraft(to="ada", subject="s", body="b", priority="soon"), InvalidInputError),  # type: ignore[arg-type]
        ("ada", InvalidInputError),
    ],
)
def test_if_one_cannot_be_sent_none_is_and_the_error_says_which(bad: MailDraft, error: type[Exception]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        with pytest.raises(error, match=r"^None of the 3 mails was sent, for the 3\. cannot be: "):
            await manager.send_mails([*drafts("bob", "ada"), bad])
        assert await counts(manager) == [0, 0]
        (next_one,) = await manager.send_mails(drafts("bob"))
        assert next_one.sequence == 1

    play(scenario)


def test_those_before_count_when_the_queue_is_looked_at() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        with pytest.raises(QueueFullError, match=r"the 5\. cannot be"):
            await manager.send_mails(drafts("ada", "ada", "bob", "ada", "ada"))
        assert await counts(manager) == [0, 0]
        await manager.send_mails(drafts("ada", "ada", "bob", "ada"))
        assert await counts(manager) == [3, 1]

    play(scenario)


def test_no_more_than_the_limit_go_at_once_and_none_is_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        with pytest.raises(InvalidInputError, match="1,001 mails are too many"):
            await manager.send_mails(drafts(*["bob"] * (MAX_MAILS + 1)))
        assert await manager.send_mails([]) == []
        assert await counts(manager) == [0, 0]

    play(scenario)


def test_under_their_ids_they_are_sent_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        given = [replace(draft, mail_id=f"m-{at}") for at, draft in enumerate(drafts("ada", "bob"))]
        first, again = await asyncio.gather(manager.send_mails(given), manager.send_mails(given))
        assert [mail.id for mail in first] == [mail.id for mail in again] == ["m-0", "m-1"]
        more = await manager.send_mails([given[1], replace(given[0], mail_id="m-2")])
        assert [mail.id for mail in more] == ["m-1", "m-2"]
        assert await counts(manager) == [2, 1]
        single = await manager.send_mail("ada", given[0].subject, given[0].body, mail_id="m-0")
        assert single.id == "m-0"

    play(scenario)


def test_an_id_that_stands_for_another_mail_lets_none_be_sent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        await manager.send_mail("ada", "Other", "text", mail_id="m")
        with pytest.raises(DuplicateIdError):
            await manager.send_mails([*drafts("bob"), MailDraft(to="ada", subject="s", body="b", mail_id="m")])
        twice = [MailDraft(to="bob", subject="s", body=body, mail_id="n") for body in ("a", "b")]
        with pytest.raises(InvalidInputError, match="given to several mails"):
            await manager.send_mails(twice)
        assert await counts(manager) == [1, 0]

    play(scenario)
