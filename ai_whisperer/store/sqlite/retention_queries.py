"""The queries of retention. Each reads a page at most, by a key that the tables have anyway."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from ai_whisperer.store import tables
from ai_whisperer.store.retention import PARTS, first_key
from ai_whisperer.store.tables import Kind, Row, Table

HORIZON: Final = "SELECT * FROM horizon WHERE session_id=?"

LOG_BOUNDS: Final = """
SELECT (SELECT min(seq) FROM notification WHERE session_id=?1),
  (SELECT max(seq) FROM notification WHERE session_id=?1)"""
NEXT_NOTIFICATION: Final = "SELECT seq, at FROM notification WHERE session_id=? AND seq>=? ORDER BY seq LIMIT 1"
AGED_SESSIONS: Final = """
SELECT id FROM session
WHERE (SELECT at FROM notification WHERE session_id=session.id ORDER BY seq LIMIT 1)<? ORDER BY id"""
FIRST_NOTIFICATION: Final = "SELECT min(seq) FROM notification WHERE session_id=?"

THREAD_STANDINGS: Final = """
SELECT thread.agent_id, thread.id, last_at, CASE WHEN count(*)=count(finished_at) THEN max(finished_at) END,
  count(finished_at) - count(erased_at), total(state IN ('dead', 'failed') AND dismissed_at IS NULL), is_erased
FROM (
  SELECT *, coalesce((
    SELECT erased_at IS NOT NULL FROM task INDEXED BY task_by_thread
    WHERE session_id=thread.session_id AND agent_id=thread.agent_id AND thread_id=thread.id
    ORDER BY arrival DESC LIMIT 1), 0) AS is_erased
  FROM thread WHERE session_id=?1 AND (agent_id, id)>(?2,?3) ORDER BY agent_id, id LIMIT ?4) AS thread
LEFT JOIN task INDEXED BY task_by_thread ON task.session_id=thread.session_id AND task.agent_id=thread.agent_id
  AND task.thread_id=thread.id AND last_at<?5 AND NOT is_erased
GROUP BY thread.agent_id, thread.id ORDER BY thread.agent_id, thread.id"""
"""Tasks are only looked at where the thread may go; all of them then, since any of them may have been retried."""

_OF_THREAD = """FROM task INDEXED BY task_by_thread
WHERE session_id=?1 AND agent_id=?2 AND thread_id=?3 AND arrival<=?4"""
_OF_AGENT = """FROM task INDEXED BY task_by_agent
WHERE session_id=?1 AND agent_id=?2 AND ?3='' AND arrival<=?4"""
_LEFT = "AND erased_at IS NULL AND state NOT IN ('queued', 'running')"
_PAGE = """SELECT id, (SELECT count(*) FROM step WHERE step.session_id=task.session_id AND step.task_id=task.id),
  arrival, rowid
{} {} AND (arrival, rowid)>(?5,?6) ORDER BY arrival, rowid LIMIT ?7"""
TASKS_LEFT_OF_THREAD: Final = _PAGE.format(_OF_THREAD, _LEFT)
TASKS_LEFT_OF_AGENT: Final = _PAGE.format(_OF_AGENT, _LEFT)
IDS_OF_THREAD: Final = f"SELECT id {_OF_THREAD}"

MAILS_AFTER: Final = """
SELECT sender, sequence, id, recipient, state, created_at, thread_id, erased_at IS NULL,
  (SELECT state FROM task WHERE task.session_id=mail.session_id AND task.id=mail.task_id AND task.dismissed_at IS NULL)
FROM mail INDEXED BY mail_by_sender WHERE session_id=? AND (sender, sequence)>(?,?) ORDER BY sender, sequence LIMIT ?"""
EVENTS_AFTER: Final = """
SELECT created_at, rowid, id, erased_at IS NULL FROM event INDEXED BY event_by_time
WHERE session_id=? AND (created_at, rowid)>(?,?) AND created_at<? ORDER BY created_at, rowid LIMIT ?"""
MESSAGES_AFTER: Final = """
SELECT room_id, number, created_at, erased_at IS NULL, id FROM message
WHERE session_id=? AND (room_id, number)>(?,?) ORDER BY room_id, number LIMIT ?"""


def _sizes_of(table: Table[Any]) -> str:
    """The keys of the rows and about how many bytes each takes: of texts the database knows that without reading."""
    key = ", ".join(table.key[1:])
    texts = [column.name for column in table.columns if column.kind in (Kind.TEXT, Kind.JSON, Kind.BYTES)]
    size = " + ".join(f"coalesce(octet_length({each}), 0)" for each in texts)
    numbers = f"{8 * (len(table.columns) - len(texts))}"
    if table is tables.ATTACHMENT:
        numbers += " + size"  # the content lies beside the database
    places = ", ".join("?" for _ in table.key[1:])
    page = f"WHERE session_id=? AND ({key})>({places}) ORDER BY {key} LIMIT ?"
    return f"SELECT {size} + {numbers}, {key} FROM {table.name} {page}"  # noqa: S608


@cache
def sizes() -> dict[str, list[tuple[str, Row]]]:
    """By what people call it: the query, and a key before all others."""
    return {name: [(_sizes_of(table), first_key(table)) for table in some] for name, some in PARTS.items()}
