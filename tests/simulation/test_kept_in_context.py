"""What stays in a conversation that is made shorter: the person's words, the agent's notes, and how things stand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, Budget
from ai_whisperer.domain.conversation import Answer, Usage, UserTurn
from ai_whisperer.models.base import ModelRequest
from tests.simulation import stage
from tests.simulation.context_stage import (
    STEPS,
    WINDOW,
    Listener,
    big,
    call,
    calls,
    chat,
    create,
    is_summary,
    play,
    step_of,
    steps_of,
    texts_of,
)
from tests.simulation.stage import prompt_of, results_of, round_of, until


def test_of_long_words_of_a_person_a_part_is_kept_and_the_rest_can_be_read() -> None:
    demand = f"BEGIN {'word ' * 700}END"

    def read(request: ModelRequest) -> Answer | str:
        if prompt_of(request) != "What did I want?" or round_of(request):
            return results_of(request)[-1][-3:] if round_of(request) else "fine " * 100
        kept = next(turn.text for turn in request.turns if isinstance(turn, UserTurn) and "BEGIN" in turn.text)
        return call("read_result", step=kept.split('step "')[1].split('"')[0], offset=3_000)

    model = Listener(read)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 1)
        await manager.run_task("ann", demand, thread_id="talk")
        await chat(manager, 3, first=10)
        await manager.wait_task(await manager.compact_context("ann", thread_id="talk"))
        report = await manager.get_context("ann", thread_id="talk")
        assert report.compaction is not None
        (kept, *_) = report.compaction.said
        assert kept.startswith("BEGIN")
        assert len(kept) < WINDOW // 16 * 4
        assert await manager.run_task("ann", "What did I want?", thread_id="talk") == "END"

    play(scenario, model)


@pytest.mark.usefixtures("without_threads")
@pytest.mark.parametrize("earlier", [["hello"], []], ids=["told in an earlier task", "told in the same task"])
def test_an_agent_is_told_its_latest_notes_in_place_of_what_is_covered(tmp_path: Path, earlier: list[str]) -> None:
    """What it has noted down in a long task it knows when the beginning of that task is no longer shown."""

    def note(text: str) -> Answer:
        return call("memory", command="create", path="MEMORY.md", content=text, overwrite=True)

    def say(request: ModelRequest) -> Answer | str:
        prompt, step = prompt_of(request), step_of(request)
        if prompt == "note":
            return "noted" if step else note("old notes")
        if "work" not in texts_of(request):
            return "fine"
        if step == 1:
            return note("new notes")
        return replace(call("big", size=step), text="let me see " * 300) if step < 9 else "done"

    model = Listener(say)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": ["memory", "big"], "context": {"window": WINDOW, "keep": 1}})
        await manager.run_task("ann", "note")
        for prompt in (*earlier, "work"):
            await manager.run_task("ann", prompt, thread_id="talk")

    STEPS.clear()
    stage.play(scenario, model, tools=[big], work=tmp_path)
    told = {False: set[tuple[str, ...]](), True: set[tuple[str, ...]]()}
    for request in model.requests[2:]:
        notes = (turn.memory for turn in request.turns if isinstance(turn, UserTurn))
        told["made shorter by the runtime" in texts_of(request)].add(tuple(filter(None, notes)))
    assert told == {False: {("old notes",)}, True: {("new notes",)}}


def test_the_card_says_all_that_is_open() -> None:
    """Nothing of it is in the summary that the model wrote."""

    def say(request: ModelRequest) -> Answer | str:
        prompt = prompt_of(request)
        if "ask around" in prompt and round_of(request) == 0:
            return calls(("ask_user", {"question": "Where to?"}), ("send_mail_with_switch", WHERE))
        if "part of it" in prompt and round_of(request) == 0:
            return call("sleep_here", seconds=10_000)
        if "work" not in prompt or is_summary(request):
            return "fine"
        wanted = WORK[step_of(request) : step_of(request) + 1]
        if not wanted:
            return "done"
        return replace(calls(*wanted), text="let me see " * 700, usage=Usage(output_tokens=1_000))

    async def sleep_here(seconds: int) -> str:
        """Takes its time."""
        await asyncio.sleep(seconds)
        return "awake"

    model = Listener(say)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        granted = [*{name for name, _ in WORK}, "ask_user", "send_mail_with_switch"]
        context = {"window": 12_000, "keep": 1}
        await manager.create_agent("ann", {"tools": granted, "context": context, "limits": {"max_concurrent_tasks": 2}})
        await manager.create_agent("bob", {"tools": ["sleep_here"]})
        await manager.create_schedule("ann", cron="0 9 * * *", prompt="look around", schedule_id="daily")
        await manager.send_task("ann", "ask around", task_id="asking")
        await until(lambda: _is_mailed(manager, "bob"))
        await manager.pause_agent("ann")
        await manager.send_mail("ann", "A wish", "Please.", mail_id="wish")
        task = await manager.send_task("ann", "work", budget=Budget(max_tokens=900_000), priority="urgent")
        await manager.resume_agent("ann")
        async with asyncio.timeout(100):
            await until(lambda: _is_compacted(manager))
        made = (await steps_of(manager))[-1].compaction
        assert made is not None
        for part in (
            "Delegated to bob, result not in yet: 'Do a part of it.'",
            "Waiting for the person's answer to question asking.2",
            "Waiting for an answer of bob to mail asking.3~mail",
            "Holding the lock door, token ",
            "Not answered yet: mail wish from user, 'A wish'",
            "Budget left for the task and all it causes: 89",
            "Schedule daily: 0 9 * * *",
        ):
            assert part in made.card
        assert made.card not in made.summary
        await manager.cancel_task(task)

    stage.play(scenario, model, tools=[big, sleep_here])


WHERE = {"to_agent": "bob", "subject": "Where", "body": "part of it: where?"}
WORK: list[tuple[str, dict[str, Any]]] = [
    ("check_mail", {}),
    ("acquire_lock", {"name": "door"}),
    ("delegate_task", {"to_agent": "bob", "task": "Do a part of it."}),
    *(("big", {"size": number}) for number in range(4)),
]


async def _is_mailed(manager: AsyncAgentSessionManager, agent: str) -> bool:
    return bool(await manager.mailbox(agent))


async def _is_compacted(manager: AsyncAgentSessionManager) -> bool:
    return any(step.compaction is not None and step.compaction.card for step in await steps_of(manager))
