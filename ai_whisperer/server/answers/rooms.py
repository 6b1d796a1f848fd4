"""Answers to `room.*`."""

from __future__ import annotations

from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.protocol import rooms
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@answers(rooms.CREATE_ROOM)
async def create_room(caller: Caller, params: rooms.CreateRoom) -> RoomRecord:
    session = await caller.session(params.session_id)
    return await session.create_room(
        params.members, title=params.title, hop_limit=params.hop_limit, room_id=params.room_id
    )


@answers(rooms.OPEN_CHAT)
async def open_chat(caller: Caller, params: rooms.OpenChat) -> RoomRecord:
    return await (await caller.session(params.session_id)).open_chat(params.agent_id)


@reads(rooms.LIST_ROOMS)
def list_rooms(session: AsyncAgentSessionManager, _: rooms.ListRooms) -> rooms.RoomList:
    return rooms.RoomList(session.list_rooms())


@reads(rooms.GET_ROOM)
def get_room(session: AsyncAgentSessionManager, params: rooms.GetRoom) -> RoomRecord:
    return session.get_room(params.room_id)


@answers(rooms.ADD_MEMBER)
async def add_member(caller: Caller, params: rooms.AddMember) -> RoomRecord:
    return await (await caller.session(params.session_id)).add_member(params.room_id, params.agent_id)


@answers(rooms.REMOVE_MEMBER)
async def remove_member(caller: Caller, params: rooms.RemoveMember) -> RoomRecord:
    return await (await caller.session(params.session_id)).remove_member(params.room_id, params.agent_id)


@answers(rooms.POST_MESSAGE)
async def post_message(caller: Caller, params: rooms.PostMessage) -> MessageRecord:
    session = await caller.session(params.session_id)
    return await session.post_message(params.room_id, params.text, message_id=params.message_id)


@reads(rooms.LIST_MESSAGES)
def list_messages(session: AsyncAgentSessionManager, params: rooms.ListMessages) -> rooms.MessageList:
    return rooms.MessageList(session.room_messages(params.room_id, after=params.after, limit=params.limit))
