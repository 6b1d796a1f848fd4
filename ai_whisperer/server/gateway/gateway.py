"""What a server that is one of several nodes needs to take any client."""

from __future__ import annotations

from random import SystemRandom

from ai_whisperer.cluster.membership import Figures
from ai_whisperer.secrets import remember_secret
from ai_whisperer.server.calls import Caller
from ai_whisperer.server.gateway.detour import Detour
from ai_whisperer.server.gateway.far_logs import FarLogs
from ai_whisperer.server.gateway.neighbours import Neighbours
from ai_whisperer.server.host import SessionHost
from ai_whisperer.settings import Settings
from ai_whisperer.store.base import Store


class Gateway:
    """The ways of all clients of this node to the others."""

    def __init__(self, host: SessionHost, store: Store, settings: Settings) -> None:
        membership = host.membership
        remember_secret(membership.secret)
        certificate = settings.tls_certificate
        self._chance = SystemRandom()
        self._neighbours = Neighbours(membership.secret, certificate=None if certificate is None else str(certificate))
        self._logs = FarLogs(host, store, self._neighbours, self._chance)
        self._passed_on = 0
        membership.watch(self._neighbours.seen)

    def detour(self, caller: Caller) -> Detour:
        """The way of one client."""
        return Detour(caller, self._neighbours, self._logs, self._chance, count=self._count)

    def figures(self) -> Figures:
        return {
            "node_links": ("Links to other nodes", self._neighbours.links, False),
            "node_logs_followed": ("Logs at other nodes that clients of this one follow", self._logs.followed, False),
            "node_requests_passed_on": ("Requests that another node was asked", self._passed_on, True),
        }

    async def close(self) -> None:
        await self._logs.close()
        await self._neighbours.close()

    def _count(self) -> None:
        self._passed_on += 1
