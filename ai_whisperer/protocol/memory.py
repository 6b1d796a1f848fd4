"""The methods `memory.*`: what agents keep in mind."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.memory import MemoryFile, MemoryText
from ai_whisperer.protocol.method import Effect, Method, OfAgent


class MemoryFiles(msgspec.Struct, frozen=True):
    """The files of a memory, by path."""

    files: list[MemoryFile]


class ReadMemory(OfAgent, frozen=True, kw_only=True):
    path: str


LIST_MEMORY = Method("memory.list", OfAgent, MemoryFiles, "list_memory", Effect.READS)
READ_MEMORY = Method("memory.read", ReadMemory, MemoryText, "read_memory", Effect.READS)
