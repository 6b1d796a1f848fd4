"""What one request to the model server of the tests gets, with all that may go wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Call(NamedTuple):
    """A tool call of a reply; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What one request gets. The counts are of streamed events: `cut_after_events=0` sends only the headers.

    A status other than 200 sends `error` as the provider's message and nothing else. `malformed_after_events`
    puts `malformed_event` in that place, `stall_after_events` sends nothing more until the client goes away,
    `omit_finish` ends the stream in good order but without a reason. `raw` makes the bytes that are sent in place of a
    whole response, head and all, one piece after the other until the client goes away; then the connection is closed.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish: str = ""
    input_tokens: int = 11
    output_tokens: int = 7
    cached_tokens: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = "the server was told to fail"
    error_code: str | None = None
    latency_seconds: float = 0.0
    cut_after_events: int | None = None
    stall_after_events: int | None = None
    malformed_after_events: int | None = None
    malformed_event: str = '{"choices": [{"delta": '
    omit_finish: bool = False
    raw: Callable[[], Iterable[bytes]] | None = None
