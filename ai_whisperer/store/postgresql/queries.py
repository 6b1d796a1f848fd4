"""The named queries, beside the schema in `migrations/`: those of SQLite, with the same values in the same order."""

from __future__ import annotations

from typing import Any, Final

from ai_whisperer.store import tables
from ai_whisperer.store.postgresql.statements import names
from ai_whisperer.store.tables import OF_A_SESSION, Table


def columns_of(table: Table[Any], of: str = "", *, beside: bool = True) -> str:
    """The columns of a table as its reader wants them; without those `beside` a record if they are not wanted."""
    return names((each.name for each in table.columns[0 if beside else table.columns_beside :]), of)


_AGENTS_OF_SESSION = "(SELECT count(*) FROM agent WHERE session_id=session.id)"
_SESSIONS = f"SELECT {columns_of(tables.SESSION)}, {_AGENTS_OF_SESSION} FROM session"
_TASK, _MAIL, _STEP = columns_of(tables.TASK), columns_of(tables.MAIL), columns_of(tables.STEP)
_APPROVAL, _QUESTION = columns_of(tables.APPROVAL), columns_of(tables.QUESTION)
_ATTACHMENT, _MESSAGE = columns_of(tables.ATTACHMENT), columns_of(tables.MESSAGE)
_EVENT, _NOTIFICATION = columns_of(tables.EVENT), columns_of(tables.NOTIFICATION)

SESSION: Final = f"SELECT {columns_of(tables.SESSION)} FROM session WHERE id=$1"
SOME_SESSIONS: Final = "SELECT id FROM session ORDER BY created_at DESC LIMIT 20"
AGENTS_IN_SESSION: Final = "SELECT count(*) FROM agent WHERE session_id=$1"
SESSIONS: Final = f"{_SESSIONS} WHERE owner=$1 ORDER BY created_at DESC, id DESC LIMIT $2"
SESSIONS_AFTER: Final = f"""
{_SESSIONS} WHERE owner=$1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"""
UNLISTED_SESSIONS: Final = """
WITH RECURSIVE
  with_agents (id) AS (
    SELECT min(session_id) FROM agent
    UNION ALL
    SELECT (SELECT min(session_id) FROM agent WHERE session_id>with_agents.id) FROM with_agents WHERE id IS NOT NULL
  ),
  with_notifications (id) AS (
    SELECT min(session_id) FROM notification
    UNION ALL
    SELECT (SELECT min(session_id) FROM notification WHERE session_id>with_notifications.id)
    FROM with_notifications WHERE id IS NOT NULL
  )
SELECT id FROM (SELECT id FROM with_agents UNION SELECT id FROM with_notifications) AS found
WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM session) ORDER BY id"""
"""Leaps from one session to the next, so that it takes as long as there are sessions, not agents."""
SESSIONS_WITH_WORK: Final = """
SELECT session_id FROM task WHERE state IN ('queued', 'running')
UNION SELECT session_id FROM mail WHERE state IN ('queued', 'delivered') AND recipient<>'user'
UNION SELECT session_id FROM timer
UNION SELECT session_id FROM wait
UNION SELECT session_id FROM lock WHERE holder IS NOT NULL
UNION SELECT session_id FROM schedule WHERE NOT paused AND next_at IS NOT NULL
ORDER BY session_id"""
DELETIONS: Final = "SELECT session_id FROM deletion ORDER BY session_id"
HAS_ROWS: Final = {table: f'SELECT 1 FROM "{table.name}" WHERE session_id=$1 LIMIT 1' for table in OF_A_SESSION}

LIMITS: Final = "SELECT stated FROM limits WHERE session_id=$1"

LINKS: Final = f"SELECT {columns_of(tables.LINK, beside=False)} FROM link WHERE session_id=$1"
AGENT_TOTALS: Final = f"SELECT {columns_of(tables.AGENT_TOTAL)} FROM agent_total WHERE session_id=$1"

