"""What a process is to its cluster: the only one there is, or a member among others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from ai_whisperer.cluster.beating import Beating
from ai_whisperer.cluster.clock import ClusterClock
from ai_whisperer.cluster.sharing import fair_share, is_draining, own_share
from ai_whisperer.core.tags import having, listed, nobody_has
from ai_whisperer.domain.clock import Clock, SystemClock
from ai_whisperer.domain.cluster import ClusterStatus, NodeState, PlacedSession
from ai_whisperer.domain.nodes import Absence, Draining, NodeCard, Seen
from ai_whisperer.errors import NoClusterError, StateError, StoreError, UnknownNodeError, UnknownSessionError
from ai_whisperer.store.base import Store

_LOOK_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 10.0
"""So long the database may take for an answer."""

_T = TypeVar("_T")

OnSeen = Callable[[Seen], None]
Figures = dict[str, tuple[str, float, bool]]
"""By their names: what each is, how much, and whether it only rises."""


class Membership(Protocol):
    """The cluster, as the one who holds sessions sees it.

    `is_sure`: nobody can have taken this node for dead. If not, `prove` asks, before anything is told from memory.
    `name` is that of this node; `secret` is what nodes show to each other. Both are empty where there is no other. All
    nodes go by the `clock`.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def name(self) -> str: ...

    @property
    def secret(self) -> str: ...

    @property
    def is_sure(self) -> bool: ...

    async def prove(self) -> None: ...

    def watch(self, on_seen: OnSeen) -> None:
        """Call back after each beat, on the event loop."""
        ...

    async def taken_first(self, with_work: Sequence[str]) -> Sequence[str]:
        """Of the sessions that have work, those that this node takes when it starts."""
        ...

    async def take(self, seen: Seen) -> Sequence[str]:
        """Claim this node's share of the sessions that have work and nobody."""
        ...

    def is_draining(self, seen: Seen) -> bool: ...

    @property
    def held(self) -> Sequence[str]:
        """The sessions that this node has, open or not."""
        ...

    async def status(self) -> ClusterStatus: ...

    async def drain(self, name: str, *, force: bool = False) -> ClusterStatus:
        """Let a node give its sessions to others; raises `UnknownNodeError`.

        Raises `StateError` if there is no other that takes them, unless it is to be done by `force`.
        """
        ...

    async def move(self, session_id: str, name: str, *, patience_seconds: float) -> PlacedSession:
        """Let a session go to a node, and return when it is there, or when there is no more patience."""
        ...

    async def has_tags(self, needs: Sequence[str]) -> bool:
        """Whether this node may have a session that needs these; raises `StateError` if none has them."""
        ...

    async def need(self, session_id: str, needs: Sequence[str]) -> None:
        """Let the session need these tags, and go to a node that has them.

        Raises `StateError` if none has, `UnknownSessionError` if it was deleted.
        """
        ...

    async def deleted_elsewhere(self) -> Sequence[str]:
        """Sessions that are gone, and of which there may be files here that nobody has removed."""
        ...

    def figures(self) -> Figures:
        """What is counted."""
        ...


class Alone:
    """The one process that a data folder has."""

    is_sure = True
    clock = SystemClock()
    name = ""
    secret = ""
    held: Sequence[str] = ()

    async def prove(self) -> None:
        """There is nobody to ask."""

    def watch(self, on_seen: OnSeen) -> None:
        """There is nothing to be seen."""

    async def taken_first(self, with_work: Sequence[str]) -> Sequence[str]:
        return with_work

    async def take(self, seen: Seen) -> Sequence[str]:  # noqa: ARG002
        return ()

    def is_draining(self, seen: Seen) -> bool:  # noqa: ARG002
        return False

    async def status(self) -> ClusterStatus:
        raise NoClusterError(_HOW_TO)

    async def drain(self, name: str, *, force: bool = False) -> ClusterStatus:  # noqa: ARG002
        raise NoClusterError(_HOW_TO)

    async def move(self, session_id: str, name: str, *, patience_seconds: float) -> PlacedSession:  # noqa: ARG002
        raise NoClusterError(_HOW_TO)

    async def has_tags(self, needs: Sequence[str]) -> bool:
        if needs:
            raise NoClusterError(_HOW_TO)
        return True

    async def need(self, session_id: str, needs: Sequence[str]) -> None:  # noqa: ARG002
        raise NoClusterError(_HOW_TO)

    async def deleted_elsewhere(self) -> Sequence[str]:
        return ()

    def figures(self) -> Figures:
        return {}


