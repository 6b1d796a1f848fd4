"""Tools that were made for LangChain: objects of `langchain_core.tools.BaseTool`, also what its `@tool` makes.

The package is not imported: whoever has such a tool has it, and it is known by the name of its class.
"""

from __future__ import annotations

import inspect
from typing import Any

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.tools.nesting import check_depth, check_unions
from ai_whisperer.tools.other_tools import is_instance, plain_schema
from ai_whisperer.tools.parameters import json_object, validated

_FILLED_BY_LANGCHAIN = ("callbacks", "run_manager")


def is_one(candidate: Any) -> bool:
    return is_instance(candidate, "langchain_core", "BaseTool")


class LangChainCallee:
    """A tool of LangChain. It checks its arguments itself; the model is told before what does not fit."""

    __slots__ = ("_model", "_tool", "is_async", "schema")

    takes_context = True  # the id of the call is in it

    def __init__(self, tool: Any, name: str) -> None:
        self._tool = tool
        try:
            stated = _text_schema(tool) if _takes_text(tool) else tool.tool_call_schema
            made = stated if isinstance(stated, dict) else _schema_of(stated)
            nobody_fills = _filled_by_nobody(tool, stated)
        except Exception as error:  # anybody's types
            raise InvalidInputError(
                f"The tool '{name}' of LangChain has no JSON Schema: {type(error).__name__}: {error}"
            ) from error
        if nobody_fills:
            raise InvalidInputError(
                f"The tool '{name}' of LangChain needs '{nobody_fills}', which a graph would give it and there is none "
                "here. Give it a default, or write a function around it."
            )
        self.schema = plain_schema(made)
        self._model = stated if hasattr(stated, "model_validate") and not tool.handle_validation_error else None
        if self._model is not None:
            check_unions(name, self.schema)
        self.is_async = _is_async(tool)

    def parse(self, arguments: str) -> dict[str, Any]:
        values = json_object(arguments)
        if self._model is not None:
            check_depth(arguments)
            validated(self._model.model_validate, values, known=self.schema["properties"])
        return values

    def call(self, function: Any, values: dict[str, Any], context: Any) -> Any:
        del function  # it is the tool itself
        request = {"type": "tool_call", "id": context.step_id, "name": self._tool.name, "args": values}
        return self._called_async(request) if self.is_async else _result_of(self._tool.invoke(request))

    async def _called_async(self, request: dict[str, Any]) -> Any:
        return _result_of(await self._tool.ainvoke(request))


def _takes_text(tool: Any) -> bool:
    """Whether it is of the kind that is called with one text, whatever that is called."""
    return is_instance(tool, "langchain_core", "Tool") and tool.args_schema is None


def _text_schema(tool: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict(tool.args), "required": list(tool.args), "additionalProperties": False}


def _schema_of(model: Any) -> dict[str, Any]:
    """The schema of a model of pydantic, of its first version too."""
    made: dict[str, Any] = model.model_json_schema() if hasattr(model, "model_json_schema") else model.schema()
    return made


def _is_async(tool: Any) -> bool:
    """Whether it has a coroutine of its own: what LangChain runs in a thread runs in one of ours instead."""
    if hasattr(tool, "coroutine"):
        return tool.coroutine is not None
    home = next(each for each in type(tool).__mro__ if "_arun" in vars(each))
    return home.__module__.partition(".")[0] != "langchain_core"


def _filled_by_nobody(tool: Any, stated: Any) -> str | None:
    """A parameter that neither a model nor LangChain without a graph gives, if there is one."""
    if isinstance(stated, dict):
        return None
    fields = getattr(tool.get_input_schema(), "model_fields", {})
    shown = getattr(stated, "model_fields", fields)
    for name, field in fields.items():
        by_id = any("InjectedToolCallId" in repr(each) for each in field.metadata)
        if name not in shown and field.is_required() and not by_id:
            return str(name)
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    if function is None or is_instance(tool, "langchain_core", "Tool"):
        return None
    for parameter in inspect.signature(function).parameters.values():
        is_given = parameter.name in fields or parameter.name in _FILLED_BY_LANGCHAIN
        is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        is_config = "RunnableConfig" in str(parameter.annotation)
        if is_named and parameter.default is parameter.empty and not is_given and not is_config:
            return parameter.name
    return None


def _result_of(message: Any) -> Any:
    """The content of the message that LangChain makes of a result; whatever else a tool returns as it is."""
    if not hasattr(message, "tool_call_id") or not hasattr(message, "content"):
        return message
    if message.status == "error":
        return ToolResult(content=str(message.content), is_error=True)
    return message.content
