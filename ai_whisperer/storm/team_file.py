"""A team in a file: a conversation script, or a Python file that has one. Each universe gets all of it anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any

from ai_whisperer.choices import nearest
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import DefinitionError, ModelError, StormError, ToolFileError
from ai_whisperer.models.base import Model, ModelRequest
from ai_whisperer.models.scripted import FunctionModel, ScriptedModel
from ai_whisperer.replay.script import Script, parse_script, read_script
from ai_whisperer.storm.driving import Driver
from ai_whisperer.storm.invariants import Invariant, check_names, invariants_in, line_in
from ai_whisperer.storm.process import Setting
from ai_whisperer.storm.team import StormTeam
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.project_files import run_file, tools_in

_LATENCY_SECONDS = 1.0
_TALK, _ANSWER, _RULES = "talk", "answer", "rules"


class FileTeam:
    """The team in a file, with the invariants of other files."""

    def __init__(self, path: Path, *, invariants: Sequence[Path] = ()) -> None:
        """Raises `StormError` or `ScriptError` if it cannot be a team: all of it is tried once."""
        self.path = path
        self.invariants = tuple(invariants)
        self._script = None if path.suffix == ".py" else _script_of(path)
        self.team()

    def team(self) -> StormTeam:
        own = [] if self._script is not None else [self.path]
        script, rules, answer = self._script, None, None
        modules: dict[Path, ModuleType] = {}
        for path in (*own, *(script.tools if script is not None else ())):
            modules[path] = _run(path)
        if script is None:
            module = modules[self.path]
            script, rules, answer = _talk_of(module, self.path)
            modules |= {path: _run(path) for path in script.tools}
        tools = {tool.name: tool for path, module in modules.items() for tool in _tools(module, path)}
        found = [each for path, module in modules.items() for each in invariants_in(vars(module), where=str(path))]
        with _importable(modules):
            known = {path.resolve() for path in modules}
            more = {path.resolve(): path for path in self.invariants}
            found += [each for real, path in more.items() if real not in known for each in invariants_of(path)]
        check_names(found)
        mistakes: list[StormError] = []
        model = _model_of(script, rules, answer and _checked(answer, self.path, mistakes), where=self.path)
        return StormTeam(
            people=lambda process: Driver(script, process).drive(),
            setting=Setting(model=model, tools=list(tools.values())),
            invariants=found,
            mistakes=mistakes,
        )


def invariants_of(path: Path) -> list[Invariant]:
    """The invariants of a file that is there for them; raises `StormError` if there is none."""
    found = invariants_in(vars(_run(path)), where=str(path))
    if not found:
        raise StormError(
            f"{path}: there is no invariant in it. Put @invariant before a function of the log: "
            "`from ai_whisperer.storm import invariant`."
        )
    return found


def _script_of(path: Path) -> Script:
    """The script; of a file that is none at all, say so rather than complain about its first line."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise StormError(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix in (".yaml", ".yml"):
        raise StormError(
            f"{path} is no team: rules say what models answer, and a conversation script what people do. Give the "
            f"script, with the line `rules {path.name}` at its beginning."
        )
    if start.lstrip()[:1] in (b"{", b"[") or b"\0" in start:
        raise StormError(
            f"{path} is no team: give a conversation script, or a Python file with one. A schedule that a storm has "
            "written is played with --replay."
        )
    return read_script(path)


def _talk_of(module: ModuleType, path: Path) -> tuple[Script, Path | None, Callable[[ModelRequest], Any] | None]:
    talk = getattr(module, _TALK, None)
    if not isinstance(talk, str):
        near = nearest(_TALK, [name for name in vars(module) if not name.startswith("_")])
        meant = f" There is '{near}': did you mean that?" if near else ""
        raise StormError(
            f"{path} is no team: it has no text called `talk`, a conversation script with its agents and what people "
            f"say to them.{meant}"
        )
    script = parse_script(talk, name=f"{path}, talk", folder=path.parent)
    rules, answer = getattr(module, _RULES, None), getattr(module, _ANSWER, None)
    if rules is not None and not isinstance(rules, str | os.PathLike):
        raise StormError(f"{path}: `rules` has to be the path of a file with rules.")
    if answer is not None and (not callable(answer) or iscoroutinefunction(answer)):
        raise StormError(f"{path}: `answer` has to be a plain function of the request: `def answer(request): …`.")
    return script, None if rules is None else path.parent / rules, answer


def _model_of(
    script: Script, rules: Path | None, answer: Callable[[ModelRequest], Answer | str] | None, *, where: Path
) -> Model:
    """Who speaks for the agents: a function, or rules. A storm asks no real model."""
    if answer is not None:
        return FunctionModel(answer, latency_seconds=_LATENCY_SECONDS)
    chosen = script.rules or rules
    if chosen is None:
        raise StormError(
            f"{where} does not say what the models answer, and a storm asks no real one: thousands of universes would "
            "cost thousands of times as much. Write `rules FILE.yaml` at its beginning"
            + (", or `def answer(request)`." if where.suffix == ".py" else ".")
        )
    try:
        return ScriptedModel.from_file(chosen)
    except DefinitionError as error:
        raise StormError(f"{where}: {error.message}") from error


def _checked(
    answer: Callable[[ModelRequest], Any], where: Path, mistakes: list[StormError]
) -> Callable[[ModelRequest], Answer | str]:
    """The function; what is wrong with it is no failure of a model, and is noted as a mistake."""

    def say(request: ModelRequest) -> Answer | str:
        try:
            said = answer(request)
        except ModelError:
            raise
        except Exception as error:
            what = f"`answer` failed: {type(error).__name__}: {error}{line_in(str(where), error)}"
            mistake = StormError(f"{where}: {what}. Let it raise a ModelError where a model is to fail.")
            mistakes.append(mistake)
            raise mistake from error
        if isinstance(said, str | Answer):
            return said
        mistake = StormError(
            f"{where}: `answer` returned {'nothing' if said is None else type(said).__name__} when {request.agent_id} "
            "was asked; a text or an Answer is needed."
        )
        mistakes.append(mistake)
        raise mistake

    return say


def _run(path: Path) -> ModuleType:
    try:
        return run_file(path)
    except ToolFileError as error:
        raise StormError(error.message) from error


def _tools(module: ModuleType, path: Path) -> list[Tool]:
    try:
        return tools_in(module, path)
    except ToolFileError as error:
        raise StormError(error.message) from error


@contextmanager
def _importable(modules: dict[Path, ModuleType]) -> Iterator[None]:
    """Let files of invariants import the files of this universe by their plain names: `from invoice import LEDGER`."""
    named = {path.stem: module for path, module in modules.items() if path.stem not in sys.stdlib_module_names}
    before = {name: sys.modules.get(name) for name in named}
    sys.modules.update(named)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
