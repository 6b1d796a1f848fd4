"""Broken requests of every kind, made from a seed, and what JSON-RPC says to each of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from tests.acceptance.requests_of_all import every_request

MAX_DEPTH = 64

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**40,
    0.1,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    "",
    " ",
    "\x00",
    "\u202e\ufeff",
    "😀",
    "\ud800",
    "a\nb",
    "../../etc/passwd",
    "~",
    "'; DROP TABLE agent; --",
    "@all",
    "*",
    "user",
    "x" * 300,
    "x" * 5000,
    [],
    {},
    [[]],
    {"": None},
    [None] * 50,
    {"a": {"b": [1, {"c": "d"}]}},
    {"x": 10**40},
    {"max_queue_length": 0},
    {"max_prompt_bytes": 10**40},
    {"first_delay_seconds": 1e308},
    [{"interval_seconds": 5e-324, "prompt": "x"}],
    [{"cron": "* * * * *", "zone": "../../etc/passwd", "event": "x", "data": {"x": 10**40}}],
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    "* * 30 2 *",
    "1-0/0 * * * *",
)

_FIELDS = tuple(AgentDefinition.__struct_fields__)

Expected = frozenset[int] | None
"""The numbers of which one must be answered; empty where anything but an internal error may be, None where nothing."""

ANYTHING: frozenset[int] = frozenset()


class Mutator:
    """Makes one broken frame after another. The same seed makes the same frames."""

    def __init__(self, seed: int, session_id: str) -> None:
        self._random = random.Random(seed)
        self._requests = every_request(session_id)
        self._number = 0

    def frame(self) -> bytes:
        """The payload of a message; not always text."""
        changes: list[Callable[[bytes], bytes]] = [
            *[self._as_it_is] * 8,
            self._truncated,
            self._flipped,
            self._with_noise,
            self._with_a_key_twice,
            self._with_odd_json,
            self._in_a_batch,
        ]
        request = self._request()
        if self._random.random() < 0.05:
            return self._noise(self._random.randrange(200))
        return self._random.choice(changes)(json.dumps(request, ensure_ascii=self._random.random() < 0.5).encode(
            errors="surrogatepass"
        ))  # fmt: skip

    def _request(self) -> dict[str, Any]:
        method, params = self._random.choice(self._requests)
        params = dict(params)
        for _ in range(self._random.choice((0, 1, 1, 2))):
            if params and self._random.random() < 0.8:
                name = self._random.choice(list(params))
                params[name] = self._odd(params[name])
            elif params:
                del params[self._random.choice(list(params))]
            else:
                params["unknown"] = self._random.choice(ODD_VALUES)
        if method == "task.wait":
            params["timeoutSeconds"] = 0.01  # it would wait for a minute
        self._number += 1
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        if self._random.random() < 0.15:
            name = self._random.choice(list(request))
            request[name] = self._random.choice(ODD_VALUES)
        if self._random.random() < 0.05:
            del request[self._random.choice(list(request))]
        if self._random.random() < 0.05:
            request["params"] = list(params.values())
        return request

    def _odd(self, value: Any) -> Any:
        odd = self._random.choice(ODD_VALUES)
        if isinstance(value, dict) and value and self._random.random() < 0.7:
            return {**value, self._random.choice([*value, *_FIELDS]): odd}
        if isinstance(value, list) and self._random.random() < 0.5:
            return [*value, odd]
        return odd

    def _as_it_is(self, raw: bytes) -> bytes:
        return raw

    def _truncated(self, raw: bytes) -> bytes:
        return raw[: self._random.randrange(len(raw))]

    def _flipped(self, raw: bytes) -> bytes:
        changed = bytearray(raw)
        for _ in range(self._random.randrange(1, 4)):
            changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)

    def _with_noise(self, raw: bytes) -> bytes:
        at = self._random.randrange(len(raw))
        return raw[:at] + self._noise(self._random.randrange(1, 6)) + raw[at:]

    def _with_a_key_twice(self, raw: bytes) -> bytes:
        key = self._random.choice([b'"id":1', b'"method":"server.info"', b'"params":{}', b'"params":5', b'"id":[]'])
        return raw[:-1] + b"," + key + b"}"

    def _with_odd_json(self, raw: bytes) -> bytes:
        odd = self._random.choice(
            [
                b"NaN",
                b"Infinity",
                b"-Infinity",
                b"1e999",
                b"01",
                b"+1",
                b".5",
                b'"\\ud800"',
                b'"\\udc00x"',
                b"'a'",
                b"//",
            ]
            + [b"[" * depth + b"]" * depth for depth in (10, 61, 65, 500, 3000)]
        )
        return raw[:-1] + b',"odd":' + odd + b"}"

    def _in_a_batch(self, raw: bytes) -> bytes:
        others = [b"1", b"{}", b"[]", b'{"jsonrpc":"2.0","method":"server.info"}', raw]
        return b"[" + b",".join([raw, *self._random.choices(others, k=self._random.randrange(4))]) + b"]"

    def _noise(self, size: int) -> bytes:
        if self._random.random() < 0.5:
            return self._random.randbytes(size)
        return "".join(self._random.choices('{}[]",:0.e-\\u truefalsn\ud7ff é😀', k=size)).encode()


def expected(data: bytes) -> Expected:
    """What must be answered to the frame, judged by another JSON parser than the server's."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return frozenset({PARSE_ERROR})
    if _depth(text) > MAX_DEPTH:
        return frozenset({INVALID_REQUEST, PARSE_ERROR})
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_as_text)
        _as_text([("", value)])
    except (ValueError, RecursionError):
        return frozenset({PARSE_ERROR})
    if isinstance(value, list):
        if not value or len(value) > 100:
            return frozenset({INVALID_REQUEST})
        return None if all(_expected_of(each) is None for each in value) else ANYTHING
    return _expected_of(value)


