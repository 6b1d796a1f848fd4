"""The named queries, beside the schema in `migrations/`. What they read stands in the order of the tables' columns.

`INDEXED BY` stands where few rows are wanted of many: SQLite does not know that an index of those few is better.
"""

from __future__ import annotations

from typing import Final

from ai_whisperer.store.tables import OF_A_SESSION

SESSION: Final = "SELECT * FROM session WHERE id=?"
SOME_SESSIONS: Final = "SELECT id FROM session ORDER BY created_at DESC LIMIT 20"
AGENTS_IN_SESSION: Final = "SELECT count(*) FROM agent WHERE session_id=?"
SESSIONS: Final = """
SELECT *, (SELECT count(*) FROM agent WHERE session_id=session.id) FROM session
WHERE owner=? ORDER BY created_at DESC, id DESC LIMIT ?"""
SESSIONS_AFTER: Final = """
SELECT *, (SELECT count(*) FROM agent WHERE session_id=session.id) FROM session
WHERE owner=? AND (created_at, id) < (?,?) ORDER BY created_at DESC, id DESC LIMIT ?"""
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
SELECT id FROM (SELECT id FROM with_agents UNION SELECT id FROM with_notifications)
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
HAS_ROWS: Final = {table: f"SELECT 1 FROM {table.name} WHERE session_id=? LIMIT 1" for table in OF_A_SESSION}  # noqa: S608
FREE_PAGES: Final = "PRAGMA freelist_count"
DATABASE_SIZE: Final = """
SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""

LIMITS: Final = "SELECT stated FROM limits WHERE session_id=?"

LINKS: Final = "SELECT kind, sender, recipient, count, last_at FROM link WHERE session_id=?"
AGENT_TOTALS: Final = "SELECT * FROM agent_total WHERE session_id=?"

LAST_SEQ: Final = "SELECT coalesce(max(seq), 0) FROM notification WHERE session_id=?"
HAS_MARKS: Final = """
SELECT 1 FROM erasure WHERE session_id=?1 UNION ALL SELECT 1 FROM horizon WHERE session_id=?1 AND NOT is_done LIMIT 1"""
ERASURES: Final = "SELECT * FROM erasure WHERE session_id=? ORDER BY agent_id, thread_id"
FORK: Final = "SELECT * FROM fork WHERE session_id=?"
FIRST_SEQ: Final = "SELECT first_seq FROM horizon WHERE session_id=?"
NOTIFICATION_AT: Final = "SELECT at FROM notification WHERE session_id=? AND seq=?"
LAST_AT: Final = "SELECT at FROM notification WHERE session_id=? ORDER BY seq DESC LIMIT 1"
NOTIFICATIONS_AFTER: Final = """
SELECT * FROM notification WHERE session_id=? AND seq>? ORDER BY seq LIMIT ?"""
_NAMING = """
SELECT * FROM notification
WHERE session_id=? AND seq>? AND seq<? AND (instr(told, ?) OR instr(params, ?)) ORDER BY seq{} LIMIT ?"""
NOTIFICATIONS_NAMING: Final = _NAMING.format("")
LAST_NOTIFICATIONS_NAMING: Final = _NAMING.format(" DESC")
NOTIFICATION_SIZES_AFTER: Final = """
SELECT octet_length(params) + coalesce(octet_length(told), 0) FROM notification
WHERE session_id=? AND seq>? ORDER BY seq LIMIT ?"""

SHAPES: Final = "SELECT * FROM shape"

AGENTS: Final = "SELECT * FROM agent WHERE session_id=? ORDER BY created_at, id"
TIMERS: Final = "SELECT * FROM timer WHERE session_id=? ORDER BY due_at, id"

WAITS: Final = "SELECT * FROM wait WHERE session_id=? ORDER BY arrival"
LOCKS: Final = "SELECT * FROM lock WHERE session_id=? ORDER BY name"
APPROVAL: Final = "SELECT * FROM approval WHERE session_id=? AND id=?"
ATTACHMENTS: Final = """
SELECT * FROM attachment WHERE session_id=? ORDER BY created_at DESC, owner DESC, number DESC LIMIT ?"""
ATTACHMENT: Final = "SELECT * FROM attachment WHERE session_id=? AND digest=? ORDER BY created_at DESC LIMIT 1"
ATTACHMENT_DIGESTS: Final = "SELECT DISTINCT digest FROM attachment WHERE session_id=?"
APPROVALS: Final = """
SELECT * FROM approval INDEXED BY approval_by_time
WHERE session_id=?1 AND (?2 IS NULL OR state=?2) ORDER BY requested_at DESC, id DESC LIMIT ?3"""
OPEN_APPROVALS: Final = """
SELECT approval.* FROM task INDEXED BY task_open CROSS JOIN approval INDEXED BY approval_of_task
ON approval.session_id=task.session_id AND approval.task_id=task.id
WHERE task.session_id=? AND task.state IN ('queued', 'running') AND approval.state IN ('pending', 'approved')
ORDER BY approval.requested_at, approval.id"""
QUESTION: Final = "SELECT * FROM question WHERE session_id=? AND id=?"
QUESTIONS: Final = """
SELECT * FROM question INDEXED BY question_by_time
WHERE session_id=?1 AND (?2 IS NULL OR state=?2) ORDER BY asked_at DESC, id DESC LIMIT ?3"""
OPEN_QUESTIONS: Final = """
SELECT question.* FROM wait CROSS JOIN question ON question.session_id=wait.session_id AND question.id=wait.id
WHERE wait.session_id=? AND wait.kind='question' ORDER BY wait.arrival"""
SCHEDULES: Final = "SELECT * FROM schedule WHERE session_id=? ORDER BY created_at, id"
ROOMS: Final = "SELECT * FROM room WHERE session_id=? ORDER BY created_at, id"
ROOMS_LAST_AT: Final = """
SELECT room.id, message.created_at FROM room CROSS JOIN message
ON message.session_id=room.session_id AND message.room_id=room.id AND message.number=room.last_number
WHERE room.session_id=?"""
EVENTS: Final = "SELECT * FROM event WHERE session_id=? ORDER BY created_at DESC, id DESC LIMIT ?"
EVENT: Final = "SELECT * FROM event WHERE session_id=? AND id=?"
MESSAGE: Final = "SELECT * FROM message WHERE session_id=? AND id=?"
MESSAGES_AFTER: Final = """
SELECT * FROM message WHERE session_id=? AND room_id=? AND number>? ORDER BY number LIMIT ?"""

TASK: Final = "SELECT * FROM task WHERE session_id=? AND id=?"
OPEN_TASKS: Final = """
SELECT * FROM task INDEXED BY task_open WHERE session_id=? AND state IN ('queued', 'running') ORDER BY arrival"""
DEAD_TASKS: Final = """
SELECT * FROM task INDEXED BY task_dead_letter
WHERE session_id=? AND state IN ('dead', 'failed') AND dismissed_at IS NULL ORDER BY arrival"""
DEAD_TASK_COUNTS: Final = """
SELECT agent_id, count(*) FROM task INDEXED BY task_dead_letter
WHERE session_id=? AND state IN ('dead', 'failed') AND dismissed_at IS NULL GROUP BY agent_id"""
TASKS: Final = "SELECT * FROM task WHERE session_id=? ORDER BY rowid DESC LIMIT ?"
TASKS_OF_AGENT: Final = """
SELECT * FROM task WHERE session_id=? AND agent_id=? ORDER BY arrival DESC, created_at DESC LIMIT ?"""
TASKS_OF_TREE: Final = """
SELECT * FROM task WHERE session_id=?1 AND id=?2
UNION ALL
SELECT * FROM task INDEXED BY task_by_root WHERE session_id=?1 AND root_id=?2 AND id<>?2
ORDER BY created_at, arrival, continuation"""
IDS_OF_TREE: Final = """
SELECT id FROM task INDEXED BY task_by_root WHERE session_id=?1 AND root_id=?2 AND id<>?2"""
FAILURES_SINCE: Final = """
SELECT agent_id, error->>'code', finished_at FROM task INDEXED BY task_dead
WHERE session_id=? AND state IN ('dead', 'failed') AND finished_at>? ORDER BY finished_at"""
_IS_KEPT = """erased_at IS NULL AND NOT EXISTS (SELECT 1 FROM erasure WHERE erasure.session_id=task.session_id
  AND erasure.agent_id=task.agent_id AND erasure.thread_id IN (task.thread_id, '') AND task.arrival<=erasure.last)"""
"""Whether the task is in no conversation that is gone."""
TASKS_OF_THREAD: Final = f"""
SELECT * FROM task WHERE session_id=? AND agent_id=? AND thread_id=? AND arrival>=? AND started_at>=? AND {_IS_KEPT}
ORDER BY started_at, arrival, continuation"""  # noqa: S608
THREADS_OF_AGENT: Final = """
SELECT id, tasks, first_at, last_at FROM thread WHERE session_id=? AND agent_id=? ORDER BY first_at, arrival, id"""
THREAD_OF_AGENT: Final = "SELECT 1 FROM thread WHERE session_id=? AND agent_id=? AND id=?"
LATEST_THREADS: Final = "SELECT id FROM thread WHERE session_id=? AND agent_id=? ORDER BY last_at DESC, id LIMIT ?"
COMPACTED_THREAD: Final = "SELECT * FROM compacted WHERE session_id=? AND agent_id=? AND thread_id=?"
STEPS: Final = "SELECT * FROM step WHERE session_id=? AND task_id=? AND number>? ORDER BY number"
OPEN_STEPS: Final = """
SELECT step.* FROM task INDEXED BY task_open CROSS JOIN step ON step.session_id=task.session_id AND step.task_id=task.id
WHERE task.session_id=? AND task.state IN ('queued', 'running') ORDER BY step.task_id, step.number"""
STEPS_OF_THREAD: Final = f"""
SELECT step.* FROM task CROSS JOIN step ON step.session_id=task.session_id AND step.task_id=task.id
WHERE task.session_id=? AND task.agent_id=? AND task.thread_id=? AND task.arrival>=? AND task.started_at>=?
  AND task.{_IS_KEPT}
