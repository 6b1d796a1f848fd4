"""Plays a conversation script in a universe. People outlive the process: what was cut off they do again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.errors import ConflictError, WhispererError
from ai_whisperer.replay import lines
from ai_whisperer.replay.expecting import UnmetError
from ai_whisperer.replay.place import Place
from ai_whisperer.replay.playing import Player
from ai_whisperer.replay.script import Script
from ai_whisperer.storm.process import DiedError, UniverseProcess
from ai_whisperer.testing.stuck import StuckError, settled

PATIENCE_SECONDS = 3_600.0
"""So long, in virtual time, people wait for what a line is about, unless nothing can come any more."""
REST_SECONDS = 7 * 86_400.0
"""So long they wait at the end until the team is at rest; providers may be down for hours."""
_LOOK_SECONDS = 0.1
_LONGEST_LOOK_SECONDS = 5.0


class Driver(Place):
    """The people of a universe. What they did not get is in `injection.seen.unmet`."""

    def __init__(self, script: Script, process: UniverseProcess) -> None:
        self._script = script
        self._process = process
        self._player = Player(self, patience_seconds=PATIENCE_SECONDS)

    @property
    def session(self) -> Any:
        return self._process.session

    def check(self, script: Script) -> None:
        """Everything can be done here."""

    async def crash(self) -> None:
        raise NotImplementedError("A universe is not killed from within one of its own lines.")

    async def restart(self) -> None:
        raise NotImplementedError("A universe is not started from within one of its own lines.")

    def drive(self) -> None:
        """From the first line to the rest after the last."""
        self._insist(self._player.begin)
        for line in self._script.lines:
            self._play(line)
        if not self._process.is_alive:
            self._process.start_again()
        try:
            self._insist(self._rest, within=REST_SECONDS)
        except StuckError:
            return  # somebody waits, and the log tells for what

    def _play(self, line: lines.Line) -> None:
        process = self._process
        if isinstance(line, lines.Crash):
            process.kill()
        elif isinstance(line, lines.Restart):
            process.start_again()
        elif not process.is_alive:
            process.later(line.seconds if isinstance(line, lines.Wait) and line.seconds else 0.0)
        else:
            self._insist(lambda: self._do(line), again=lambda: self._do(line, again=True))

    def _insist(
        self,
        work: Callable[[], Any],
        *,
        again: Callable[[], Any] | None = None,
        within: float = 2 * PATIENCE_SECONDS,
    ) -> None:
        """Do it, and do it again whenever the process dies meanwhile."""
        while True:
            try:
                self._process.do(work(), within=within)
            except DiedError:
                work = again or work
            else:
                return

    async def _do(self, line: lines.Line, *, again: bool = False) -> None:
        injection = self._process.injection
        seen = injection.seen
        try:
            if isinstance(line, lines.Expect):
                await self._expect(line)
            elif isinstance(line, lines.Wait):
                await self._wait(line)
            else:
                if not again:
                    await injection.act()
                await self._act(line)
        except UnmetError as error:
            seen.unmet.append(_told(line, str(error)))
        except ConflictError as error:
            if not again:  # else it was done before the process died
                seen.unmet.append(_told(line, error.message))
        except WhispererError as error:
            seen.unmet.append(_told(line, error.message))

    async def _act(self, line: lines.Line) -> None:
        if isinstance(line, lines.Decide | lines.AnswerQuestion):
            kind = "question:" if isinstance(line, lines.AnswerQuestion) else "approval:"
            agent = line.agent
            if not await self._until(lambda: _waits_for(self.session.get_agent_status(agent), kind)):
                raise UnmetError(f"{agent} asks nothing that could be decided.")
        await self._player.play(line)
        if isinstance(line, lines.Say):
            self._process.injection.seen.accepted_tasks.append(self._player.id_of(line))
        elif isinstance(line, lines.SendMail):
            self._process.injection.seen.accepted_mails.append(self._player.id_of(line))

    async def _wait(self, line: lines.Wait) -> None:
        agent = line.agent
        if agent is None:
            await self._player.play(line)
        elif not await self._until(lambda: not _has_work(self.session.get_agent_status(agent))):
            raise UnmetError(f"{agent} still has something to do.")

    async def _expect(self, line: lines.Expect) -> None:
        """Faults take time: how long it may take says nothing here. It is given up when nothing more can come."""
        expectations = self._player.expectations
        if line.never or isinstance(line, lines.ExpectAnswer | lines.ExpectFailure):
            await expectations.meet(line if line.never else replace(line, within=PATIENCE_SECONDS))
            return
        looked_at = -1

        async def is_met() -> bool:
            nonlocal looked_at
            if looked_at == self.session.last_seq:
                return False  # nothing has happened since
            looked_at = self.session.last_seq
            found, _ = await expectations.look(line)
            return found

        if not await self._until(is_met):
            raise UnmetError("it did not come.")

    async def _until(self, condition: Callable[[], Any]) -> bool:
        """Wait until it holds; False if it does not, and nothing more can happen."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + PATIENCE_SECONDS, _LOOK_SECONDS
        seq = -1
        while loop.time() < end:
            held = condition()
            if (await held) if asyncio.iscoroutine(held) else held:
                return True
            session = self.session
            if seq == session.last_seq:
                if self._is_over():
                    return False
                pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)
            else:
                seq, pause = session.last_seq, _LOOK_SECONDS
            await asyncio.sleep(pause)
        return False

    def _is_over(self) -> bool:
        """Whether nobody works, and nobody will by themselves."""
        session = self.session
        statuses: list[AgentStatus] = session.list_agents()
        if any(_is_at_work(each) or each.sleeping_until is not None for each in statuses):
            return False
        return session.is_flushed and not session.list_schedules()

    async def _rest(self) -> None:
        await settled(self.session)


def _told(line: lines.Line, why: str) -> str:
    return f"line {line.number}, {line.written}: {why}"


def _waits_for(status: AgentStatus, kind: str) -> bool:
    return any(each.startswith(kind) for each in status.waiting_for)


def _has_work(status: AgentStatus) -> bool:
    return bool(status.running_tasks or status.queue_size)


def _is_at_work(status: AgentStatus) -> bool:
    if status.missing_tools:
        return False
    return status.state is AgentState.ACTIVE or (
        status.started and status.state is AgentState.IDLE and status.queue_size > 0
    )