_HOW_TO: Final = (
    "This server is no cluster: its sessions are in a data folder, which one process has. Copy them to PostgreSQL "
    "(`whisperer store copy FOLDER ADDRESS`) and start servers on that (`whisperer serve --store ADDRESS`)."
)
ALONE: Final = Alone()


class Desk(Protocol):
    """The book of the nodes, as those who ask need it."""

    async def status(self) -> ClusterStatus: ...

    async def drain(self, name: str, *, force: bool) -> Draining | None: ...

    async def needs(self, session_id: str) -> tuple[str, ...]: ...

    async def need(self, session_id: str, needs: Sequence[str]) -> bool: ...

    async def move(self, session_id: str, name: str) -> None: ...

    async def placed(self, session_id: str) -> PlacedSession: ...

    async def deleted_elsewhere(self) -> list[str]: ...

    async def close(self) -> None: ...

    def lose(self) -> None: ...


class Claims(Protocol):
    """The sessions of this node, which it claims."""

    claims: dict[str, int]

    async def want(self, session_ids: Sequence[str]) -> None: ...


class Claiming(Protocol):
    """The store, as a member needs it."""

    async def take(self, limit: int) -> list[str]: ...

    def stop_absent(self, why: Absence) -> None: ...


class Member:
    """One of several processes that share a database."""

    def __init__(
        self,
        host_id: str,
        card: NodeCard,
        *,
        secret: str,
        clock: ClusterClock,
        store: Claiming,
        claims: Claims,
        desk: Desk,
        beating: Callable[..., Beating],
    ) -> None:
        self.name = card.name
        self.secret = secret
        self.clock = clock
        self._id = host_id
        self._store = store
        self._claims = claims
        self._desk = desk
        self._asking = asyncio.Lock()
        self._watchers: list[OnSeen] = []
        self._beating = beating(on_seen=self._seen, on_absent=store.stop_absent)
        self._beating.start()

    @property
    def is_sure(self) -> bool:
        return self._beating.is_sure

    async def prove(self) -> None:
        await self._beating.prove()

    def watch(self, on_seen: OnSeen) -> None:
        self._watchers.append(on_seen)

    async def taken_first(self, with_work: Sequence[str]) -> Sequence[str]:
        await self._claims.want(with_work)
        status = await self.status()
        takers = sum(each.serves and each.state is NodeState.JOINED for each in status.nodes)
        return await self._store.take(fair_share(status.waiting, takers))

    async def take(self, seen: Seen) -> Sequence[str]:
        share = own_share(seen, self._id)
        return await self._store.take(share) if share else ()

    def is_draining(self, seen: Seen) -> bool:
        return is_draining(seen, self._id)

    @property
    def held(self) -> Sequence[str]:
        return list(self._claims.claims)

    async def status(self) -> ClusterStatus:
        return await self._asked(self._desk.status)

    async def drain(self, name: str, *, force: bool = False) -> ClusterStatus:
        came_of_it = await self._asked(lambda: self._desk.drain(name, force=force))
        if came_of_it is Draining.IS_LAST:
            raise StateError(
                f"The node '{name}' is the last that takes sessions: there is no other to which it could give its own; "
                "nothing was changed. Start another first. With --force its sessions wait until a node takes "
                "them."
            )
        if came_of_it is Draining.IS_NEEDED:
            raise StateError(
                f"Sessions of the node '{name}' need tags that no other node has which takes sessions; nothing was "
                "changed. Start another with these tags first (--tags). With --force the sessions wait until "
                "a node with them takes them."
            )
        status = await self.status()
        if came_of_it is None:
            if any(each.name == name for each in status.nodes):
                raise StateError(
                    f"The node '{name}' is a program with a session of its own. End it; nothing was changed."
                )
            raise _unknown(name, status)
        return status

    async def move(self, session_id: str, name: str, *, patience_seconds: float) -> PlacedSession:
        status = await self.status()
        nodes = {each.name: each for each in status.nodes}
        if name not in nodes:
            raise _unknown(name, status)
        if not nodes[name].serves or nodes[name].state is not NodeState.JOINED:
            why = "is being drained" if nodes[name].serves else "is a program with a session of its own"
            raise StateError(f"The node '{name}' takes no sessions: it {why}; nothing was changed.")
        needs = await self._asked(lambda: self._desk.needs(session_id))
        if not having(needs, {name: nodes[name].tags}):
            raise StateError(
                f"The session '{session_id}' needs {listed(needs)}, and the node '{name}' has "
                f"{listed(nodes[name].tags)}; nothing was changed. Let it need others first: whisperer sessions needs"
            )
        await self._asked(lambda: self._desk.move(session_id, name))
        until = asyncio.get_running_loop().time() + patience_seconds
        while True:
            placed = await self._asked(lambda: self._desk.placed(session_id))
            if placed.node == name or asyncio.get_running_loop().time() >= until:
                return placed
            await asyncio.sleep(_LOOK_SECONDS)

    async def has_tags(self, needs: Sequence[str]) -> bool:
        if not needs:
            return True
        takers = {
            each.name: each.tags
            for each in (await self.status()).nodes
            if each.serves and each.state is NodeState.JOINED
        }
        found = having(needs, takers)
        if not found:
            told = nobody_has(needs, takers)
            raise StateError(f"Nothing was changed: {told}")
        return self.name in found

    async def need(self, session_id: str, needs: Sequence[str]) -> None:
        await self.has_tags(needs)
        if not await self._asked(lambda: self._desk.need(session_id, needs)):
            raise UnknownSessionError(f"The session '{session_id}' was deleted meanwhile.")

    async def deleted_elsewhere(self) -> Sequence[str]:
        return await self._asked(self._desk.deleted_elsewhere)

    async def _asked(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What the database says; a connection that was lost meanwhile is made again, once."""
        async with self._asking:
            try:
                return await self._asked_once(ask)
            except ConnectionError:
                try:
                    return await self._asked_once(ask)
                except ConnectionError as error:
                    raise StoreError(f"The database does not answer ({error}). Try again later.") from error

    async def _asked_once(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await ask()
        except TimeoutError as error:
            self._desk.lose()
            raise ConnectionError(f"nothing came for {_PATIENCE_SECONDS:g} s") from error

    def figures(self) -> Figures:
        return {
            "node_sessions": ("Sessions that this node has", len(self._claims.claims), False),
            "node_beats_missed": ("Beats of this node that did not reach the database", self._beating.missed, True),
            "node_takeovers": ("Nodes that this one found gone", self._beating.removed, True),
            "node_lag_seconds": ("How late the event loop is, on average", self._beating.load.lag_seconds, False),
            "node_busy": ("How much of a processor the process takes, on average", self._beating.load.busy, False),
            "node_clock_corrected_seconds": ("How far the machine's clock is behind", self.clock.ahead, False),
        }

    async def stop(self) -> None:
        await self._beating.stop()
        await self._desk.close()

    def abandon(self) -> None:
        self._beating.abandon()
        self._desk.lose()

    def _seen(self, seen: Seen) -> None:
        self.clock.notice(seen.clock_ahead)
        for each in self._watchers:
            each(seen)


def membership_of(store: Store) -> Membership:
    """What the process that opened the store is."""
    member: Membership | None = getattr(store, "member", None)
    return ALONE if member is None else member


def _unknown(name: str, status: ClusterStatus) -> UnknownNodeError:
    named = ", ".join(f"'{each.name}'" for each in status.nodes)
    return UnknownNodeError(f"There is no node {name[:200]!r}. Nodes: {named}.")