LAST_SEQ: Final = "SELECT coalesce(max(seq), 0) FROM notification WHERE session_id=$1"
HAS_MARKS: Final = """
SELECT 1 FROM erasure WHERE session_id=$1 UNION ALL SELECT 1 FROM horizon WHERE session_id=$1 AND NOT is_done LIMIT 1"""
FORK: Final = f"SELECT {columns_of(tables.FORK)} FROM fork WHERE session_id=$1"
ERASURES: Final = f"SELECT {columns_of(tables.ERASURE)} FROM erasure WHERE session_id=$1 ORDER BY agent_id, thread_id"
FIRST_SEQ: Final = "SELECT first_seq FROM horizon WHERE session_id=$1"
LAST_AT: Final = "SELECT at FROM notification WHERE session_id=$1 ORDER BY seq DESC LIMIT 1"
NOTIFICATIONS_AFTER: Final = f"""
SELECT {_NOTIFICATION} FROM notification WHERE session_id=$1 AND seq>$2 ORDER BY seq LIMIT $3"""
_NAMING = f"""
SELECT {_NOTIFICATION} FROM notification WHERE session_id=$1 AND seq>$2 AND seq<$3
  AND (position($4::bytea IN told)>0 OR position($5::text IN params)>0) ORDER BY seq{{}} LIMIT $6"""
NOTIFICATIONS_NAMING: Final = _NAMING.format("")
LAST_NOTIFICATIONS_NAMING: Final = _NAMING.format(" DESC")
NOTIFICATION_SIZES_AFTER: Final = """
SELECT octet_length(params) + coalesce(octet_length(told), 0) FROM notification
WHERE session_id=$1 AND seq>$2 ORDER BY seq LIMIT $3"""

SHAPES: Final = f"SELECT {columns_of(tables.SHAPE)} FROM shape"

AGENTS: Final = f"SELECT {columns_of(tables.AGENT)} FROM agent WHERE session_id=$1 ORDER BY created_at, id"
TIMERS: Final = f"SELECT {columns_of(tables.TIMER)} FROM timer WHERE session_id=$1 ORDER BY due_at, id"

WAITS: Final = f"SELECT {columns_of(tables.WAIT)} FROM wait WHERE session_id=$1 ORDER BY arrival"
LOCKS: Final = f"SELECT {columns_of(tables.LOCK)} FROM lock WHERE session_id=$1 ORDER BY name"
APPROVAL: Final = f"SELECT {_APPROVAL} FROM approval WHERE session_id=$1 AND id=$2"
ATTACHMENTS: Final = f"""
SELECT {_ATTACHMENT} FROM attachment
WHERE session_id=$1 ORDER BY created_at DESC, owner DESC, number DESC LIMIT $2"""
ATTACHMENT: Final = f"""
SELECT {_ATTACHMENT} FROM attachment WHERE session_id=$1 AND digest=$2 ORDER BY created_at DESC LIMIT 1"""
ATTACHMENT_DIGESTS: Final = "SELECT DISTINCT digest FROM attachment WHERE session_id=$1"
APPROVALS: Final = f"""
SELECT {_APPROVAL} FROM approval
WHERE session_id=$1 AND ($2::text IS NULL OR state=$2) ORDER BY requested_at DESC, id DESC LIMIT $3"""
OPEN_APPROVALS: Final = f"""
SELECT {columns_of(tables.APPROVAL, "approval.")} FROM task JOIN approval
ON approval.session_id=task.session_id AND approval.task_id=task.id
WHERE task.session_id=$1 AND task.state IN ('queued', 'running') AND approval.state IN ('pending', 'approved')
ORDER BY approval.requested_at, approval.id"""
QUESTION: Final = f"SELECT {_QUESTION} FROM question WHERE session_id=$1 AND id=$2"
QUESTIONS: Final = f"""
SELECT {_QUESTION} FROM question
WHERE session_id=$1 AND ($2::text IS NULL OR state=$2) ORDER BY asked_at DESC, id DESC LIMIT $3"""
OPEN_QUESTIONS: Final = f"""
SELECT {columns_of(tables.QUESTION, "question.")} FROM wait JOIN question
ON question.session_id=wait.session_id AND question.id=wait.id
WHERE wait.session_id=$1 AND wait.kind='question' ORDER BY wait.arrival"""
SCHEDULES: Final = f"SELECT {columns_of(tables.SCHEDULE)} FROM schedule WHERE session_id=$1 ORDER BY created_at, id"
ROOMS: Final = f"SELECT {columns_of(tables.ROOM)} FROM room WHERE session_id=$1 ORDER BY created_at, id"
ROOMS_LAST_AT: Final = """
SELECT room.id, message.created_at FROM room JOIN message
ON message.session_id=room.session_id AND message.room_id=room.id AND message.number=room.last_number
WHERE room.session_id=$1"""
EVENTS: Final = f"SELECT {_EVENT} FROM event WHERE session_id=$1 ORDER BY created_at DESC, id DESC LIMIT $2"
EVENT: Final = f"SELECT {_EVENT} FROM event WHERE session_id=$1 AND id=$2"
MESSAGE: Final = f"SELECT {_MESSAGE} FROM message WHERE session_id=$1 AND id=$2"
MESSAGES_AFTER: Final = f"""
SELECT {_MESSAGE} FROM message WHERE session_id=$1 AND room_id=$2 AND number>$3 ORDER BY number LIMIT $4"""

