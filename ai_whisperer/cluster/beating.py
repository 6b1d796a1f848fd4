"""The beat: a thread with a connection of its own, so that a process that is busy is not taken for one that is dead."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from ai_whisperer.cluster import judging
from ai_whisperer.cluster.load import Gauge
from ai_whisperer.domain.nodes import IDLE, Absence, Load, Seen
from ai_whisperer.errors import StoreError, WhispererError

BEAT_SECONDS: Final = 0.5
HURRIED_SECONDS: Final = 0.25
"""Between the beats while a node seems to have died."""
SURE_SECONDS: Final = 1.5
"""A node that beat so long ago may have been taken for dead: others need four beats for that, which is longer."""
_LONGEST_SECONDS: Final = 2.0
"""A beat that takes longer is given up, and the connection with it."""
_LONGEST_WITH_CONNECTING_SECONDS: Final = 8.0
"""The same where a connection has to be made first, perhaps to one host after the other."""
_LONGEST_REMOVAL_SECONDS: Final = 10.0
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_PAUSE_SECONDS: Final = 0.05
_JITTER_SECONDS: Final = 0.01
_PROOF_SECONDS: Final = 2.0
"""So long a request waits for the proof that this node is one."""
_STOP_SECONDS: Final = 3.0

_log = logging.getLogger(__name__)


class Book(Protocol):
    """The book of the nodes, as one that beats needs it. A call that gets no answer raises `ConnectionError`."""

    @property
    def is_connected(self) -> bool: ...

    async def beat(self, load: Load) -> Seen | Absence: ...

    def lose(self) -> None: ...

    async def close(self) -> None: ...


class Removing(Protocol):
    """The book of the nodes, as one that removes others needs it."""

    async def remove(self, host_id: str, beat: int | None = None, *, has_ended: bool = True) -> bool: ...

    def lose(self) -> None: ...

    async def close(self) -> None: ...


def now() -> float:
    """Seconds that pass also while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class Beating:
    """Beats until it is stopped, judges the others, and tells the event loop that made it what it saw.

    Those that are gone are removed by `removing`, on a connection of its own: that may take its time, and who does not
    beat meanwhile would be taken for dead too. `on_seen` is called after each beat; `on_absent` once, if this node is
    not in the book any more. `removed` counts the nodes that this one removed; `load` is what was told with the last
    beat.
    """

    def __init__(
        self,
        book: Book,
        removing: Removing,
        own_id: str,
        *,
        on_seen: Callable[[Seen], None],
        on_absent: Callable[[Absence], None],
    ) -> None:
        self._book = book
        self._removing = removing
        self._removal: asyncio.Task[None] | None = None
        self._own_id = own_id
        self._on_seen = on_seen
        self._on_absent = on_absent
        self._outside = asyncio.get_running_loop()
        self._gauge = Gauge()
        self._inside: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._answers: list[asyncio.Future[None]] = []
        self._stopping = False
        self._is_removed = False
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)
        self._sure_at = now()
        self._known: judging.Sightings = {}
        self._looked_at = 0.0
        self._full_beat_at = 0.0
        self.missed = 0
        self.removed = 0
        self.load = IDLE

    def start(self) -> None:
        self._thread.start()

    @property
    def is_sure(self) -> bool:
        """Whether nobody can have taken this node for dead yet."""
        return now() - self._sure_at < SURE_SECONDS and self._book.is_connected and not self._is_removed

    async def prove(self) -> None:
        """Return when this node is sure, or removed; raises `StoreError` if neither can be found out.

        A beat that was under way tells nothing: its answer may have come before the process was frozen.
        """
        try:
            async with asyncio.timeout(_PROOF_SECONDS):
                while not self.is_sure and not self._is_removed:
                    proven: asyncio.Future[None] = self._outside.create_future()
                    self._answers.append(proven)
                    self._wake()
                    await proven
        except TimeoutError as error:
            lost = StoreError("The database does not answer, so it is not known who has the session. Try again.")
            lost.data = {"retryAfterSeconds": _PROOF_SECONDS}
            raise lost from error

    async def stop(self) -> None:
        """Beat no more; returns when the thread has ended."""
        self._stopping = True
        self._wake()
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)

    def abandon(self) -> None:
        """Beat no more, as if the process had died."""
        self._stopping = True
        self._wake()

    def _wake(self) -> None:
        inside, asked = self._inside, self._asked
        if inside is not None and asked is not None:
            with suppress(RuntimeError):  # it has ended
                inside.call_soon_threadsafe(asked.set)

    def _run(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._inside, self._asked = asyncio.get_running_loop(), asyncio.Event()
        try:
            while not self._stopping and not self._is_removed:
                began_at = now()
                self._asked.clear()
                pause = await self._once(began_at)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(began_at + pause - now(), 0)):
                        await self._asked.wait()
        finally:
            if self._removal is not None:
                self._removal.cancel()
                await asyncio.gather(self._removal, return_exceptions=True)
            await self._removing.close()
            await self._book.close()

    async def _once(self, began_at: float) -> float:
        """Beat once; returns how long after this beat the next is due."""
        try:
            longest = _LONGEST_SECONDS if self._book.is_connected else _LONGEST_WITH_CONNECTING_SECONDS
            async with asyncio.timeout(longest):
                self.load = self._gauge.read()
                seen = await self._book.beat(self.load)
            if isinstance(seen, Absence):
                self._is_removed = True
                self._tell(partial(self._on_absent, seen))
                self._tell(self._answer)
                return 0.0
            self._sure_at = began_at
            if now() - began_at > BEAT_SECONDS:
                self._known = judging.forgiven(self._known)
            if began_at - self._looked_at > HURRIED_SECONDS - _JITTER_SECONDS:
                self._looked_at = began_at
                self._judge(seen, began_at)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one beat, there is another
            self.missed += 1
            self._known = judging.forgiven(self._known)
            self._book.lose()
            is_usual = isinstance(error, ConnectionError | TimeoutError | WhispererError)
            _log.log(logging.INFO if is_usual else logging.ERROR, "a beat is missed: %r", error)
            return now() - began_at + _PAUSE_SECONDS
        self._tell(lambda: self._on_seen(seen))
        self._tell(self._answer)
        return HURRIED_SECONDS if judging.is_hurried(self._known) else BEAT_SECONDS

    def _judge(self, seen: Seen, began_at: float) -> None:
        """Find out who is gone, and begin to remove those, unless that is under way."""
        is_full_beat = began_at - self._full_beat_at > BEAT_SECONDS - _JITTER_SECONDS
        if is_full_beat:
            self._full_beat_at = began_at
        self._known = judging.looked(self._known, seen, own_id=self._own_id, is_full_beat=is_full_beat)
        gone = judging.gone(self._known)
        if gone and (self._removal is None or self._removal.done()):
            names = {each.id: each.name for each in seen.nodes}
            chosen = [(names[each], each, beat, judging.has_ended(self._known, each)) for each, beat in gone]
            self._removal = asyncio.create_task(self._remove(chosen))

    async def _remove(self, gone: Sequence[tuple[str, str, int, bool]]) -> None:
        """Remove these nodes, and look at once who has their sessions. What fails is tried again after another beat."""
        try:
            async with asyncio.timeout(_LONGEST_REMOVAL_SECONDS):
                for name, host_id, beat, has_ended in gone:
                    if await self._removing.remove(host_id, beat, has_ended=has_ended):
                        self.removed += 1
                        _log.warning("the node '%s' has ended or does not answer: others take its sessions", name)
        except (ConnectionError, TimeoutError, WhispererError) as error:
            self._removing.lose()
            _log.info("a node could not be removed: %r", error)
        else:
            self._wake()

    def _answer(self) -> None:
        answers, self._answers = self._answers, []
        for each in answers:
            if not each.done():
                each.set_result(None)

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._outside.call_soon_threadsafe(what)
