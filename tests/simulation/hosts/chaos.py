"""Random lives of a session on two nodes: random work, and nodes that freeze, end, are cut off and come back.

Everything comes from one seed: the order of callbacks, how long each statement takes, what happens to nodes and when.
`python -m tests.simulation.hosts.chaos SEED…` plays runs and tells what happened in them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest.mock import patch

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.errors import ClosedError, SessionElsewhereError, StoreError, UnknownTaskError
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.settings import LOCAL
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.simulation.chaos import failure_in
from tests.simulation.hosts.faults import FAULT_SECONDS, HOLDER, Fault, Kind, drawn
from tests.simulation.hosts.machines import Machine, MachineLoop
from tests.simulation.hosts.nodes import SESSION, Node, simulated_nodes
from tests.simulation.hosts.server import Database
from tests.simulation.hosts.world import SharedListener, SharedWorld, is_over_here
from tests.simulation.people import REFUSALS, People
from tests.simulation.promises import check
from tests.simulation.world import AGENTS

Deed = Callable[[AsyncAgentSessionManager], Awaitable[object]]

_SETTLED_SECONDS = 30.0
"""So long after the last fault both nodes are there again, and one of them has the session."""
_NOTICED_SECONDS = 15.0
"""So long after the last fault a node that was taken for dead has noticed it, and ended."""
_DRAINED_SECONDS = 4.0
_LONGEST_VISIT_SECONDS = 20.0
_LAST_VISIT_SECONDS = 30_000.0


class TwoNodes(People):
    """One run."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.world: SharedWorld = SharedWorld(seed)
        self._clock_is_set = False
        self.faults: list[str] = []
        self._listener = SharedListener(self.faults)
        self.schedule = drawn(seed)
        self.database = Database(seed)
        self._seen_until = 0
        chance = random.Random(f"nodes {seed}")
        supplies: dict[str, Any] = {
            "model": "function",
            "tools": self.world.tools(),
            "model_factory": lambda _: FunctionModel(self.world.answer, latency_seconds=1.0),
            "limits": {"max_concurrent_loops": 1 + seed % 5},
        }
        self.nodes = [Node(name, self.database, chance, **supplies) for name in ("a", "b")]
        self.log: list[tuple[int, str, str, int]] = []

    def run(self) -> None:
        """Let people work with both nodes while everything happens; then let all work end, and check the promises."""
        try:
            with ExitStack() as stack:
                stack.enter_context(self._listening())
                stack.enter_context(self.world.faulty_loops())
                stack.enter_context(simulated_nodes(self.database, self.seed))
                stack.enter_context(self._noting())
                runner = stack.enter_context(asyncio.Runner(loop_factory=lambda: MachineLoop(self.seed)))
                runner.run(self._main())
        finally:
            self.database.close()

    async def _main(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                living = [group.create_task(node.live()) for node in self.nodes]
                await self._settled()
                await self._visit(self._make_agents, is_sure=True)
                async with asyncio.TaskGroup() as busy:
                    for _ in range(3):
                        busy.create_task(self._meddle_with_nodes())
                    for fault in self.schedule:
                        busy.create_task(self._happen(fault))
                await asyncio.sleep(_NOTICED_SECONDS)
                await self._settled()
                self._check_nodes()
                await self._visit(self._finish_in, patience_seconds=_LAST_VISIT_SECONDS, is_sure=True)
                for each in living:
                    each.cancel()
        finally:
            self._listener.is_deaf = True
            self.database.go_on()
            self.database.stop()
            await self.nodes[0].loop.end()

    async def _settled(self) -> None:
        """Return when all nodes are there, and nobody is on the way out."""
        async with asyncio.timeout(_SETTLED_SECONDS):
            for node in self.nodes:
                await node.is_there.wait()

    async def _make_agents(self, manager: AsyncAgentSessionManager) -> None:
        for name in AGENTS:
            if name not in manager.active_sessions:
                await manager.create_agent(name, self.definition(name))

    async def _meddle_with_nodes(self) -> None:
        until = asyncio.get_running_loop().time() + FAULT_SECONDS
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self._random.random() * 2)
            await self._visit(self._deed())

    def _deed(self) -> Deed:
        chosen, agent = self._choose(), self._random.choice(AGENTS)
        known = sorted(self.world.accepted_tasks)[-20:]

        async def do(manager: AsyncAgentSessionManager) -> None:
            if known:
                await self._check_seen(manager, self._random.choice(known))
            await self._check_now(manager)
            with suppress(*REFUSALS):
                await chosen(manager, agent)

        return do

    async def _check_seen(self, manager: AsyncAgentSessionManager, task_id: str) -> None:
        try:
            await manager.get_task(task_id)
        except UnknownTaskError:
            raise AssertionError("a node does not know what another has accepted") from None

    async def _visit(
        self, deed: Deed, *, patience_seconds: float = _LONGEST_VISIT_SECONDS, is_sure: bool = False
    ) -> None:
        """Ask one node after the other, until one has the session; `is_sure` is whether there has to be one."""
        done = False
        for node in self._random.sample(self.nodes, len(self.nodes)):
            if node.host is None or done:
                continue
            machine = node.machine
            asked = machine.run(self._on_node(node, deed))
            await asyncio.wait([asked], timeout=patience_seconds)
            if not asked.done():
                asked.add_done_callback(_seen)
                assert not is_sure, "a node does not answer"
                continue
            done = self._outcome(machine, asked, is_sure=is_sure)
        assert done or not is_sure, "no node has the session"

    def _outcome(self, machine: Machine, asked: asyncio.Task[Any], *, is_sure: bool) -> bool:
        """Whether the node has done it. One that is being replaced, or has no database, may refuse it."""
        error = asked.exception()
        if isinstance(error, SessionElsewhereError):
            return False
        if isinstance(error, StoreError | ClosedError):
            has_cause = (machine.is_over or machine.is_suspect or machine.is_disturbed) and not is_sure
            assert has_cause, f"a node refuses something without a cause: {error}"
            return False
        asked.result()
        return True

    async def _on_node(self, node: Node, deed: Deed) -> None:
        host, known = node.host, self._seen_until
        if host is None:
            raise ClosedError("it has just ended")
        manager = await host.session(LOCAL, SESSION)
        assert manager.last_seq >= known, "a node tells of an older state than another did"
        self._seen_until = max(self._seen_until, manager.last_seq)
        await deed(manager)

    def _node_of(self, fault: Fault) -> Node:
        """The node that a fault is about. A session goes where it is not."""
        placed = self.database.tables.placements.get(SESSION)
        machine = None if placed is None else self.database.machines.get(placed.writer_id or "")
        holder = next((each for each in self.nodes if each.machine is machine), self.nodes[0])
        if fault.kind is Kind.MOVE:
            return next(each for each in self.nodes if each is not holder)
        return holder if fault.node == HOLDER else next(each for each in self.nodes if each.name == fault.node)

    async def _happen(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        node = self._node_of(fault)
        for each in self.nodes:
            each.machine.is_disturbed = True
        if fault.kind in (Kind.STALL, Kind.RESTART):
            await self._happen_to_database(fault)
        elif fault.kind in (Kind.MOVE, Kind.DRAIN):
            await self._order(fault, node)
        elif not node.machine.is_dead:
            await self._happen_to(node, fault)
        for _ in range(3):  # what was due while nothing could be done is done now, or soon
            self.world.opened_at.append(self.database.now() - 0.5)
            await asyncio.sleep(0.5)

    async def _happen_to(self, node: Node, fault: Fault) -> None:
        machine, loop = node.machine, node.loop
        machine.is_suspect |= fault.kind is not Kind.STOP
        match fault.kind:
            case Kind.FREEZE:
                loop.freeze(machine)
                await asyncio.sleep(fault.seconds)
                loop.thaw(machine)
            case Kind.BLOCK:
                machine.way.block()
                await asyncio.sleep(fault.seconds)
                machine.way.unblock()
            case Kind.CUT:
                self.database.cut(machine)
            case Kind.CUT_AT_COMMIT:
                machine.is_cut_at_commit = True
            case Kind.KILL:
                node.down_seconds = fault.seconds
                node.kill()
            case Kind.STOP:
                node.down_seconds = fault.seconds
                node.stop()

    async def _happen_to_database(self, fault: Fault) -> None:
        if fault.kind is Kind.STALL:
            self.database.stall()
            await asyncio.sleep(fault.seconds)
            self.database.go_on()
        else:
            self.database.stop()
            await asyncio.sleep(fault.seconds)
            self.database.start()

    async def _order(self, fault: Fault, node: Node) -> None:
        """Ask any node to have the session moved, or the node drained, which then ends."""
        asked = next((each for each in self.nodes if each.host is not None), None)
        if asked is None or asked.host is None:
            return
        membership = asked.host.membership
        ordering = (
            membership.move(SESSION, node.name, patience_seconds=_DRAINED_SECONDS)
            if fault.kind is Kind.MOVE
            else membership.drain(node.name, force=True)
        )
        ordered = asked.machine.run(ordering)
        ordered.add_done_callback(_seen)
        await asyncio.wait([ordered], timeout=_LONGEST_VISIT_SECONDS)
        if fault.kind is Kind.DRAIN:
            await asyncio.sleep(_DRAINED_SECONDS)
            node.stop()

    def _check_nodes(self) -> None:
        assert not self.database.removed_without_cause, "a node was taken for dead without a cause"
        removed = [each for each in self.database.machines.values() if each.is_removed]
        assert all(each.is_dead for each in removed), "a node that was taken for dead did not end"

    async def _finish_in(self, manager: AsyncAgentSessionManager) -> None:
        await self._let_all_end(manager)
        await asyncio.sleep(1)  # whoever waited for the last commit has been told
        assert not self.faults, f"a loop broke: {self.faults}"
        await check(manager, self.world)
        self._check_epochs()
        epochs = self.database.tables.epochs[SESSION]
        notes = await manager.notifications(limit=1_000_000)
        self.log = [(note.seq, note.name, note.cause, epochs[note.seq]) for note in notes]

    def _check_epochs(self) -> None:
        tables = self.database.tables
        log = sorted(tables.epochs[SESSION].items())
        assert [seq for seq, _ in log] == list(range(1, len(log) + 1)), "the log has a gap"
        assert [epoch for _, epoch in log] == sorted(epoch for _, epoch in log), "the epoch falls along the log"
        assert not any(each.is_stale for each in tables.written), "a node wrote to a session that is another's"

    @contextmanager
    def _listening(self) -> Iterator[None]:
        loggers = [logging.getLogger(name) for name in ("ai_whisperer", "asyncio")]
        for logger in loggers:
            logger.addHandler(self._listener)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self._listener)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Keep in mind when the session is taken up, and what has ended by then."""
        load, opening, closing = PostgresqlStore.load, AsyncAgentSessionManager.open, AsyncAgentSessionManager.close
        world, database = self.world, self.database

        async def noted_load(store: PostgresqlStore, session_id: str) -> SessionSnapshot:
            snapshot = await load(store, session_id)
            if is_over_here():
                return snapshot  # by now another has it
            world.opened_after.append(snapshot.last_seq)
            world.opened_at.append(database.now())
            settled = "SELECT task_id, number FROM step WHERE state IN ('done', 'unknown')"
            world.settled |= {f"{task_id}.{number}" for task_id, number in database.tables.rows.execute(settled)}
            return snapshot

        async def noted_open(manager: AsyncAgentSessionManager) -> None:
            await opening(manager)
            world.opened_at.append(manager._session.kernel.clock.now())

        async def noted_close(manager: AsyncAgentSessionManager, *, grace_seconds: float = 5.0) -> None:
            if manager._open is not None:
                world.closed_at.append(manager._session.kernel.clock.now())
            await closing(manager, grace_seconds=grace_seconds)

        with ExitStack() as stack:
            stack.enter_context(patch.object(PostgresqlStore, "load", noted_load))
            stack.enter_context(patch.object(AsyncAgentSessionManager, "open", noted_open))
            stack.enter_context(patch.object(AsyncAgentSessionManager, "close", noted_close))
            yield


def _seen(task: asyncio.Task[Any]) -> None:
    """Whoever asked has given up: what is answered after that counts unless a promise is broken."""
    if not task.cancelled() and isinstance(error := task.exception(), AssertionError):
        raise error


def failure_of(seed: int) -> str | None:
    """What a run with this seed broke, if anything."""
    return failure_in(lambda: TwoNodes(seed).run())


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        print(f"seed {asked}")
        print("\n".join(str(fault) for fault in drawn(int(asked))))
        TwoNodes(int(asked)).run()