TASK: Final = f"SELECT {_TASK} FROM task WHERE session_id=$1 AND id=$2"
OPEN_TASKS: Final = f"""
SELECT {_TASK} FROM task WHERE session_id=$1 AND state IN ('queued', 'running') ORDER BY arrival"""
DEAD_TASKS: Final = f"""
SELECT {_TASK} FROM task
WHERE session_id=$1 AND state IN ('dead', 'failed') AND dismissed_at IS NULL ORDER BY arrival"""
DEAD_TASK_COUNTS: Final = """
SELECT agent_id, count(*) FROM task
WHERE session_id=$1 AND state IN ('dead', 'failed') AND dismissed_at IS NULL GROUP BY agent_id"""
TASKS: Final = f'SELECT {_TASK} FROM task WHERE session_id=$1 ORDER BY "row" DESC LIMIT $2'
TASKS_OF_AGENT: Final = f"""
SELECT {_TASK} FROM task WHERE session_id=$1 AND agent_id=$2 ORDER BY arrival DESC, created_at DESC LIMIT $3"""
TASKS_OF_TREE: Final = f"""
SELECT {_TASK} FROM task WHERE session_id=$1 AND id=$2
UNION ALL
SELECT {_TASK} FROM task WHERE session_id=$1 AND root_id=$2 AND id<>$2
ORDER BY created_at, arrival, continuation"""
IDS_OF_TREE: Final = "SELECT id FROM task WHERE session_id=$1 AND root_id=$2 AND id<>$2"
FAILURES_SINCE: Final = """
SELECT agent_id, error::json->>'code', finished_at FROM task
WHERE session_id=$1 AND state IN ('dead', 'failed') AND finished_at>$2 ORDER BY finished_at"""
_IS_KEPT = """erased_at IS NULL AND NOT EXISTS (SELECT 1 FROM erasure WHERE erasure.session_id=task.session_id
  AND erasure.agent_id=task.agent_id AND erasure.thread_id IN (task.thread_id, '') AND task.arrival<=erasure.last)"""