ORDER BY step.task_id, step.number"""  # noqa: S608

MAIL: Final = "SELECT * FROM mail WHERE session_id=? AND id=?"
OPEN_MAIL: Final = """
SELECT * FROM mail WHERE session_id=?1 AND state IN ('queued', 'delivered') AND recipient<>'user'
UNION ALL
SELECT mail.* FROM task INDEXED BY task_open JOIN mail ON mail.session_id=task.session_id AND mail.id=task.mail_id
WHERE task.session_id=?1 AND task.state IN ('queued', 'running') AND mail.state='read'
ORDER BY arrival"""
_BEGINNING = "SELECT id FROM {} WHERE session_id=? AND id>=? AND id<? ORDER BY id LIMIT ?"
IDS_BEGINNING: Final = {
    **{kind: _BEGINNING.format(kind) for kind in ("task", "approval", "question", "schedule")},
    "mail": _BEGINNING.format("mail").replace("ORDER", "AND recipient='user' ORDER"),
    "room": _BEGINNING.format("room").replace("ORDER", "AND deleted_at IS NULL ORDER"),
}
DEAD_MAIL: Final = "SELECT * FROM mail WHERE session_id=? AND state='dead' ORDER BY arrival"
DEAD_MAIL_COUNT: Final = "SELECT count(*) FROM mail INDEXED BY mail_dead WHERE session_id=? AND state='dead'"
INBOX: Final = """
SELECT id, thread_id, sender, subject, priority, state, created_at, arrival FROM mail INDEXED BY mail_inbox
WHERE session_id=? AND recipient='user' AND state NOT IN ('archived', 'dead') ORDER BY arrival"""
MAILBOX: Final = """
SELECT * FROM mail WHERE session_id=? AND recipient=? ORDER BY arrival DESC LIMIT ?"""
SENT_MAIL: Final = """
SELECT * FROM mail WHERE session_id=? AND sender=? ORDER BY sequence DESC LIMIT ?"""
LAST_MAILS: Final = """
SELECT mail.sender, mail.sequence, mail.arrival
FROM (SELECT DISTINCT sender FROM link WHERE session_id=?1 AND kind='mail') AS link
CROSS JOIN mail INDEXED BY mail_by_sender ON mail.session_id=?1 AND mail.sender=link.sender
  AND mail.sequence=(SELECT max(sequence) FROM mail WHERE session_id=?1 AND sender=link.sender)"""
"""The last mail of each sender: it is the one that arrived last, too."""
LAST_ARRIVALS: Final = """
SELECT (SELECT max(arrival) FROM task INDEXED BY task_by_agent WHERE session_id=?1 AND agent_id=agent_total.agent_id)
FROM agent_total WHERE session_id=?1"""
"""The last task of each agent that has a total."""
