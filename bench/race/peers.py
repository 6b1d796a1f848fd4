"""Who takes part in the race, in which environment, and how each does each workload; or why it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MESSAGES, TASKS, AGENTS, RESTART = "messages", "tasks", "agents", "restart"

_KEEPS_NOTHING = "keeps nothing on disk by itself: `save_state` returns a value that the caller may keep"


@dataclass(frozen=True)
class Entrant:
    """One that takes part. The requirements are empty if it runs in the environment of this repository."""

    name: str
    script: str
    how: Mapping[str, str]
    distribution: str = ""
    """The package whose version is shown."""
    requirements: tuple[str, ...] = ()
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Workloads in which it takes no part, and why."""

    @property
    def module(self) -> str:
        return f"bench.race.peer_{self.script}"


FLOOR = Entrant(
    name="floor",
    script="floor",
    how={
        MESSAGES: "asyncio queues; a row on disk before each message is handed over",
        TASKS: "plain asyncio; each step's result on disk, by group commit with a sync, before the next begins",
        AGENTS: "an object in a dict, and a row on disk",
        RESTART: "continues after the last row of each task",
    },
)
OURS = Entrant(
    name="AI Whisperer",
    script="ai_whisperer",
    distribution="ai-whisperer",
    how={
        MESSAGES: "`send_mail_with_switch`: a mail and the mail that answers it, each handled by a task of its own; "
        "no model: `send_mail` from Python and `mailbox`, which reads it",
        TASKS: "`send_task`; every commit is synced; queue, journal and notifications as always",
        AGENTS: "`create_agent`: checked, tools too, started, announced, and on disk",
        RESTART: "opening the folder; the tool is `idempotent`, as else a call that may have been made is not repeated",
    },
)
PEERS = (
    Entrant(
        name="autogen",
        script="autogen",
        distribution="autogen-core",
        requirements=("autogen-core", "autogen-agentchat"),
        how={
            MESSAGES: "`send_message` in `SingleThreadedAgentRuntime` and the value that it returns; each handler "
            "keeps a model context and asks its model client with it",
            TASKS: "`AssistantAgent`",
            AGENTS: "`AssistantAgent`",
        },
        cannot={"messages-durable": _KEEPS_NOTHING, "tasks-durable": _KEEPS_NOTHING, RESTART: _KEEPS_NOTHING},
    ),
    Entrant(
        name="langgraph",
        script="langgraph",
        distribution="langgraph",
        requirements=("langgraph", "langchain", "langgraph-checkpoint-sqlite"),
        how={
            MESSAGES: "two nodes with `Command(goto=…)`, each asks its model with the messages of the state; "
            '`AsyncSqliteSaver`, `durability="sync"`',
            TASKS: '`create_agent`; `AsyncSqliteSaver`, `durability="sync"`',
            AGENTS: "`create_agent`",
            RESTART: "`ainvoke(None)` on each thread",
        },
    ),
    Entrant(
        name="openai-agents",
        script="openai_agents",
        distribution="openai-agents",
        requirements=("openai-agents",),
        how={
            MESSAGES: "handoffs within a run; `SQLiteSession`",
            TASKS: "`Runner.run`; `SQLiteSession`",
            AGENTS: "`Agent` with `function_tool`",
            RESTART: "`Runner.run` on the conversation that was kept",
        },
    ),
    Entrant(
        name="agno",
        script="agno",
        distribution="agno",
        requirements=("agno", "aiosqlite", "sqlalchemy", "greenlet"),
        how={
            MESSAGES: 'a `Team` whose leader delegates to its member; `AsyncSqliteDb`, `checkpoint="tool-batch"`',
            TASKS: '`Agent.arun`; `AsyncSqliteDb`, `checkpoint="tool-batch"`',
            AGENTS: "`Agent`, in memory; tools are looked at in the first run",
            RESTART: "`acontinue_run`",
        },
    ),
    Entrant(
        name="agent-framework",
        script="agent_framework",
        distribution="agent-framework-core",
        requirements=("agent-framework-core",),
        how={
            MESSAGES: "two executors of a workflow, each with an `Agent` and its session, which is in the checkpoints; "
            "`FileCheckpointStorage`, without a sync",
            TASKS: "`Agent`; durable: a workflow of two executors, model and tool, with `FileCheckpointStorage`, "
            "without a sync",
            AGENTS: "`Agent`",
            RESTART: "each workflow from its latest checkpoint",
        },
    ),
    Entrant(
        name="pydantic-ai",
        script="pydantic_ai",
        distribution="pydantic-ai-slim",
        requirements=("pydantic-ai-slim", "dbos"),
        how={
            MESSAGES: "delegation: a tool of one agent runs the other; `DBOSDurability` on SQLite "
            "(DBOS advises PostgreSQL for production)",
            TASKS: "`Agent` with `FunctionModel`; `DBOSDurability` on SQLite, the tool a step",
            AGENTS: "`Agent`",
            RESTART: "`DBOS.launch`",
        },
    ),
    Entrant(
        name="google-adk",
        script="google_adk",
        distribution="google-adk",
        requirements=("google-adk", "aiosqlite", "sqlalchemy", "greenlet"),
        how={
            MESSAGES: "`transfer_to_agent` to the sub-agent and back; `DatabaseSessionService` on SQLite",
            TASKS: "`LlmAgent` in a `Runner`; `DatabaseSessionService` on SQLite, resumable app",
            AGENTS: "`LlmAgent`, in memory; tools are looked at in the first run",
            RESTART: "`run_async` with the invocation's id",
        },
    ),
)
ENTRANTS = (FLOOR, OURS, *PEERS)
HAVE_HANDLERS = ("floor", "AI Whisperer", "autogen", "langgraph", "agent-framework")
"""Those in which a message can go without a model; elsewhere an agent and its model are always between."""
