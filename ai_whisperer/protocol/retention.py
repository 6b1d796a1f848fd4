"""The methods that keep a session small: pruning, erasing, and how large it is."""

from __future__ import annotations

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.retention import PruneReport, StorageReport
from ai_whisperer.domain.rooms import RoomRecord
from ai_whisperer.domain.tasks import ThreadSummary
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent


class Prune(InSession, frozen=True, kw_only=True):
    older_than: str | float = "30d"
    dry_run: bool = False


class DeleteThread(OfAgent, frozen=True, kw_only=True):
    thread_id: str


class DeleteRoom(InSession, frozen=True, kw_only=True):
    room_id: str


PRUNE = Method("session.prune", Prune, PruneReport, "prune", Effect.REPEATS)
GET_STORAGE = Method("session.storage", InSession, StorageReport, "storage", Effect.READS)
DELETE_THREAD = Method("task.deleteThread", DeleteThread, ThreadSummary, "delete_thread", Effect.REPEATS)
DELETE_ROOM = Method("room.delete", DeleteRoom, RoomRecord, "delete_room")
DELETE_AGENT = Method("async.deleteAgent", OfAgent, AgentStatus, "delete_agent")