"""Whether the task is in no conversation that is gone."""
TASKS_OF_THREAD: Final = f"""
SELECT {_TASK} FROM task
WHERE session_id=$1 AND agent_id=$2 AND thread_id=$3 AND arrival>=$4 AND started_at>=$5 AND {_IS_KEPT}
ORDER BY started_at, arrival, continuation"""
THREADS_OF_AGENT: Final = """
SELECT id, tasks, first_at, last_at FROM thread WHERE session_id=$1 AND agent_id=$2 ORDER BY first_at, arrival, id"""
THREAD_OF_AGENT: Final = "SELECT 1 FROM thread WHERE session_id=$1 AND agent_id=$2 AND id=$3"
LATEST_THREADS: Final = """
SELECT id FROM thread WHERE session_id=$1 AND agent_id=$2 ORDER BY last_at DESC, id LIMIT $3"""
COMPACTED_THREAD: Final = f"""
SELECT {columns_of(tables.COMPACTED)} FROM compacted WHERE session_id=$1 AND agent_id=$2 AND thread_id=$3"""
STEPS: Final = f"SELECT {_STEP} FROM step WHERE session_id=$1 AND task_id=$2 AND number>$3 ORDER BY number"
OPEN_STEPS: Final = f"""
SELECT {columns_of(tables.STEP, "step.")} FROM task JOIN step
ON step.session_id=task.session_id AND step.task_id=task.id
WHERE task.session_id=$1 AND task.state IN ('queued', 'running') ORDER BY step.task_id, step.number"""
STEPS_OF_THREAD: Final = f"""
SELECT {columns_of(tables.STEP, "step.")} FROM task JOIN step
ON step.session_id=task.session_id AND step.task_id=task.id
WHERE task.session_id=$1 AND task.agent_id=$2 AND task.thread_id=$3 AND task.arrival>=$4 AND task.started_at>=$5
  AND task.{_IS_KEPT}
ORDER BY step.task_id, step.number"""

MAIL: Final = f"SELECT {_MAIL} FROM mail WHERE session_id=$1 AND id=$2"
OPEN_MAIL: Final = f"""
SELECT {_MAIL} FROM mail WHERE session_id=$1 AND state IN ('queued', 'delivered') AND recipient<>'user'
UNION ALL
SELECT {columns_of(tables.MAIL, "mail.")} FROM task JOIN mail
ON mail.session_id=task.session_id AND mail.id=task.mail_id
WHERE task.session_id=$1 AND task.state IN ('queued', 'running') AND mail.state='read'
ORDER BY arrival"""
_BEGINNING = "SELECT id FROM {} WHERE session_id=$1 AND id>=$2 AND id<$3 ORDER BY id LIMIT $4"
IDS_BEGINNING: Final = {
    **{kind: _BEGINNING.format(kind) for kind in ("task", "approval", "question", "schedule")},
    "mail": _BEGINNING.format("mail").replace("ORDER", "AND recipient='user' ORDER"),
    "room": _BEGINNING.format("room").replace("ORDER", "AND deleted_at IS NULL ORDER"),
}
DEAD_MAIL: Final = f"SELECT {_MAIL} FROM mail WHERE session_id=$1 AND state='dead' ORDER BY arrival"
DEAD_MAIL_COUNT: Final = "SELECT count(*) FROM mail WHERE session_id=$1 AND state='dead'"
INBOX: Final = """
SELECT id, thread_id, sender, subject, priority, state, created_at, arrival FROM mail
WHERE session_id=$1 AND recipient='user' AND state NOT IN ('archived', 'dead') ORDER BY arrival"""
MAILBOX: Final = f"SELECT {_MAIL} FROM mail WHERE session_id=$1 AND recipient=$2 ORDER BY arrival DESC LIMIT $3"
SENT_MAIL: Final = f"SELECT {_MAIL} FROM mail WHERE session_id=$1 AND sender=$2 ORDER BY sequence DESC LIMIT $3"
LAST_MAILS: Final = """
SELECT link.sender, last.sequence, last.arrival
FROM (SELECT DISTINCT sender FROM link WHERE session_id=$1 AND kind='mail') AS link
CROSS JOIN LATERAL (
  SELECT sequence, arrival FROM mail
  WHERE mail.session_id=$1 AND mail.sender=link.sender ORDER BY sequence DESC LIMIT 1) AS last"""
"""The last mail of each sender: it is the one that arrived last, too."""
LAST_ARRIVALS: Final = """
SELECT (SELECT max(arrival) FROM task WHERE session_id=$1 AND agent_id=agent_total.agent_id)
FROM agent_total WHERE session_id=$1"""
"""The last task of each agent that has a total."""
