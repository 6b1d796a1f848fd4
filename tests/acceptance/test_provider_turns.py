"""Whatever a provider sends, an agent that asks it lets the event loop have its turn."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.definition import LIBRARY_CLIENT, OWN_CLIENT
from ai_whisperer.testing.model_server import ModelServer, Reply
from tests.acceptance.held_up import LONGEST, longest_callback
from tests.acceptance.hostile_answers import ANSWERS, TEXTS, sent
from tests.effort import spread

pytestmark = pytest.mark.usefixtures("provider_environment")

TRIES = 8
"""Whatever else the machine does makes a callback longer, never shorter: the best of some counts."""


async def note(text: str = "", items: list[Any] | None = None) -> str:
    """Takes what it is given."""
    return f"{len(text)} characters, {len(items or ())} items"


def longest_of(client: str) -> float:
    """How long the event loop may be held up; by the library's client, whose work is not ours, three times as long."""
    return LONGEST if client == OWN_CLIENT else 3 * LONGEST


def longest_for(answer: bytes, folder: Path, client: str) -> float:
    """The longest callback, in readings of the document, of a task whose model gives this answer, then a short one."""
    found: list[float] = []

    async def run(server: ModelServer) -> None:
        async with AsyncAgentSessionManager(folder, tools=[note]) as manager:
            subscription = manager.subscribe(deltas=True)
            definition = {"model": "openai-chat:m", "settings": {"client": client}, "retry": {"max_attempts": 1}}
            await manager.create_agent("alice", definition)
            assert await manager.run_task("alice", "warm up") == "fine"
            for number in range(TRIES):
                with longest_callback() as longest:
                    task = await manager.wait_task(await manager.send_task("alice", "go"))
                    await manager.flushed()
                assert task.state in (TaskState.COMPLETED, TaskState.FAILED)
                found.append(longest.readings)
                if found[-1] <= longest_of(client):
                    break
                assert len(server.received) >= number + 2
            subscription.close()

    def respond(body: dict[str, Any], _: int) -> Reply:
        last = body["messages"][-1]
        return Reply(raw=lambda: sent(answer)) if last["content"] == "go" else Reply(text="fine")

    async def main() -> None:
        async with ModelServer(respond) as server:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OPENAI_BASE_URL", server.base_url)
                await run(server)

    asyncio.run(main())
    return min(found)


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_answer_holds_the_event_loop_up(kind: str, tmp_path: Path) -> None:
    assert longest_for(ANSWERS[kind], tmp_path, OWN_CLIENT) <= LONGEST


@pytest.mark.parametrize("kind", [list(ANSWERS)[number] for number in spread(len(ANSWERS) - 1, usual=18, first=0)])
def test_no_answer_that_the_library_reads_holds_the_event_loop_up(kind: str, tmp_path: Path) -> None:
    """What is after the client is the same for both, so some are enough."""
    assert longest_for(ANSWERS[kind], tmp_path, LIBRARY_CLIENT) <= longest_of(LIBRARY_CLIENT)


@pytest.mark.parametrize("kind", TEXTS)
def test_no_text_holds_the_event_loop_up(kind: str, tmp_path: Path) -> None:
    assert longest_for(TEXTS[kind], tmp_path, OWN_CLIENT) <= LONGEST
