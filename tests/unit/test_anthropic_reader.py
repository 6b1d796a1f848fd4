"""Answers of Anthropic's messages that are odd, or cut off."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.anthropic_reader import AnthropicReader
from ai_whisperer.models.base import AnswerAssembler
from ai_whisperer.models.bounded_body import Meter
from ai_whisperer.models.kept import kept_of

TEXT = {"type": "text", "text": "I add."}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def reader_of(*events: dict[str, Any], step_id: str = "t1.1") -> AnthropicReader:
    reader = AnthropicReader(name="anthropic:m", prefix="anthropic", step_id=step_id, meter=Meter())
    for event in events:
        list(reader.take(json.dumps(event).encode()))
    return reader


def read(*blocks: dict[str, Any], finish: str = "tool_use", step_id: str = "t1.1") -> Answer:
    reader = AnthropicReader(name="anthropic:m", prefix="anthropic", step_id=step_id, meter=Meter())
    assembler = AnswerAssembler(1 << 20)
    events = [{"type": "content_block_start", "index": at, "content_block": each} for at, each in enumerate(blocks)]
    for event in (*events, {"type": "message_delta", "delta": {"stop_reason": finish}}):
        for each in reader.take(json.dumps(event).encode()):
            assembler.take(each)
    for each in reader.ending():
        assembler.take(each)
    return assembler.answer()


def call(name: str, call_id: str | None = None, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def test_calls_without_ids_and_with_the_same_get_some_that_no_other_step_has() -> None:
    blocks = (THOUGHT, call("a"), call("b", "x"), call("c", "x"), call("d"))
    first, second = read(*blocks), read(*blocks, step_id="t1.2")
    ids = [each.call_id for answer in (first, second) for each in answer.tool_calls]
    assert ids[1] == ids[5] == "x"
    assert len(set(ids)) == 7
    kept = kept_of(first.provider, "anthropic")
    assert kept is not None
    assert [block["id"] for block in kept.blocks[1:]] == ids[:4]


def test_a_call_that_was_cut_off_before_its_arguments_is_none() -> None:
    blocks = (THOUGHT, TEXT, call("add", "x", a=1), call("wipe", "y"))
    answer = read(*blocks, finish="max_tokens")
    assert [each.name for each in answer.tool_calls] == ["add"]
    assert "y" not in [block.get("id") for block in msgspec.json.decode(answer.provider or "")["blocks"]]
    assert [each.name for each in read(*blocks).tool_calls] == ["add", "wipe"]


def test_nothing_is_held_of_blocks_that_are_unknown() -> None:
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "novelty"}}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "novelty_delta", "text": "x" * 1_000}}
    reader = reader_of(begun, piece, piece)
    assert reader._parts[0].pieces == []
    assert reader._meter.content == 0
