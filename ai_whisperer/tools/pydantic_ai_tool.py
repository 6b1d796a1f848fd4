"""Tools that were made for pydantic-ai: objects of `pydantic_ai.Tool`.

The package is not imported: whoever has such a tool has it, and it is known by the name of its class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from ai_whisperer.errors import InvalidInputError, ToolError
from ai_whisperer.tools.nesting import check_depth, check_unions
from ai_whisperer.tools.other_tools import is_instance, plain_schema
from ai_whisperer.tools.parameters import no_object, validated

_FOR_THE_MODEL = ("ModelRetry", "ToolFailed")


def is_one(candidate: Any) -> bool:
    return is_instance(candidate, "pydantic_ai", "Tool")


class PydanticAiCallee:
    """A tool of pydantic-ai. What needs a run of pydantic-ai is refused: there is none here."""

    __slots__ = ("_function", "_plan", "_timeout_seconds", "is_async", "schema")

    takes_context = False

    def __init__(self, tool: Any, name: str) -> None:
        plan = tool.function_schema
        self.is_async = bool(plan.is_async)
        self._timeout_seconds = getattr(tool, "timeout", None)
        hindrance = self._hindrance(tool)
        if hindrance:
            raise InvalidInputError(f"The tool '{name}' of pydantic-ai {hindrance}")
        self._plan = plan
        self._function = tool.function
        self.schema = plain_schema(plan.json_schema)
        check_unions(name, self.schema)

    def parse(self, arguments: str) -> dict[str, Any]:
        check_depth(arguments)
        values = validated(self._plan.validator.validate_json, arguments or "{}", known=self.schema["properties"])
        if self._plan.single_arg_name is not None and not isinstance(values, dict):
            return {self._plan.single_arg_name: values}
        if not isinstance(values, dict):
            raise no_object()
        return values

    def call(self, function: Any, values: dict[str, Any], context: Any) -> Any:
        del function, context  # one is the tool itself, of the other it knows nothing
        given = dict(values)
        by_place = [given.pop(each) for each in self._plan.positional_fields]
        if self._plan.var_positional_field is not None:
            by_place.extend(given.pop(self._plan.var_positional_field))
        if self.is_async:
            return self._awaited(self._function(*by_place, **given))
        try:
            return _result_of(self._function(*by_place, **given))
        except Exception as error:
            raise _told(error) from error

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        timeout = asyncio.timeout(self._timeout_seconds)
        try:
            async with timeout:
                return _result_of(await result)
        except Exception as error:
            if isinstance(error, TimeoutError) and timeout.expired():
                raise ToolError(f"It took longer than {self._timeout_seconds} seconds, and was ended.") from error
            raise _told(error) from error

    def _hindrance(self, tool: Any) -> str:
        if tool.takes_ctx:
            return (
                "takes a RunContext, and there is no run of pydantic-ai here. Bind what it needs with "
                "functools.partial, or take a ToolContext in a function of your own."
            )
        if tool.prepare is not None or getattr(tool, "args_validator", None) is not None:
            return (
                "has a `prepare` or an `args_validator`, which need a run of pydantic-ai. Write a function around it "
                "that checks the arguments, and use needs_approval= for what a person should allow."
            )
        if self._timeout_seconds is not None and not self.is_async:
            return "has a timeout, but a plain function cannot be ended from outside. Make it `async def`."
        return ""


def _result_of(result: Any) -> Any:
    return result.return_value if is_instance(result, "pydantic_ai", "ToolReturn") else result


def _told(error: Exception) -> Exception:
    """What the tool meant for the model to read, as such; any other error as it is."""
    of_pydantic_ai = any(is_instance(error, "pydantic_ai", each) for each in _FOR_THE_MODEL)
    return ToolError(str(getattr(error, "message", error))) if of_pydantic_ai else error
