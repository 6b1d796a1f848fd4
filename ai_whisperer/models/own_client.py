"""A model of a provider over our own HTTP client: one request is one exchange, streamed, without any retry.

What differs between protocols, what is sent and how the events are read, is in the classes built on this one.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import ModelCutOffError, ModelError, ModelServerError, ModelTimeoutError, ModelUnavailableError
from ai_whisperer.models import failures, prices
from ai_whisperer.models.accounts import account_of
from ai_whisperer.models.base import ALIVE, TAKEN, ModelRequest, StreamEvent
from ai_whisperer.models.bounded_body import MAX_ERROR_BYTES, BodyCutter, Meter, WireLimitError, inflater_of
from ai_whisperer.models.event_bounds import EventTooLargeError
from ai_whisperer.models.http.address import Endpoint
from ai_whisperer.models.http.connection import (
    BrokenOffError,
    Connection,
    Head,
    HungUpError,
    NoHttpError,
    SilenceError,
)
from ai_whisperer.models.http.pool import CONNECT_SECONDS, Pool, pool_of
from ai_whisperer.models.http.sse import data_in
from ai_whisperer.models.retry_after import retry_after_seconds

_TURN_SECONDS = 10.0
"""While a request waits for its turn to connect, it says so often that it is alive."""
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What reading events raises when a provider sends JSON of the wrong shape."""
_FAILURES = (OSError, NoHttpError, WireLimitError, EventTooLargeError, *_UNREADABLE)
_NO_STREAM = ("text/html", "application/json", "application/problem+json")


class AnswerReader(Protocol):
    """Puts one answer together from the data of its events."""

    is_over: bool
    """Whether the provider said that nothing more comes."""

    def take(self, data: bytes) -> Iterable[StreamEvent]:
        """What the next event brings; raises a `ModelError`, or one of those for JSON of the wrong shape."""

    def ending(self) -> Iterable[StreamEvent]:
        """What is known at the end of the stream only; nothing if the provider did not say why the answer ends."""


