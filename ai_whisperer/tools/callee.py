"""What a tool calls: a function, or a tool that was made for LangChain or pydantic-ai, as it is."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

from ai_whisperer.tools import langchain_tool, pydantic_ai_tool
from ai_whisperer.tools.signature import description_of, name_of, signature_of


class OtherTool(Protocol):
    """A tool that was made for LangChain (`BaseTool`) or pydantic-ai (`Tool`)."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str | None: ...


class Callee(Protocol):
    """Something that can be called with what a model wrote.

    `is_async` says that `call` returns an awaitable; otherwise it blocks, and runs in a thread.
    """

    @property
    def schema(self) -> dict[str, Any]: ...

    @property
    def takes_context(self) -> bool: ...

    @property
    def is_async(self) -> bool: ...

    def parse(self, arguments: str) -> dict[str, Any]:
        """The values by name; raises `ToolArgumentsError` that says what does not fit."""
        ...

    def call(self, function: Any, values: dict[str, Any], context: Any) -> Any:
        """Call the function that the tool was made of: functions that are called in the same way share a callee."""
        ...


def is_of_others(candidate: Any) -> bool:
    """Whether it is a tool that was made for LangChain or pydantic-ai."""
    if isinstance(candidate, FunctionType):
        return False  # as nearly all are: an agent may have many of its own
    return langchain_tool.is_one(candidate) or pydantic_ai_tool.is_one(candidate)


def called(candidate: Any) -> str:
    """The name of the tool; nothing if it has none, as a lambda has none."""
    return str(candidate.name) if is_of_others(candidate) else name_of(candidate)


def described(candidate: Any) -> str:
    """What the tool says that it does."""
    return str(candidate.description or "") if is_of_others(candidate) else description_of(candidate)


def wants_approval(candidate: Any) -> bool:
    """Whether the tool says by itself that a person has to allow each call."""
    return is_of_others(candidate) and pydantic_ai_tool.is_one(candidate) and bool(candidate.requires_approval)


def callee_of(candidate: Any, tool: str, *, context: type) -> Callee:
    """How the tool is called; `context` is the type of what the runtime fills in.

    Raises `InvalidInputError` that names the tool, and says what to change, if models cannot call it.
    """
    if is_of_others(candidate):
        if langchain_tool.is_one(candidate):
            return langchain_tool.LangChainCallee(candidate, tool)
        return pydantic_ai_tool.PydanticAiCallee(candidate, tool)
    return signature_of(candidate, tool, context=context)
