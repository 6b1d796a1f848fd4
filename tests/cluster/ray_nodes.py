"""Nodes that a real Ray runs on this machine: brought up and ended by commands, found by their data folders."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ai_whisperer.client import Client
from ai_whisperer.domain.cluster import NodeState, NodeStatus
from ai_whisperer.server.address import Address, find_address
from tests.acceptance.command_stage import Ran, run
from tests.cluster.ray_stage import Ray
from tests.cluster.stage import RULES, TOKEN, Node, eventually, evidence, set_to_work
from tests.postgresql import Server


class Stage:
    """A database, a Ray, and the folder of the nodes that it runs."""

    def __init__(self, ray: Ray, server: Server, database: str, folder: Path) -> None:
        self.ray = ray
        self.server = server
        self.database = database
        self.folder = folder
        self.rules = folder / "rules.yaml"
        self.rules.write_text(RULES, encoding="utf-8")
        self.pids: set[int] = set()

    def run(self, *arguments: str, **environment: str) -> Ran:
        own = {"WHISPERER_STORE": self.database, "WHISPERER_TOKEN": TOKEN}
        return run("cluster", *arguments, given=b"", **{**self.ray.environment, **own, **environment})

    def up(self, hosts: str, *more: str) -> Ran:
        flags = ("--model", f"scripted:{self.rules}", "--folder", str(self.folder / "nodes"))
        grace = ("--shutdown-grace-seconds", "5")
        return self.run("up", "--ray", self.ray.address, "--hosts", hosts, *flags, *grace, *more, "--json")

    def address(self, name: str) -> Address:
        (found,) = self._addresses(name)
        self.pids.add(found.pid)
        return found

    async def takes_requests(self, name: str) -> bool:
        """Whether a node has told its address: it is among the nodes a moment before."""
        return bool(self._addresses(name))

    def _addresses(self, name: str) -> list[Address]:
        found = map(find_address, (self.folder / "nodes").glob(f"*/{name}"))
        return [each for each in found if each is not None]

    def client(self, name: str, session_id: str = "default") -> Client:
        return Client(self.address(name).url, TOKEN, session_id=session_id, reconnect_seconds=0)

    async def nodes(self, asked: str) -> list[NodeStatus]:
        async with self.client(asked) as client:
            return list((await client.cluster_status()).nodes)

    async def set_to_work(self, name: str, session_id: str, *, tasks: int = 2) -> None:
        await set_to_work(_Reached(self, name), session_id, tasks=tasks)
        await eventually(partial(self.is_under_way, session_id))

    async def is_under_way(self, session_id: str) -> bool:
        found = await evidence(self.server, self.database, session_id)
        return bool(found.mails) and not found.is_over

    async def check_is_done(self, session_id: str, *, at: set[str], tasks: int = 2) -> None:
        """The work of the session is done, once, at one of those nodes; nobody has it if it was done before."""

        async def is_over() -> bool:
            return (await evidence(self.server, self.database, session_id)).is_over

        await eventually(is_over)
        found = await evidence(self.server, self.database, session_id)
        found.check(tasks=tasks)
        assert found.holder in {*at, None}

    async def first_after(self, session_id: str, epoch: int) -> float | None:
        """When the node that took the session over did its first thing there."""
        where = f"session_id='{session_id}' AND epoch>{epoch}"
        asking = f"SELECT min(at) FROM whisperer.notification WHERE {where}"  # noqa: S608
        ((first,),) = await self.server._run(asking, self.database.rpartition("/")[2])
        return None if first is None else float(first)

    async def is_back(self, name: str, former_pid: int, asked: str) -> bool:
        """Whether the node has joined with another process than that one."""
        found = [find_address(each) for each in (self.folder / "nodes").glob(f"*/{name}")]
        if not any(each is not None and each.pid != former_pid for each in found):
            return False
        return any(each.name == name and each.state is NodeState.JOINED for each in await self.nodes(asked))


class _Reached(Node):
    def __init__(self, stage: Stage, name: str) -> None:
        self.name = name
        self.url = stage.address(name).url


def raylet_of(pid: int, raylets: list[int]) -> int:
    """The number of the raylet, from 1, that runs the actor that has started this process."""
    while pid not in raylets:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        pid = int(stat.rpartition(") ")[2].split()[1])
        assert pid > 1, "no raylet has started it"
    return raylets.index(pid) + 1