class OwnClientModel(ABC):
    """A model of a provider. All of one event loop share its connections.

    Keys and addresses are read with the first request, which tells of what is missing as a `ModelRefusedError`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.prefix, _, self.model = name.partition(":")
        self._endpoint: Endpoint | None = None
        self._account: Account | None = None
        self._pool: Pool | None = None

    @property
    def account(self) -> Account | None:
        """Through which account it asks; None if there is none, which the request tells."""
        if self._account is None:
            with suppress(ModelError):
                self._endpoint = self._endpoint or self._address()
                self._account = account_of(self.prefix, self._endpoint)
        return self._account

    @abstractmethod
    def _address(self) -> Endpoint:
        """Where it is asked; raises `ModelRefusedError`."""

    @abstractmethod
    async def _body(self, request: ModelRequest, meter: Meter) -> bytes:
        """What is asked, as JSON."""

    @abstractmethod
    def _reader(self, request: ModelRequest, meter: Meter) -> AnswerReader:
        """What reads the answer."""

    @abstractmethod
    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """What a request of that size costs; None if the price list does not know the model, or is not read yet."""

    @property
    def _listed_as(self) -> str:
        """The provider, as the price list names it."""
        return self.prefix

    def context_window(self) -> int | None:
        """How many tokens it can take with its answer; None if the price list does not know, or is not read yet."""
        return prices.context_window(self._listed_as, self.model)

    async def prepare(self) -> None:
        """Read the price list."""
        await prices.load()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        meter = Meter()
        endpoint = self._endpoint = self._endpoint or self._address()
        sent = endpoint.request(await self._body(request, meter), self._headers(request))
        patience = _seconds(request.settings)
        pool = self._entered()
        connection: Connection | None = None
        while connection is None:
            connect_seconds = CONNECT_SECONDS if patience is None else min(patience, CONNECT_SECONDS)
            connection = await pool.take(endpoint.origin, connect_seconds=connect_seconds, turn_seconds=_TURN_SECONDS)
            if connection is None:
                yield ALIVE
        reader = self._reader(request, meter)
        try:
            connection.begin(sent, patience_seconds=patience)
            del sent
            yield ALIVE  # from now on it is the provider's time
            cutter = await _opened(connection, meter)
            yield TAKEN
            while not reader.is_over:
                data = await connection.read()
                for event in _events(cutter.feed(data) if data else cutter.finish(), reader):
                    if event is None:
                        await meter.let_others()
                    else:
                        yield event
                if not data:
                    break
            await prices.load()
            for event in reader.ending():
                yield event
                await meter.let_others()
        except _FAILURES as error:
            # The error may quote the request with its key: it is told in our words, not chained.
            raise _translated(error) from None
        finally:
            pool.give_back(endpoint.origin, connection, is_over=reader.is_over)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.leave()

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        """What is said beside the request, apart from what is always the same."""
        more = request.settings.get("extra_headers")
        named = {str(name): str(value) for name, value in more.items()} if isinstance(more, Mapping) else {}
        return {**named, "Idempotency-Key": request.step_id}

    def _entered(self) -> Pool:
        if self._pool is None:
            self._pool = pool_of(asyncio.get_running_loop())
            self._pool.enter()
        return self._pool


def _events(pieces: Iterable[bytes], reader: AnswerReader) -> Iterator[StreamEvent | None]:
    """What the pieces bring, a sign of life if it is nothing; None after each, when others may have their turn."""
    is_silent = True
    for piece in pieces:
        for data in data_in(piece):
            for event in reader.take(data):
                is_silent = False
                yield event
        yield None
    if is_silent:
        yield ALIVE


def limited(request: ModelRequest) -> int | None:
    """How many tokens the answer may have, as the settings and the budget say."""
    given, room = request.settings.get("max_tokens"), request.max_output_tokens
    if not isinstance(given, int):
        return room
    return given if room is None else min(given, room)


def _seconds(settings: Mapping[str, Any]) -> float | None:
    seconds = settings.get("timeout")
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


async def _opened(connection: Connection, meter: Meter) -> BodyCutter:
    """What cuts the body of the response into events; raises the `ModelError` that the response is."""
    head = await connection.head()
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if head.status == 200 and kind not in _NO_STREAM:
        return BodyCutter(meter, encoding=head.headers.get("content-encoding", ""))
    body = await _beginning(connection, head, meter)
    said, codes = failures.report_of(_decoded(body))
    if head.status != 200:
        said = failures.told(said or body.decode(errors="replace") or f"status {head.status}")
        if 300 <= head.status < 400:
            said = failures.told(f"It sends requests elsewhere, where the key is not sent after them: {said}")
        asked = retry_after_seconds(head.headers, now=time.time())
        raise failures.of_status(head.status, said, codes=codes, retry_after_seconds=asked) from None
    if codes and said:
        raise failures.of_report(failures.told(said), codes)
    raise ModelServerError(
        f"The provider's answer cannot be used: it is {kind}, no stream of events. Check the address."
    )


async def _beginning(connection: Connection, head: Head, meter: Meter) -> bytes:
    """As much of the body of an error as anybody reads."""
    inflater = inflater_of(head.headers.get("content-encoding", ""))
    body = bytearray()
    while len(body) < MAX_ERROR_BYTES and (data := await connection.read()):
        for piece in (data,) if inflater is None else inflater.feed(data):
            body += piece
            await meter.let_others()
            if len(body) >= MAX_ERROR_BYTES:
                break
    return bytes(body[:MAX_ERROR_BYTES])


def _decoded(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _translated(error: Exception) -> ModelError:
    said = failures.told(str(error) or type(error).__name__)
    match error:
        case SilenceError():
            return ModelTimeoutError(f"The provider did not answer in time: {said}")
        case BrokenOffError():
            return ModelCutOffError(f"The connection broke off before the answer was complete: {said}")
        case HungUpError():
            return ModelUnavailableError(f"The provider took the request and hung up: {said}")
        case NoHttpError() | WireLimitError() | EventTooLargeError():
            return ModelServerError(f"The provider's answer cannot be used: {said}")
        case OSError():
            fault = error if error.errno is not None else None
            return failures.lasting_fault_of_system(fault, said) or failures.unreachable(fault, said)
    return ModelServerError(f"The provider's answer cannot be read: {said}")
