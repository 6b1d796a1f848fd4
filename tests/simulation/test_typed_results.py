"""Tasks whose answer has to fit a schema: asked once more if it does not, over crashes too."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer, UserTurn
from ai_whisperer.errors import DefinitionError, DuplicateIdError, InvalidInputError, TaskEndedError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import Say, call, play, play_over_crash, prompt_of, results_of, round_of


@dataclasses.dataclass
class City:
    name: str
    people: int


ROME = '{"name": "Rome", "people": 3}'
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def speaks(*words: str) -> Say:
    """A model whose answers to a task are these, one after the other; the last one again and again."""

    def say(request: ModelRequest) -> str:
        asked = sum(isinstance(turn, UserTurn) for turn in request.turns)
        return words[min(asked, len(words)) - 1]

    return say


async def steps_of(manager: AsyncAgentSessionManager, task_id: str) -> int:
    return len(await manager.list_steps(task_id))


def test_run_task_returns_a_value_of_the_type_that_was_asked_for() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        assert await manager.run_task("ada", "Which city?", output=City, task_id="t") == City("Rome", 3)
        task = await manager.get_task("t")
        assert task.result is not None
        assert task.result.output == {"name": "Rome", "people": 3}
        assert task.result.final == '{"name":"Rome","people":3}'

    play(scenario, speaks(f"```json\n{ROME}\n```"))


def test_the_model_is_told_the_schema_behind_the_prompt_and_the_prompt_stays_as_it_was_given() -> None:
    seen: list[UserTurn] = []

    def say(request: ModelRequest) -> str:
        seen.extend(turn for turn in request.turns if isinstance(turn, UserTurn))
        return ROME

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.run_task("ada", "Which city?", output=City)
        assert seen[0].text == "Which city?"
        assert '"people":{"type":"integer"}' in seen[0].note

    play(scenario, say)


def test_an_answer_that_does_not_fit_is_asked_for_once_more_with_what_is_wrong() -> None:
    objections: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        if isinstance(request.turns[-1], UserTurn) and len(request.turns) > 1:
            objections.append(request.turns[-1].text)
        return speaks("Rome.", ROME)(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        assert await manager.run_task("ada", "Which city?", output=SCHEMA, task_id="t") == {"name": "Rome", "people": 3}
        assert [objection[:24] for objection in objections] == ["There is no JSON in your"]
        assert await steps_of(manager, "t") == 2

    play(scenario, say)


def test_an_answer_that_never_fits_fails_the_task_with_the_reason_and_a_retry_asks_again() -> None:
    words = ["Rome.", "Rome!", "Rome?", ROME]

    def say(_: ModelRequest) -> str:
        return words.pop(0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        with pytest.raises(TaskEndedError, match="does not fit the output schema"):
            await manager.run_task("ada", "Which city?", output=City, task_id="t")
        failed = await manager.get_task("t")
        assert failed.state is TaskState.FAILED
        assert failed.error is not None
        assert failed.error.code == "output"
        assert manager.get_agent_status("ada").state == "idle"
        ended = await manager.wait_task(await manager.retry_task("t"))
        assert ended.result is not None
        assert ended.result.output == {"name": "Rome", "people": 3}
        assert await steps_of(manager, "t") == 4

    play(scenario, say)


def test_tools_may_be_used_before_and_after_an_answer_that_does_not_fit() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("list_agents")
        return "They are there." if prompt_of(request) == "Who?" else ROME

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        assert await manager.run_task("ada", "Who?", output=City, task_id="t") == City("Rome", 3)
        assert await steps_of(manager, "t") == 6

    play(scenario, say)


def test_an_answer_in_several_parts_has_its_value_in_the_last_one() -> None:
    words = ["I look first.\n[CONTINUE]", ROME]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        assert await manager.run_task("ada", "Which city?", output=City) == City("Rome", 3)

    play(scenario, lambda _: words.pop(0))


def test_an_answer_that_its_length_has_cut_is_asked_for_anew() -> None:
    words: list[Answer | str] = [Answer(text='{"name": "Ro', finish="length"), ROME]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        assert await manager.run_task("ada", "Which city?", output=City) == City("Rome", 3)

    play(scenario, lambda _: words.pop(0))


def test_a_definition_may_have_a_schema_for_the_tasks_of_its_agent_and_not_for_its_chats() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "bob":
            is_asked = prompt_of(request) == "ask ada" and round_of(request) == 0
            return call("delegate_task", to_agent="ada", task="Which city?") if is_asked else "given"
        return ROME if "JSON" in next(turn for turn in request.turns if isinstance(turn, UserTurn)).note else "Hello."

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {"output_schema": SCHEMA})
        await manager.create_agent("bob")
        own = await manager.wait_task(await manager.send_task("ada", "Which city?"))
        assert own.result is not None
        assert own.result.output == {"name": "Rome", "people": 3}
        await manager.run_task("bob", "ask ada")
        await manager.at_rest()
        delegated = next(task for task in await manager.list_tasks("ada") if task.kind == "delegated_task")
        assert delegated.result is not None
        assert delegated.result.output == {"name": "Rome", "people": 3}
        room = await manager.open_chat("ada")
        await manager.post_message(room, "Hi")
        await manager.at_rest()
        assert [message.text for message in await manager.room_messages(room)] == ["Hi", "Hello."]

    play(scenario, say)


def test_what_a_typed_task_causes_has_no_schema_of_its_own() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "bob":
            return "Plain words."
        if round_of(request) == 0:
            return call("send_mail_with_switch", to_agent="bob", subject="?", body="Which?")
        return ROME if "Plain words." in results_of(request)[-1] else "no"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.create_agent("bob")
        assert await manager.run_task("ada", "Which city?", output=City) == City("Rome", 3)

    play(scenario, say)


def test_bad_schemas_are_refused_before_anything_happens() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        bad: Any
        for bad in ([], 5, {"type": "objekt"}, object):
            with pytest.raises(InvalidInputError):
                await manager.send_task("ada", "Which city?", output=bad)
        with pytest.raises(DefinitionError, match="output_schema: "):
            await manager.create_agent("bob", {"output_schema": {"type": "objekt"}})
        assert await manager.list_tasks() == []

    play(scenario)


def test_the_same_id_with_another_schema_is_something_else() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.send_task("ada", "Which city?", output=City, task_id="t")
        await manager.send_task("ada", "Which city?", output=City, task_id="t")
        with pytest.raises(DuplicateIdError):
            await manager.send_task("ada", "Which city?", output=SCHEMA, task_id="t")

    play(scenario, speaks(ROME))


@pytest.mark.parametrize("crash_after_seconds", [0.5, 1.05, 1.5, 2.05, 2.5])
def test_a_crash_at_any_time_asks_no_more_often_and_ends_with_the_same_value(crash_after_seconds: float) -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id)
        return speaks("Rome.", ROME)(request)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.run_task("ada", "Which city?", output=City, task_id="t")

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert await manager.run_task("ada", "Which city?", output=City, task_id="t") == City("Rome", 3)
        assert await steps_of(manager, "t") == 2
        assert sorted(set(asked)) == ["t.1", "t.2"]
        assert len(asked) <= 3

    play_over_crash(before, after, say, crash_after_seconds=crash_after_seconds)
