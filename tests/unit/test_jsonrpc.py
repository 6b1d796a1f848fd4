"""JSON-RPC 2.0 without I/O: what becomes a call, what is refused with which number, how answers look."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_whisperer.errors import (
    DuplicateIdError,
    ModelRateLimitError,
    StoreFullError,
    TooLargeError,
    TooManyRequestsError,
    UnknownAgentError,
    WhispererError,
)
from ai_whisperer.protocol import jsonrpc
from ai_whisperer.protocol.agents import SEND_TASK
from ai_whisperer.protocol.catalog import METHODS, method_named
from ai_whisperer.protocol.errors import from_rpc, to_rpc
from ai_whisperer.protocol.jsonrpc import Call, Frame, Refusal, RpcError


def read(data: str | bytes, *, max_depth: int = 64, max_batch: int = 100) -> Frame:
    return jsonrpc.read_frame(data, max_depth=max_depth, max_batch=max_batch)


def only_call(data: str | bytes) -> Call:
    (entry,) = read(data).entries
    assert isinstance(entry, Call), entry
    return entry


def only_refusal(data: str | bytes, **limits: int) -> Refusal:
    frame = read(data, **limits)
    assert not frame.is_batch
    (entry,) = frame.entries
    assert isinstance(entry, Refusal), entry
    return entry


def test_a_request_has_a_method_params_and_an_id() -> None:
    call = only_call('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}')
    assert (call.method, bytes(call.params), call.request_id) == ("subtract", b"[42, 23]", 1)
    named = only_call('{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42}, "id": 3}')
    assert bytes(named.params) == b'{"minuend": 42}'


def test_a_request_may_have_no_params() -> None:
    call = only_call('{"jsonrpc": "2.0", "method": "get_data", "id": "9"}')
    assert (bytes(call.params), call.request_id) == (b"", "9")


def test_a_request_without_an_id_is_a_notification_and_is_not_answered() -> None:
    assert not only_call('{"jsonrpc": "2.0", "method": "update", "params": [1, 2, 3]}').is_answered
    assert only_call('{"jsonrpc": "2.0", "method": "foobar", "id": null}').is_answered


@pytest.mark.parametrize(
    ("written", "request_id"),
    [
        ("null", None),
        ("0", 0),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("9007199254740993", 9007199254740993),
        ("9" * 40, int("9" * 40)),
        ('""', ""),
        ('"\\ud83d\\ude00 é\\u0000"', "😀 é\x00"),
    ],
)
def test_an_id_comes_back_as_it_was(written: str, request_id: Any) -> None:
    call = only_call(f'{{"jsonrpc": "2.0", "method": "m", "id": {written}}}')
    assert call.request_id == request_id
    for frame in (
        jsonrpc.result_frame(call.answered_id, b"19"),
        jsonrpc.error_frame(call.answered_id, RpcError(-32000, "No.")),
    ):
        answer = json.loads(frame)
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)


@pytest.mark.parametrize("written", ["true", "[]", "{}", "[1]", "1e999", "9" * 5000])
def test_what_cannot_be_an_id_is_an_invalid_request_without_one(written: str) -> None:
    refusal = only_refusal(f'{{"jsonrpc": "2.0", "method": "m", "id": {written}}}')
    assert (refusal.error.code, refusal.request_id) == (jsonrpc.INVALID_REQUEST, None)


@pytest.mark.parametrize(
    "data",
    [
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]',
        "",
        "  \n",
        "{",
        "[",
        "nul",
        "\x00",
        "\ufeff{}",
        '{"jsonrpc": "2.0", "method": "m", "id": 1} {}',
        '{"jsonrpc": "2.0", "method": "m", "id": 1,}',
        "[1,]",
        '{"jsonrpc": "2.0", "method": "m", "params": [NaN], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": [Infinity], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": [-Infinity], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": [01], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": ["\\ud800"], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": ["\\udc00\\ud800"], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m", "params": ["\ud800"], "id": 1}',
        '{"jsonrpc": "2.0", "method": "m\ud800", "id": 1}',
        b'{"jsonrpc": "2.0", "method": "m", "params": ["\xff"], "id": 1}',
        b'{"jsonrpc": "2.0", "method": "\xed\xa0\x80", "id": 1}',
        '{"jsonrpc": "2.0", "method": 5, "id": 1, no json',
        '{"jsonrpc": "2.0", "id": true, "method": "m", "params": [',
    ],
)
def test_what_is_no_json_is_a_parse_error_without_an_id(data: str | bytes) -> None:
    refusal = only_refusal(data)
    assert (refusal.error.code, refusal.request_id) == (jsonrpc.PARSE_ERROR, None)
    assert "not valid JSON" in refusal.error.message or "UTF-8" in refusal.error.message


@pytest.mark.parametrize(
    ("data", "request_id"),
    [
        ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', None),
        ('{"jsonrpc": "2.0", "method": 1, "id": 7}', 7),
        ('{"jsonrpc": "2.0", "id": "x"}', "x"),
        ('{"jsonrpc": "2.0", "id": 1.5, "result": 19}', 1.5),
        ('{"jsonrpc": "2.0", "method": "m", "params": "bar", "id": 7}', 7),
        ('{"jsonrpc": "2.0", "method": "m", "params": null, "id": 7}', 7),
        ('{"jsonrpc": "2.0", "method": "m", "params": 5}', None),
        ('{"jsonrpc": "1.0", "method": "m", "params": {}, "id": 7}', 7),
        ('{"jsonrpc": 2.0, "method": "m", "params": {}, "id": 7}', 7),
        ('{"jsonrpc": null, "method": "m", "params": {}}', None),
        ('{"method": "m", "params": {}, "id": 7}', 7),
        ('{"method": "m", "params": []}', None),
        ('{"method": "m"}', None),
        ("{}", None),
        ("1", None),
        ('"text"', None),
        ("null", None),
        ("true", None),
    ],
)
def test_json_that_is_no_request_is_an_invalid_request(data: str, request_id: Any) -> None:
    refusal = only_refusal(data)
    assert refusal.error.code == jsonrpc.INVALID_REQUEST
    assert refusal.request_id == request_id


def test_the_bare_form_of_the_guide_is_taken_and_answered() -> None:
    call = only_call('{"method": "async.getAgentStates", "params": {"sessionId": "session-123"}}')
    assert call.method == "async.getAgentStates"
    assert call.is_answered
    assert call.answered_id is None


def test_of_a_key_that_is_there_twice_the_later_one_counts() -> None:
    call = only_call('{"jsonrpc": "2.0", "method": "a", "method": "b", "id": 1, "id": 2, "params": [], "params": {}}')
    assert (call.method, call.request_id, bytes(call.params)) == ("b", 2, b"{}")


def test_keys_that_nobody_knows_are_passed_over() -> None:
    assert only_call('{"jsonrpc": "2.0", "method": "m", "id": 1, "meta": {"trace": [1]}}').request_id == 1


def test_a_batch_keeps_its_order_and_each_entry_is_judged_by_itself() -> None:
    frame = read(
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
        ' {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},'
        ' {"foo": "boo"}, 1, [{"jsonrpc": "2.0", "method": "nested", "id": 5}],'
        ' {"jsonrpc": "2.0", "method": "get_data", "id": "9"}]'
    )
    assert frame.is_batch
    assert [type(entry) for entry in frame.entries] == [Call, Call, Refusal, Refusal, Refusal, Call]
    assert {entry.error.code for entry in frame.entries if isinstance(entry, Refusal)} == {jsonrpc.INVALID_REQUEST}
    calls = [entry for entry in frame.entries if isinstance(entry, Call)]
    assert [(call.method, call.is_answered) for call in calls] == [
        ("sum", True),
        ("notify_hello", False),
        ("get_data", True),
    ]


def test_a_batch_of_what_is_no_request_has_an_answer_for_each() -> None:
    frame = read("[1,2,3]")
    assert frame.is_batch
    assert len(frame.entries) == 3


def test_an_empty_batch_is_one_invalid_request() -> None:
    assert only_refusal(" [ ]").error.code == jsonrpc.INVALID_REQUEST


def test_a_batch_that_is_too_long_is_refused_as_a_whole() -> None:
    assert only_refusal("[1,2,3]", max_batch=2).error.message == "The batch has 3 requests. At most 2 are taken."
    assert len(read("[1,2]", max_batch=2).entries) == 2


def nested(depth: int) -> str:
    return '{"jsonrpc":"2.0","id":1,"method":"m","params":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


def test_a_frame_may_be_nested_so_deep_and_no_deeper() -> None:
    assert isinstance(read(nested(64)).entries[0], Call)
    refusal = only_refusal(nested(65))
    assert refusal.error.code == jsonrpc.INVALID_REQUEST
    assert "deeper than 64 levels" in refusal.error.message


def test_a_frame_of_brackets_alone_does_no_harm() -> None:
    assert only_refusal("[" * 1_000_000).error.code == jsonrpc.INVALID_REQUEST
    assert only_refusal('{"a":' * 200_000).error.code == jsonrpc.INVALID_REQUEST
    assert only_refusal("[" * 400, max_depth=500).error.code == jsonrpc.PARSE_ERROR


def test_brackets_in_texts_are_no_depth() -> None:
    text = '[{"\\' * 500
    call = only_call(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {text: [text]}}))
    assert msgspec.json.decode(call.params) == {text: [text]}


def request_with(params: str) -> str:
    return '{"jsonrpc":"2.0","id":"mine","method":"m","params":[' + params + "]}"


@pytest.mark.parametrize(
    ("params", "what"),
    [("[],", "lists and objects"), ("{},", "lists and objects"), ('"",', "texts"), ("[[", "lists and objects")],
)
def test_a_frame_of_very_many_parts_is_refused_before_its_depth_is_counted(params: str, what: str) -> None:
    error = only_refusal(request_with(params * 100_001 + "[]" * 65)).error
    assert (error.code, error.message) == (
        jsonrpc.INVALID_REQUEST,
        f"The frame has more than 100,000 {what}. Send it in several.",
    )


def test_the_refusal_of_too_much_has_the_id_of_the_request() -> None:
    assert only_refusal(request_with("[]," * 100_000 + "[]")).request_id == "mine"
    assert only_refusal(nested(65)).request_id == 1


def test_many_parts_are_taken_and_so_is_any_text_however_much_it_looks_like_parts() -> None:
    for params in ("[]," * 90_000 + "[]", '"",' * 90_000 + "[]," * 65 + "[]", json.dumps('[{"\\' * 200_000)):
        assert only_call(request_with(params)).request_id == "mine"


@pytest.mark.parametrize("request_id", ["true", "[1]", "{}", "1e999", "null"])
def test_what_can_be_no_id_is_answered_without_one(request_id: str) -> None:
    assert only_refusal('{"method":5,"id":' + request_id + "}").request_id is None
    assert only_refusal('{"id":' + request_id + ',"method":' + "[" * 99 + "]" * 99 + "}").request_id is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(['"[', "{\\", "]}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@settings(deadline=None)
@given(JSON, st.integers(1, 5), st.booleans())
def test_depth_is_counted_as_it_is(value: Any, limit: int, escaped: bool) -> None:  # noqa: FBT001
    frame = read(json.dumps(value, ensure_ascii=escaped), max_depth=limit)
    deeper = isinstance(frame.entries[0], Refusal) and "deeper" in frame.entries[0].error.message
    assert deeper == (depth_of(value) > limit)


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_whatever_comes_is_read_without_an_exception_and_can_be_answered(data: str | bytes) -> None:
    for entry in read(data).entries:
        if isinstance(entry, Refusal):
            answer = json.loads(jsonrpc.error_frame(entry.request_id, entry.error))
            assert answer["error"]["code"] in (jsonrpc.PARSE_ERROR, jsonrpc.INVALID_REQUEST)


def test_frames_that_are_sent_are_json_rpc() -> None:
    assert json.loads(jsonrpc.request_frame(1, "m", b"{}")) == {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}
    assert json.loads(jsonrpc.notification_frame("n", b"[1]")) == {"jsonrpc": "2.0", "method": "n", "params": [1]}
    assert json.loads(jsonrpc.result_frame(None, b"null")) == {"jsonrpc": "2.0", "id": None, "result": None}
    error = RpcError(jsonrpc.METHOD_NOT_FOUND, "No.", {"code": "x"})
    assert json.loads(jsonrpc.error_frame("1", error)) == {
        "jsonrpc": "2.0",
        "id": "1",
        "error": {"code": -32601, "message": "No.", "data": {"code": "x"}},
    }
    assert json.loads(jsonrpc.batch_frame([b"1", b"2"])) == [1, 2]


def test_an_unknown_method_is_named_with_what_is_near() -> None:
    with pytest.raises(RpcError, match=r"'async.sendTsk'. Did you mean async.sendTask") as caught:
        method_named("async.sendTsk")
    assert caught.value.code == jsonrpc.METHOD_NOT_FOUND
    assert method_named("async.sendTask") is SEND_TASK


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        (b"{}", "missing required field `sessionId`"),
        (b'{"sessionId":"s","agentId":"a"}', "missing required field `prompt`"),
        (b'{"sessionId":"s","agentId":"a","prompt":5}', "Expected `str`, got `int` at `prompt`"),
        (b'{"sessionId":"s","agentId":"a","prompt":"p","promt":1}', "unknown field `promt`"),
        (
            b'{"sessionId":"s","agentId":"a","prompt":"p","priority":"now"}',
            "Invalid enum value 'now' at `priority`. Valid values: urgent, high, normal, low. Expected: {",
        ),
        (b'{"sessionId":"s","agentId":"a","prompt":"p","budget":{"maxTokens":"1"}}', "at `budget.maxTokens`"),
        (b'{"sessionId":"s","agentId":"a","prompt":"p","timeoutSeconds":1e999}', "out of range at `timeoutSeconds`"),
        (b"[1]", "Expected `str`, got `int` at `sessionId`"),
        (b"[" + b"1," * 20 + b"1]", "There are 21 values for 11 params"),
    ],
)
def test_wrong_params_name_the_field_and_what_was_expected(params: bytes, complaint: str) -> None:
    with pytest.raises(RpcError) as caught:
        SEND_TASK.read_params(params)
    assert caught.value.code == jsonrpc.INVALID_PARAMS
    assert complaint in caught.value.message
    assert "Expected: {sessionId, agentId, prompt, priority?" in caught.value.message


def test_params_may_come_by_position() -> None:
    by_name = SEND_TASK.read_params(b'{"sessionId": "s", "agentId": "a", "prompt": "p [", "priority": "high"}')
    assert SEND_TASK.read_params(b'["s", "a", "p [", "high"]') == by_name


def test_params_that_are_not_needed_may_be_left_out() -> None:
    free = [method for method in METHODS.values() if "?" in method.signature or method.signature == "{}"]
    assert METHODS["server.info"] in free
    assert METHODS["server.info"].read_params(b"") == METHODS["server.info"].read_params(b"{}")


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (TooLargeError("Too large."), -32602),
        (UnknownAgentError("Nobody."), -32004),
        (DuplicateIdError("Twice."), -32009),
        (TooManyRequestsError("Slowly."), -32029),
        (StoreFullError("Full."), -32050),
        (ModelRateLimitError("Later."), -32060),
        (WhispererError("Other."), -32000),
    ],
)
def test_errors_of_the_runtime_keep_their_code_over_the_wire(error: WhispererError, number: int) -> None:
    rpc = to_rpc(error, requestId="r-1")
    assert (rpc.code, rpc.message) == (number, error.message)
    assert rpc.data == {"code": error.code, "requestId": "r-1"}
    back = from_rpc(rpc.code, rpc.message, rpc.data)
    assert type(back) is type(error)
    assert back.message == error.message
    assert back.data == {"requestId": "r-1"}


def test_an_error_that_nobody_knows_becomes_a_plain_one() -> None:
    assert type(from_rpc(-32077, "Odd.", {"code": "from_the_future"})) is WhispererError
    assert type(from_rpc(-32000, "Odd.", "no object")) is WhispererError
    assert from_rpc(jsonrpc.METHOD_NOT_FOUND, "No.", None).code == "invalid_input"
