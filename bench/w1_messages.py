"""W1, messages between agents: how many are accepted a second, and how many are handled a processor second."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, MailDraft, TaskState
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from bench import floor
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W1"
SENDERS = 200
PAIRS = 100
SUBJECT = "Ping"
BODY = "The build of the second module is green. Take the next one from the list and say when it is done. " * 2

_AT_ONCE = 10
_SIDES = ("raw", "floor", "ours")


def probes(*, quick: bool) -> list[Probe]:
    less = 5 if quick else 1
    found = [
        Probe("raw crowd", in_fresh_process(raw_batches, rows=20_000 // less, batch=100)),
        Probe("floor crowd", in_fresh_process(floor_accepts, senders=SENDERS, mails=100 // less)),
        Probe("ours crowd", in_fresh_process(ours_accepts, senders=SENDERS, mails=100 // less)),
        Probe("ours batches", in_fresh_process(ours_accepts_batches, senders=SENDERS, mails=100 // less)),
        Probe("raw serial", in_fresh_process(raw_batches, rows=1_500 // less, batch=1)),
        Probe("floor serial", in_fresh_process(floor_accepts, senders=1, mails=1_500 // less)),
        Probe("ours serial", in_fresh_process(ours_accepts, senders=1, mails=1_500 // less)),
    ]
    for place, durable in (("memory", False), ("durable", True)):
        found += [
            Probe(f"floor {place}", in_fresh_process(floor_ping_pong, mails=200 // less, durable=durable)),
            Probe(f"ours {place}", in_fresh_process(ours_handle, mails=20 // less, durable=durable)),
            Probe(f"relay {place}", in_fresh_process(ours_relay, hops=10 // min(less, 2), durable=durable)),
        ]
    return found


def figures(samples: Samples) -> list[Figure]:
    found = []
    for how, name, limit in (("crowd", "200 senders at once", 0.15), ("serial", "one sender, serial", 0.5)):
        raw, basis, ours = (values_of(samples, f"{side} {how}", "mails_per_second") for side in _SIDES)
        target = Target(limit, at_least=True, of="raw")
        found.append(Figure(f"accepted durably, {name}", "mails/s", ours, floor=basis, raw=raw, target=target))
    raw, basis = (values_of(samples, f"{side} crowd", "mails_per_second") for side in ("raw", "floor"))
    ours = values_of(samples, "ours batches", "mails_per_second")
    name = f"accepted durably, {SENDERS} senders at once, {_AT_ONCE} a call"
    found.append(Figure(name, "mails/s", ours, floor=basis, raw=raw))
    for place in ("memory", "durable"):
        basis = values_of(samples, f"floor {place}", "mails_per_cpu_second")
        for side, name in (("ours", "mail, task, final"), ("relay", "mail, task, send_mail, final")):
            ours = values_of(samples, f"{side} {place}", "mails_per_cpu_second")
            found.append(Figure(f"handled in whole loops, {place}: {name}", "mails/CPU s", ours, floor=basis))
    return found


def raw_batches(folder: Path, *, rows: int, batch: int) -> Sample:
    """What SQLite does by itself: so many rows in each synced transaction, in one plain loop."""
    connection = floor.open_database(folder)
    mails = [_mail_row(number) for number in range(rows)]
    watch = Stopwatch()
    for start in range(0, rows, batch):
        connection.execute("BEGIN IMMEDIATE")
        for row in mails[start : start + batch]:
            connection.execute(floor.INSERT_MAIL, row)
        connection.execute("COMMIT")
    return _accepted(watch, rows)


async def floor_accepts(folder: Path, *, senders: int, mails: int) -> Sample:
    journal = floor.GroupCommit(folder)

    async def send(sender: int) -> None:
        for number in range(mails):
            await journal.write(floor.INSERT_MAIL, _mail_row(sender * mails + number))

    watch = Stopwatch()
    await asyncio.gather(*map(send, range(senders)))
    return _accepted(watch, senders * mails)


async def ours_accepts(folder: Path, *, senders: int, mails: int) -> Sample:
    """The recipients are not started, so that nothing but the acceptance is measured."""
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        agents = [await manager.create_agent(f"agent-{each}", auto_start=False) for each in range(senders)]

        async def send(sender: int) -> None:
            for _ in range(mails):
                await manager.send_mail(agents[sender], SUBJECT, BODY)

        watch = Stopwatch()
        await asyncio.gather(*map(send, range(senders)))
        sample = _accepted(watch, senders * mails)
        assert all([len(await manager.mailbox(agent, limit=mails + 1)) == mails for agent in agents])
    return sample


async def ours_accepts_batches(folder: Path, *, senders: int, mails: int) -> Sample:
    """The same with several mails in each call."""
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        for each in range(senders):
            await manager.create_agent(f"agent-{each}", auto_start=False)

        async def send(sender: int) -> None:
            drafts = [MailDraft(to=f"agent-{sender}", subject=SUBJECT, body=BODY)] * _AT_ONCE
            for _ in range(mails // _AT_ONCE):
                await manager.send_mails(drafts)

        watch = Stopwatch()
        await asyncio.gather(*map(send, range(senders)))
        sample = _accepted(watch, senders * mails)
        assert len(await manager.sent_mail(limit=senders * mails + 1)) == senders * mails
    return sample


async def floor_ping_pong(folder: Path, *, mails: int, durable: bool) -> Sample:
    """Pairs of agents, each an asyncio queue; a mail is answered with the next one."""
    journal = floor.GroupCommit(folder) if durable else None

    async def play(pair: int) -> None:
        inboxes: tuple[asyncio.Queue[floor.Row], ...] = (asyncio.Queue(), asyncio.Queue())

        async def answer(side: int) -> None:
            for number in range(side, mails, 2):
                row = _mail_row(pair * mails + number)
                if journal is not None:
                    await journal.write(floor.INSERT_MAIL, row)
                inboxes[1 - side].put_nowait(row)
                if number + 1 < mails:
                    await inboxes[side].get()

        async def begin_second() -> None:
            await inboxes[1].get()
            await answer(1)

        await asyncio.gather(answer(0), begin_second())

    watch = Stopwatch()
    await asyncio.gather(*map(play, range(PAIRS)))
    return _handled(watch, PAIRS * mails)


async def ours_handle(folder: Path, *, mails: int, durable: bool) -> Sample:
    """The user mails agents; each mail becomes a task whose model answers at once."""
    answers = _Countdown(PAIRS * mails)
    model = FunctionModel(lambda _: answers.done())
    async with AsyncAgentSessionManager(folder if durable else None, model_factory=lambda _: model) as manager:
        for pair in range(PAIRS):
            await manager.create_agent(f"agent-{pair}")

        async def send(pair: int) -> None:
            for _ in range(mails):
                await manager.send_mail(f"agent-{pair}", SUBJECT, BODY)

        watch = Stopwatch()
        await asyncio.gather(*map(send, range(PAIRS)))
        await answers.is_over.wait()
        await _rest(manager)
        sample = _handled(watch, PAIRS * mails)
        await _check_completed(manager, PAIRS * mails)
    return sample


async def ours_relay(folder: Path, *, hops: int, durable: bool) -> Sample:
    """Pairs of agents mail each other with the `send_mail` tool, all in one thread a pair."""
    left = dict.fromkeys(range(PAIRS), hops - 1)
    answers = _Countdown(PAIRS * hops)

    def answer(request: ModelRequest) -> Answer | str:
        side, _, pair = request.agent_id.partition("-")
        if isinstance(request.turns[-1], ToolTurn) or not left[int(pair)]:
            return answers.done()
        left[int(pair)] -= 1
        other = "pong" if side == "ping" else "ping"
        arguments = f'{{"to_agent":"{other}-{pair}","subject":"{SUBJECT}","body":"{BODY}"}}'
        return Answer(tool_calls=(ToolCall(call_id=request.step_id, name="send_mail", arguments=arguments),))

    model = FunctionModel(answer)
    async with AsyncAgentSessionManager(folder if durable else None, model_factory=lambda _: model) as manager:
        for pair in range(PAIRS):
            await manager.create_agent(f"ping-{pair}")
            await manager.create_agent(f"pong-{pair}")
        watch = Stopwatch()
        await asyncio.gather(*(manager.send_mail(f"ping-{pair}", SUBJECT, BODY) for pair in range(PAIRS)))
        await answers.is_over.wait()
        await _rest(manager)
        sample = _handled(watch, PAIRS * hops)
        await _check_completed(manager, PAIRS * hops)
    return sample


async def _rest(manager: AsyncAgentSessionManager) -> None:
    """Return when the newest task of each agent has ended, on disk too. The tasks of one agent end in their order."""
    newest = [task for agent in manager.active_sessions for task in await manager.list_tasks(agent, limit=1)]
    await asyncio.gather(*map(manager.wait_task, newest))


class _Countdown:
    """Answers "Done." so many times, then tells that it has."""

    def __init__(self, answers: int) -> None:
        self._left = answers
        self.is_over = asyncio.Event()

    def done(self) -> str:
        self._left -= 1
        if not self._left:
            self.is_over.set()
        return "Done."


async def _check_completed(manager: AsyncAgentSessionManager, expected: int) -> None:
    tasks = [task for agent in manager.active_sessions for task in await manager.list_tasks(agent, limit=10_000)]
    assert len(tasks) == expected, f"{len(tasks)} tasks instead of {expected}"
    assert all(task.state is TaskState.COMPLETED for task in tasks)


def _mail_row(number: int) -> floor.Row:
    """A mail with as many columns, and as long, as one of ours."""
    mail_id = f"{number:024x}"
    return (
        *(mail_id, "default", mail_id, "user", number, f"agent-{number % SENDERS}", SUBJECT, BODY, number, "user:user"),
        *("normal", None, "queued", None, time.time(), None),
    )


def _accepted(watch: Stopwatch, mails: int) -> Sample:
    wall, cpu = watch.read()
    return {"mails_per_second": mails / wall, "cpu_seconds": cpu}


def _handled(watch: Stopwatch, mails: int) -> Sample:
    wall, cpu = watch.read()
    return {"mails_per_cpu_second": mails / cpu, "mails_per_second": mails / wall}
