"""Which tools an agent has: those that its definition grants, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from operator import is_not

from ai_whisperer.core.contexts import told_bytes
from ai_whisperer.core.shown import READ_RESULT
from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.errors import DuplicateIdError, UnknownToolError
from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.journal_tools import READ_RESULT_TOOL
from ai_whisperer.tools.mail_tools import ASK_USER_TOOL, MAIL_TOOLS
from ai_whisperer.tools.mcp.servers import McpGrants
from ai_whisperer.tools.team_tools import CREATE_AGENT_TOOL, LOCK_TOOLS, TEAM_TOOLS

AnyTool = Tool | CoordinationTool

_SHOWN_CHARACTERS = 100

COORDINATION_TOOLS: Mapping[str, CoordinationTool] = {each.name: each for each in (*MAIL_TOOLS, *TEAM_TOOLS)}
"""Those that work inside the session and that every agent has."""
CREATE_AGENT = CREATE_AGENT_TOOL.name
NAMED_TOOLS: Mapping[str, CoordinationTool] = {
    each.name: each for each in (CREATE_AGENT_TOOL, ASK_USER_TOOL, *LOCK_TOOLS)
}
"""Those that an agent has only if its definition names them."""
INSIDE = frozenset({*COORDINATION_TOOLS, *NAMED_TOOLS, READ_RESULT})
"""The names of all tools that the runtime does itself, without effects outside."""


class ToolRegistry:
    """The tools of one agent. It does not change."""

    __slots__ = ("_specs", "_tools", "_weighed", "_with_rest", "mcp")

    def __init__(
        self,
        offered: Iterable[Tool] = (),
        *,
        granted: tuple[str, ...] | None = None,
        mcp: McpGrants | None = None,
    ) -> None:
        """`offered` are the tools that were provided; `granted=None` grants them all, and the coordination tools.

        One that is called like a tool for the machine takes its place.
        A granted name that nobody offers is left out; `missing_from` tells of it. `mcp` is what is granted of MCP
        servers: these tools are known once they were asked for with `mcp.prepare()`.
        """
        tools: dict[str, AnyTool] = {**COORDINATION_TOOLS, READ_RESULT: READ_RESULT_TOOL}
        machine = machine_tools() if granted is not None else {}
        if granted is not None:  # what reaches the machine or the person, makes agents or is seldom of use
            tools |= {**machine, **NAMED_TOOLS}  # is granted by its name
        for candidate in offered:
            known = tools.get(candidate.name)
            if known not in (None, candidate, machine.get(candidate.name)):
                raise DuplicateIdError(f"There are two tools called '{candidate.name}'. Give one another name.")
            tools[candidate.name] = candidate
        del tools[READ_RESULT]  # no other may be called so; models are told of it when there is something to read
        if granted is not None:
            tools = {name: tools[name] for name in granted if name in tools}
        self._tools = tools
        self._specs: tuple[ToolSpec, ...] | None = None
        self._with_rest: tuple[ToolSpec, ...] = ()
        self._weighed: tuple[tuple[ToolSpec, ...], int] = ((), 0)
        self.mcp = mcp

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        if self._specs is None:
            self._specs = tuple(each.spec for each in self._tools.values())
        return self._specs if self.mcp is None else (*self._specs, *self.mcp.specs)

    @property
    def specs_with_rest(self) -> tuple[ToolSpec, ...]:
        """The tools and, after all others, the one that gets the rest of results that are shown in part."""
        specs = self.specs
        if len(self._with_rest) != len(specs) + 1 or any(map(is_not, self._with_rest, specs)):
            self._with_rest = (*specs, READ_RESULT_TOOL.spec)
        return self._with_rest

    @property
    def told_bytes(self) -> int:
        """What it takes to tell a model of all the tools."""
        specs = self.specs_with_rest
        if self._weighed[0] is not specs:
            self._weighed = (specs, told_bytes("", specs))
        return self._weighed[1]

    def outside(self, name: str) -> Tool:
        """The tool of that name that is a function; raises `UnknownToolError` with the names there are."""
        found = self.find(name)
        if not isinstance(found, Tool):
            of_servers = () if self.mcp is None else (spec.name for spec in self.mcp.specs)
            names = ", ".join(sorted((*self._tools, *of_servers))) or "none"
            raise UnknownToolError(f"You have no tool {_quoted(name)}. Your tools: {names}.")
        return found

    def find(self, name: str) -> AnyTool | None:
        found = self._tools.get(name)
        if found is None and name == READ_RESULT:
            return READ_RESULT_TOOL
        return self.mcp.find(name) if found is None and self.mcp is not None else found

    def told(self, name: str) -> ToolSpec | None:
        """The tool of exactly that name as the model is told about it; None if it is not told of one."""
        found = self._tools.get(name)
        if found is not None:
            return found.spec
        if name == READ_RESULT:
            return READ_RESULT_TOOL.spec
        return None if self.mcp is None else next((each for each in self.mcp.specs if each.name == name), None)

    def missing_from(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that no tool here has."""
        missing = (name for name in names if name not in self._tools)
        return tuple(name for name in missing if self.mcp is None or not self.mcp.covers(name))

    def beyond(self, other: ToolRegistry, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that give a tool here which the other has not, or has another of that name."""
        return tuple(name for name in names if not other._has(name, self._tools.get(name)))

    def _has(self, name: str, tool: AnyTool | None) -> bool:
        if tool is not None:
            return self._tools.get(name) is tool
        return self.mcp is not None and self.mcp.includes(name)


def machine_tools() -> Mapping[str, Tool]:
    """The built-in tools that reach the machine or the network: loaded when a definition first names its tools."""
    from ai_whisperer.tools.machine import MACHINE_TOOLS

    return MACHINE_TOOLS


def told_missing(agent_id: str, missing: Iterable[str], offered: Iterable[Tool]) -> str:
    """What to say of an agent that is granted tools which are not there, with those that may be meant."""
    known = {*COORDINATION_TOOLS, *NAMED_TOOLS, *machine_tools(), *(each.name for each in offered)}
    wanted = list(missing)
    near = dict.fromkeys(each for name in wanted for each in get_close_matches(name, known, n=1))
    hint = f" Did you mean {' and '.join(near)}?" if near else ""
    names = ", ".join(name if name.isidentifier() else _quoted(name) for name in wanted)
    return (
        f"'{agent_id}' is granted tools that nobody has provided: {names}.{hint} `whisperer tools` shows those of a "
        "server; put one of your own into a file in .whisperer/tools and start the server again. In Python, give it to "
        "the manager (tools=, agent_tools=) or to create_agent."
    )


def _quoted(name: str) -> str:
    """The name as it can be shown, whatever a model made up."""
    return f"'{name}'" if name.isprintable() and len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]!r}…"