def _expected_of(value: Any) -> Expected:
    if not isinstance(value, _Object) or "method" not in value or any(_is_odd(*pair) for pair in value.pairs):
        return frozenset({INVALID_REQUEST})
    if "params" in value and not isinstance(value["params"], list | dict):
        return frozenset({INVALID_REQUEST})
    if "jsonrpc" not in value and "id" not in value and isinstance(value.get("params"), dict):
        return ANYTHING
    if value.get("jsonrpc") != "2.0":
        return frozenset({INVALID_REQUEST})
    return ANYTHING if "id" in value else None


def _is_odd(name: str, value: Any) -> bool:
    """Whether a request may not have this, even if the same comes again in the right form."""
    if name == "id":
        return isinstance(value, bool | list | dict) or value in (float("inf"), float("-inf"))
    return name in ("jsonrpc", "method") and not isinstance(value, str)


def judge(answer: Any, wanted: Expected) -> str | None:
    """What is wrong with the answer; None if it is as it should be."""
    if isinstance(answer, list):
        return next((fault for each in answer if (fault := judge(each, ANYTHING))), None)
    if answer.get("jsonrpc") != "2.0" or ("result" in answer) == ("error" in answer) or "id" not in answer:
        return "it is no JSON-RPC response"
    if "error" not in answer:
        return f"it should have been refused with one of {sorted(wanted)}" if wanted else None
    code, message = answer["error"]["code"], answer["error"]["message"]
    if code == INTERNAL_ERROR or not message.endswith((".", "?")):
        return "it is an internal error, or not a sentence"
    if wanted and code not in wanted:
        return f"it should have been one of {sorted(wanted)}"
    if code == INVALID_PARAMS and answer["error"]["data"]["code"] == "invalid_params" and "Expected: {" not in message:
        return "it does not say what was expected"
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


class _Object(dict[str, Any]):
    """An object in which the later of two values of a key counts, but which knows all of them."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _as_text(pairs: list[tuple[str, Any]]) -> _Object:
    """The object; raises `ValueError` if it has half of a surrogate pair, even under a key that comes again."""
    json.dumps(pairs, ensure_ascii=False).encode()
    return _Object(pairs)


def _depth(text: str) -> int:
    depth = deepest = 0
    in_text = escaped = False
    for character in text:
        if in_text:
            in_text, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            in_text = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest
