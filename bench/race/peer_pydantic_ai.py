"""Pydantic AI in the race: `Agent` with `FunctionModel`, and `DBOSDurability` on SQLite where work is durable.

Tools are steps of DBOS there, as its documentation advises for what talks to the outside. DBOS takes up what was left
by itself when it is launched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

from bench.race.course import BODY, FINAL, USED_PROMPT, Course, Doing, Script, main, prompt_of, tools_of


def _fake(course: Course) -> FunctionModel:
    async def answer(messages, info) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        called = sum(isinstance(part, ToolReturnPart) for part in parts)
        prompt = next(part.content for part in parts if isinstance(part, UserPromptPart))
        fact = await course.next_fact(prompt, called)
        return ModelResponse([TextPart(FINAL) if fact is None else ToolCallPart("look_up", {"fact": fact}, fact)])

    return FunctionModel(answer)


class PydanticAI(Script):
    async def open(self) -> None:
        """DBOS is launched when all agents are known."""
        self._runs: dict[str, Callable[[], Awaitable[int]]] = {}
        if self.course.durable:

            async def run(key: str) -> int:
                """What DBOS calls again by its arguments."""
                if key in self._runs:
                    return await self._runs[key]()
                return (await self._agent_of_all.run(prompt_of(key))).output == FINAL

            DBOS(
                config={
                    "name": "race",
                    "system_database_url": f"sqlite:///{self.course.folder}/dbos.db",
                    "application_version": "1",
                    "executor_id": "race",
                    "log_level": "ERROR",
                    "run_admin_server": False,
                }
            )
            self._run = DBOS.workflow(name="run")(run)
        if self.course.workload.startswith("restart"):
            self._agent_of_all = self._agent("worker")
            DBOS.launch()

    async def ready(self) -> None:
        if self.course.durable:
            DBOS.launch()

    async def make_pair(self, pair: str) -> Doing:
        """Delegation: a tool of one agent runs the other; a question and its answer are two messages."""
        course, questions = self.course, self.course.hops // 2

        async def ask_or_end(messages, info) -> ModelResponse:
            course.asked()
            asked = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
            return ModelResponse([TextPart(BODY) if asked == questions else ToolCallPart("ask", {"body": BODY})])

        async def answer(messages, info) -> ModelResponse:
            course.asked()
            return ModelResponse([TextPart(BODY)])

        answers = Agent(FunctionModel(answer), name=f"answers-{pair}", capabilities=self._durability())
        asks = Agent(FunctionModel(ask_or_end), name=f"asks-{pair}", capabilities=self._durability())

        @asks.tool
        async def ask(ctx: RunContext[None], body: str) -> str:
            """Ask the other agent."""
            return (await answers.run(body, usage=ctx.usage)).output

        async def play() -> int:
            result = await asks.run(BODY, usage_limits=UsageLimits(request_limit=None))
            parts = [part for message in result.all_messages() for part in message.parts]
            return 2 * sum(isinstance(part, ToolReturnPart) for part in parts)

        return self._kept(pair, play)

    async def make_worker(self, task: str) -> Doing:
        agent = self._agent(task)

        async def run() -> int:
            return (await agent.run(prompt_of(task))).output == FINAL

        return self._kept(task, run)

    async def create(self, numbers: Sequence[int]) -> Sequence[Agent]:
        model = _fake(self.course)
        return [Agent(model, tools=tools_of(number)) for number in numbers]

    async def use(self, agent: Agent) -> bool:
        return (await agent.run(USED_PROMPT)).output == FINAL

    async def resume(self, task: str) -> bool:
        """Under an id that is known already this waits for the workflow that DBOS has taken up."""
        return bool(await self._under_id(task))

    def _kept(self, key: str, run: Doing) -> Doing:
        """The same, in the durable case as a workflow whose id is the key."""
        self._runs[key] = run
        return partial(self._under_id, key) if self.course.durable else run

    async def _under_id(self, key: str) -> int:
        with SetWorkflowID(key):
            return await self._run(key)

    def _agent(self, name: str) -> Agent:
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        if self.course.durable:
            look_up = DBOS.step(name=f"{name}-look_up")(look_up)
        return Agent(_fake(self.course), name=name, tools=[look_up], capabilities=self._durability())

    def _durability(self) -> list[DBOSDurability]:
        return [DBOSDurability()] if self.course.durable else []


if __name__ == "__main__":
    main(PydanticAI)
