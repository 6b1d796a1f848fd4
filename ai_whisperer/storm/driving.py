"""Plays a conversation script in a universe: each line as people do it who wait for what they react to."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.errors import ConflictError, WhispererError
from ai_whisperer.replay import lines
from ai_whisperer.replay.expecting import UnmetError
from ai_whisperer.replay.place import Place
from ai_whisperer.replay.playing import Player
from ai_whisperer.replay.script import Script
from ai_whisperer.storm.people import PATIENCE_SECONDS, People
from ai_whisperer.storm.process import UniverseProcess
from ai_whisperer.testing.stuck import StuckError


class Driver(People, Place):
    """The people of a script."""

    def __init__(self, script: Script, process: UniverseProcess) -> None:
        super().__init__(process)
        self._script = script
        self._player = Player(self, patience_seconds=PATIENCE_SECONDS)

    def check(self, script: Script) -> None:
        """Everything can be done here."""

    async def crash(self) -> None:
        raise NotImplementedError("A universe is not killed from within one of its own lines.")

    async def restart(self) -> None:
        raise NotImplementedError("A universe is not started from within one of its own lines.")

    def drive(self) -> None:
        """From the first line to the rest after the last."""
        self.insist(self._player.begin)
        for line in self._script.lines:
            self._play(line)
        self.come_to_rest()

    def _play(self, line: lines.Line) -> None:
        process = self._process
        if isinstance(line, lines.Crash):
            process.kill()
        elif isinstance(line, lines.Restart):
            process.start_again()
        elif not process.is_alive:
            process.later(line.seconds if isinstance(line, lines.Wait) and line.seconds else 0.0)
        else:
            try:
                self.insist(lambda: self._do(line), again=lambda: self._do(line, again=True))
            except StuckError as error:
                process.injection.seen.unmet.append(_told(line, str(error)))

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
        if isinstance(line, lines.Decide | lines.AnswerQuestion) and not self._player.has_chosen(line):
            kind = "question:" if isinstance(line, lines.AnswerQuestion) else "approval:"
            agent = line.agent
            if not await self.until(lambda: _waits_for(self.session.get_agent_status(agent), kind)):
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
        elif not await self.until(lambda: not _has_work(self.session.get_agent_status(agent))):
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

        if not await self.until(is_met):
            raise UnmetError("it did not come.")


def _told(line: lines.Line, why: str) -> str:
    return f"line {line.number}, {line.written}: {why}"


def _waits_for(status: AgentStatus, kind: str) -> bool:
    return any(each.startswith(kind) for each in status.waiting_for)


def _has_work(status: AgentStatus) -> bool:
    return bool(status.running_tasks or status.queue_size)
