"""What an agent works with: its tools and its model client."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.definition import INHERIT, AgentDefinition
from ai_whisperer.models.base import Model
from ai_whisperer.runtime.agents.supplies import Supplies
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import ToolRegistry


class Toolkit:
    """The tools and the models of one agent, made when they are first needed: most agents of many do nothing."""

    __slots__ = ("_barred", "_models", "_supplies", "known_registry", "missing_tools", "own_tools")

    def __init__(self, supplies: Supplies, own_tools: Iterable[Tool]) -> None:
        self._supplies = supplies
        self.own_tools = tuple(own_tools)
        self.known_registry: ToolRegistry | None = None
        self._models: dict[str, Model] | None = None
        self._barred: dict[str, float] | None = None
        self.missing_tools: tuple[str, ...] = ()

    def registry(self, record: AgentRecord) -> ToolRegistry:
        if self.known_registry is None:
            self.known_registry = self._supplies.registry(record.definition.tools, self.own_tools)
        return self.known_registry

    def model(self, name: str) -> Model:
        """The agent's own client of that model; raises a `ModelError`."""
        if self._models is None:
            self._models = {}
        model = self._models.get(name)
        if model is None:
            model = self._supplies.model_factory(self._supplies.default_model if name == INHERIT else name)
            self._models[name] = model
        return model

    @property
    def has_models(self) -> bool:
        """Whether there are model clients, which are to be closed."""
        return bool(self._models)

    def take_models(self) -> Sequence[Model]:
        """Part with the model clients, for them to be closed."""
        models, self._models = self._models, None
        return () if models is None else tuple(models.values())

    def barred_models(self, now: Callable[[], float]) -> Collection[str]:
        """Those of its models that are not asked now, since they refused it."""
        if self._barred:
            at = now()
            self._barred = {name: until for name, until in self._barred.items() if until > at}
        return self._barred or ()

    def bar_model(self, name: str, until: float) -> None:
        self._barred = {**(self._barred or {}), name: until}

    def forget_bars(self) -> None:
        """All models may be asked again."""
        self._barred = None

    def forget_registry(self) -> None:
        """The grants have changed."""
        self.known_registry = None

    def look_for_missing_tools(self, record: AgentRecord) -> None:
        """Note the tools that the agent may use and that nobody has provided: without them it waits."""
        granted = record.definition.tools
        wanted = dict.fromkeys(record.own_tools if granted is None else granted)
        self.missing_tools = self.registry(record).missing_from(wanted) if wanted else ()

    def tools_to_remember(self, definition: AgentDefinition) -> tuple[str, ...]:
        """The names of the functions that were provided for the agent: it waits for them when it is back.

        They are its own and, if it has all tools, those of the session that are not optional.
        """
        shared = () if definition.tools is not None else self._supplies.tools
        named = dict.fromkeys(tool.name for tool in (*self.own_tools, *shared) if not tool.optional)
        return self._supplies.shared_names(tuple(named))

    def give_tools(self, record: AgentRecord, tools: Iterable[Tool]) -> None:
        """Take tools in place of those of the same names. Raises if two have one name."""
        given = {tool.name: tool for tool in tools}
        own = (*(tool for tool in self.own_tools if tool.name not in given), *given.values())
        self.known_registry = self._supplies.registry(record.definition.tools, own)
        self.own_tools = own
