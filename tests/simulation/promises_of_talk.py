"""The promises about what goes back to those who asked: notices of failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ai_whisperer.core.tasks import base_id
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskRecord


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
        if mail.reply_to in due and mail.subject.startswith("Not done: "):
            assert mail.recipient == mails[mail.reply_to].sender, "somebody else was told of a failure"


def _is_quiet(mail: MailRecord) -> bool:
    return mail.origin is not None and mail.origin.quiet
