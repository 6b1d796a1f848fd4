"""A Python function with type hints and a docstring becomes a tool, and so does a tool of LangChain or pydantic-ai.

What it is called with is read from its signature when it is provided, once for each function.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypedDict, Unpack, overload

import msgspec
from msgspec.structs import replace

from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.domain.waits import Touch
from ai_whisperer.errors import InvalidInputError, LockNotHeldError, ToolArgumentsError, ToolError
from ai_whisperer.tools.approving import NeedsApproval, check_needs_approval, says_yes_is_needed
from ai_whisperer.tools.callee import Callee, OtherTool, called, callee_of, described, is_of_others, wants_approval
from ai_whisperer.tools.returning import as_text, is_large
from ai_whisperer.tools.signature import Signature
from ai_whisperer.tools.touching import Touches, check_touches, touches_of
from ai_whisperer.tools.workplace import Workplace


class CancelSignal:
    """Set once, from the event loop; read from any thread."""

    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
"""What all providers take as the name of a tool."""

Idempotent = bool | Callable[[Mapping[str, Any]], bool]
"""Whether calls may be repeated after a crash, or a function from the arguments of a call to that."""


def _no_progress(text: str) -> None:
    """Nobody listens."""


def _no_locks(lock: str, token: int) -> AbstractContextManager[None]:
    """There is no session whose locks could be held."""
    raise LockNotHeldError(f"This call belongs to no task, so it cannot hold lock '{lock}' with token {token}.")


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls, and for what. A tool that has a parameter of this type is given it.

    `step_id` is the same when the call is repeated after a crash: use it as the idempotency key of outside effects.
    `cancelled` is set when the task is stopped; a function that blocks should look at it now and then. `workplace` is
    what of the machine the agent may use. `progress` shows people a piece of output while the tool still runs; it is
    called from the event loop. `guards` makes what `guard` returns.
    """

    session_id: str
    agent_id: str
    task_id: str
    step_id: str
    cancelled: CancelSignal
    workplace: Workplace | None = None
    progress: Callable[[str], None] = _no_progress
    guards: Callable[[str, int], AbstractContextManager[None]] = _no_locks

    def guard(self, lock: str, token: int) -> AbstractContextManager[None]:
        """Do the decisive act, such as a rename or a request, as the holder of a lock: `with context.guard(…): …`.

        Raises `LockNotHeldError` unless the calling task holds the lock with exactly this token at that moment. While
        the block runs the lease does not end: expiry, release and break wait for it, but for 30 seconds at most. A
        block that took longer and lost the lock raises `LockNotHeldError` at its end. It works on the event loop, where
        the block may await, and in the thread of a tool that is a plain function.
        """
        return self.guards(lock, token)


class Tool:
    """A function that models can call. `idempotent` says that a call may be repeated after a crash, or which may.

    `function` can be a tool of LangChain or pydantic-ai too. `touches` names the resources that a call touches, see
    `tools.touching`; `needs_approval` that a person has to allow each call first, or those that a function of the
    arguments says; `untrusted` that its results hold what strangers may have written; `optional` that agents which
    have all tools do not wait for it where it is not provided again.
    """

    __slots__ = (
        "_callee",
        "_spec",
        "function",
        "idempotent",
        "name",
        "needs_approval",
        "optional",
        "touches",
        "untrusted",
    )

    def __init__(
        self,
        function: AnyFunction,
        *,
        name: str = "",
        idempotent: Idempotent = False,
        touches: Touches = (),
        needs_approval: NeedsApproval = False,
        untrusted: bool = False,
        optional: bool = False,
    ) -> None:
        self.function: Any = function
        self.name = name or called(function)
        self.idempotent = idempotent
        self.touches = check_touches(touches)
        self.needs_approval = check_needs_approval(needs_approval) or wants_approval(function)
        self.untrusted = untrusted
        self.optional = optional
        self._spec: ToolSpec | None = None
        self._callee: Callee | None = None

    def check(self) -> Tool:
        """The tool itself; raises `InvalidInputError` that says what to change if models cannot call it."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInputError(_bad_name(self.name))
        self.spec  # noqa: B018 - it is made now
        return self

    @property
    def spec(self) -> ToolSpec:
        """What models are told of the tool; raises `InvalidInputError` if they cannot call it."""
        if self._spec is None:
            callee, description = self.callee, described(self.function) or self.name
            if isinstance(callee, Signature):
                self._spec = callee.parameters.told(self.name, description, untrusted=self.untrusted)
            else:
                self._spec = ToolSpec(
                    name=self.name, description=description, parameters=callee.schema, untrusted=self.untrusted
                )
        return self._spec

    @property
    def callee(self) -> Callee:
        if self._callee is None:
            self._callee = callee_of(self.function, self.name, context=ToolContext)
        return self._callee

    @property
    def takes_context(self) -> bool:
        """Whether the function, or a `call` of a tool's own, looks at the `ToolContext` of its call."""
        return type(self).call is not Tool.call or self.callee.takes_context

    def may_repeat(self, arguments: str) -> bool:
        """Whether a call with these arguments does no harm if it is done twice; not if that cannot be told.

        That they do not fit now does not say that they did not when the call began: a file may have gone since.
        """
        if not callable(self.idempotent):
            return self.idempotent
        try:
            values = self.callee.parse(arguments)
        except ToolArgumentsError:
            return False
        try:
            return bool(self.idempotent(values))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - anybody's code
            return False

    def touched_by(self, arguments: str, workplace: Workplace) -> tuple[Touch, ...]:
        """What a call touches. Raises `ToolArgumentsError` if they do not fit: then it must not run.

        Raises `ToolError` if the tool does not say it in a way that can be understood.
        """
        if not self.touches:
            return ()
        values = self.callee.parse(arguments)
        try:
            return touches_of(self.touches, values, workplace)
        except (ToolError, KeyboardInterrupt):
            raise
        except BaseException as error:
            what = type(error).__name__  # in words it may raise again
            raise ToolError(f"What the tool '{self.name}' touches cannot be determined: {what}.") from error

    def wants_approval(self, arguments: str) -> bool:
        """Whether the tool itself says that a person has to allow a call with these arguments.

        Raises `ToolArgumentsError` if they do not fit. Then the call must not run, though they may fit a moment later:
        types such as `FilePath` look at the world.
        """
        if not self.needs_approval:
            return False
        return says_yes_is_needed(self.needs_approval, self.callee.parse(arguments))

    def asks_before(self, step_id: str, arguments: str, *, is_listed: bool) -> bool:
        """Whether a person has to allow this call: the definition of the agent names the tool, or it says so itself.

        Raises `ToolArgumentsError` like `wants_approval`.
        """
        del step_id
        return is_listed or self.wants_approval(arguments)

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        """Run the function and return its result; raises `ToolArgumentsError` or what the function raises.

        When the call is cancelled it ends only once the function has really ended: a coroutine is cancelled; a plain
        function runs in a thread, sees `context.cancelled`, and its result counts.
        """
        callee = self.callee
        values = callee.parse(arguments)
        if callee.is_async:
            result = await callee.call(self.function, values, context)
        else:
            result = await in_thread(self._run, {"values": values, "context": context}, context.cancelled)
            if isinstance(result, Awaitable):
                result = await result
        if is_large(result):  # the event loop is not for that
            result = await in_thread(as_text, {"name": self.name, "result": result}, context.cancelled)
        return self._result(result)

    def _run(self, values: dict[str, Any], context: ToolContext) -> Any:
        """Call the plain function, in its thread, and let what it returns be text already when it leaves it."""
        result = self.callee.call(self.function, values, context)
        return result if isinstance(result, Awaitable) else self._result(result)

    def _result(self, result: Any) -> ToolResult:
        if isinstance(result, ToolResult) and isinstance(result.content, str):
            return replace(result, untrusted=self.untrusted)
        return ToolResult(content=as_text(self.name, result), untrusted=self.untrusted)


AnyFunction = Tool | Callable[..., Any] | OtherTool
"""What can be provided as a tool."""


class Stated(TypedDict, total=False):
    """What can be said of a tool, see `Tool`."""

    name: str
    idempotent: Idempotent
    touches: Touches
    needs_approval: NeedsApproval
    untrusted: bool
    optional: bool


@overload
def tool(function: AnyFunction, /, **stated: Unpack[Stated]) -> Tool: ...
@overload
def tool(**stated: Unpack[Stated]) -> Callable[[AnyFunction], Tool]: ...
def tool(function: AnyFunction | None = None, /, **stated: Any) -> Tool | Callable[[AnyFunction], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(idempotent=True)` if repeating it after a crash does no harm.

    `tool(search, idempotent=True)` says the same of a tool of LangChain or pydantic-ai. `touches="write file:{path}"`
    lets calls that touch the same thing take turns; `needs_approval=True` lets each call wait until a person has
    allowed it, a function such calls for whose arguments it returns True; `untrusted=True` tells models that the
    results may be written by strangers; with `optional=True` agents that have all tools do not wait for this one where
    it is not provided again.
    """
    return partial(Tool, **stated) if function is None else Tool(function, **stated)


def as_tool(candidate: AnyFunction) -> Tool:
    """The tool itself, or what was provided made into one; raises `InvalidInputError` unless models can call it."""
    if isinstance(candidate, Tool):
        return candidate.check()
    if not callable(candidate) and not is_of_others(candidate):
        raise InvalidInputError(
            f"{candidate!r} cannot be a tool. Give a function, what @tool made of one, or a tool of LangChain or "
            "pydantic-ai."
        )
    return Tool(candidate).check()


def as_tools(candidates: Iterable[AnyFunction]) -> list[Tool]:
    """The functions as tools; raises `InvalidInputError` unless models can call each."""
    if not isinstance(candidates, Iterable):
        raise InvalidInputError(f"tools must be a list of functions, not {type(candidates).__name__}.")
    return [as_tool(each) for each in candidates]


def _bad_name(name: Any) -> str:
    if not name:
        return "A lambda has no name, so it cannot be a tool. Give it one: tool(…, name='look_up')."
    return (
        f"A tool cannot be called {name!r}: providers take up to 64 letters (a-z, A-Z), digits, _ and -. Give it "
        "another name: @tool(name='look_up')."
    )


async def in_thread(function: Callable[..., Any], values: dict[str, Any], cancelled: CancelSignal) -> Any:
    """Run a function in a thread of its own: it waits for no other, and what it raises is raised here.

    An event loop on virtual time can have `stand_still_until`: time then does not pass before the thread has ended.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def run() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (function(**values), None)
        except BaseException as error:  # noqa: BLE001 - SystemExit too must end this call, not the process
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits any more
            loop.call_soon_threadsafe(ended.set_result, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="whisperer-tool", daemon=True).start()
    stand_still_until = getattr(loop, "stand_still_until", None)
    if stand_still_until is not None:
        stand_still_until(ended)
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            # The thread cannot be ended from outside, and to leave it running would be to lie about the stop. So it
            # is waited for; then what it did is known, and is told like any other result.
            cancelled.set()
            current = asyncio.current_task()
            if current is not None:
                current.uncancel()
    result, error = ended.result()
    if error is not None:
        raise error
    return result
