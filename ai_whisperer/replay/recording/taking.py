"""Recording: what a store has of a session becomes a `Recording`. The session itself knows nothing of it.

What models were asked is in no row: it follows from the journal. So a recording is played once when it is made, and
what the models are asked then is noted. That shows too whether the session can be played at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.causal_paths import Paths
from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.tasks import Failure, StepKind, StepRecord
from ai_whisperer.errors import RecordingError
from ai_whisperer.replay.recording.asking import definition_digest, digest_of, told_tools
from ai_whisperer.replay.recording.blotting import Scrub, blotted, digested
from ai_whisperer.replay.recording.format import FORMAT, Agent, Entry, Header, Input, Recording, Reply, Result, Tool
from ai_whisperer.replay.recording.inputs import Lead, leads_of
from ai_whisperer.replay.recording.rows import Rows, read_rows
from ai_whisperer.store.base import Store
from ai_whisperer.tools.function import AnyFunction, as_tool
from ai_whisperer.tools.registry import INSIDE, machine_tools
from ai_whisperer.version import __version__

Offered = AnyFunction | ToolSpec
"""A tool that a session was given, or what models are told of it."""
_ADDED = " The provider asks to wait for "
"""How the sentence begins that the runtime adds to what a provider said."""
_UNKNOWN_TOOL = "You have no tool "
"""How the runtime answers for a tool that there is not."""

__all__ = ["Offered", "Scrub", "record"]


async def record(
    store: Store,
    session_id: str = "default",
    *,
    first: int = 1,
    last: int | None = None,
    tools: Iterable[Offered] = (),
    scrub: Scrub | None = None,
) -> Recording:
    """Record a session that the store has, up to entry `last` of its log; it may be open, and nothing is changed.

    From entry `first` on the log is compared when the recording is played; what came before is played too. `tools` are
    those that the session was given: what models were told of them is recorded. Secrets are blotted out of all texts;
    then `scrub` is given each, and what it returns is recorded. Raises `RecordingError` that says what to do.
    """
    from ai_whisperer.replay.recording.rerunning import noted

    rows = await read_rows(store, session_id, last=last)
    if not 1 <= first <= rows.log[-1].seq:
        raise RecordingError(
            f"The log of session '{session_id}' has the entries 1 to {rows.log[-1].seq}; it cannot be compared from "
            f"{first} on. Choose a number in between."
        )
    taken = taken_of(rows, tools, first=first)
    return await noted(digested(taken), blotted(taken, scrub))


def taken_of(rows: Rows, tools: Iterable[Offered], *, first: int = 1) -> Recording:
    """The recording as it is in the rows, with all secrets and the arguments of calls."""
    specs = (each if isinstance(each, ToolSpec) else as_tool(each).spec for each in tools)
    return Taking(rows, {spec.name: spec for spec in specs}).recording(first)


class Taking:
    """Makes a recording of rows."""

    def __init__(self, rows: Rows, specs: dict[str, ToolSpec]) -> None:
        self._rows = rows
        self._specs = specs
        self._began_at = rows.log[0].at
        self._paths = Paths()
        self._replies: list[Reply] = []
        self._results: list[Result] = []
        self._open: dict[str, Reply | Result] = {}
        self._repeated: set[str] = set()
        self._waits: dict[str, int] = {}
        self._windows: dict[str, int] = {}

    def recording(self, first: int) -> Recording:
        leads: dict[int, list[Lead]] = defaultdict(list)
        for lead in leads_of(self._rows):
            leads[lead.note.seq].append(lead)
        inputs: list[Input] = []
        entries: list[Entry] = []
        paths = self._paths
        for note in self._rows.log:
            for lead in leads.get(note.seq, ()):
                paths.input = len(inputs) + 1
                inputs.append(
                    Input(
                        number=paths.input,
                        seq=note.seq,
                        at=self._since(note.at),
                        call=lead.call,
                        arguments=paths.causal_data(lead.arguments),
                        cause=note.cause if note.cause.startswith("user:") else f"request:{paths.input}",
                    )
                )
            paths.feed(note.name, note.cause, note.params)
            self._take(note)
            entries.append(
                Entry(
                    seq=note.seq,
                    at=self._since(note.at),
                    name=note.name,
                    cause=_cause(paths, note.cause),
                    params=paths.causal_data(note.params),
                )
            )
        self._close()
        last = self._rows.log[-1]
        header = Header(
            format=FORMAT,
            version=__version__,
            session=self._rows.session_id,
            last=last.seq,
            began_at=self._began_at,
            compared_from=first,
            notes=tuple(self._notes()),
            limits={
                "session": _stated(self._rows.limits),
                "server": _stated(self._rows.server_limits),
            },
        )
        return Recording(
            header=header,
            agents=self._agents(),
            tools=self._tools(),
            inputs=tuple(inputs),
            replies=tuple(self._replies),
            results=tuple(self._results),
            entries=tuple(entries),
        )

    def _notes(self) -> Iterator[str]:
        """What the recording has less of than the session."""
        tasks = self._rows.tasks.values()
        if any(task.parts for task in tasks) or any(said.parts for said in self._rows.messages.values()):
            yield "Images and files that were given to agents are not in it."
        if any(task.notes for task in tasks):
            yield "What agents were told of their memory is not in it."
        started = {
            (note.cause, note.at, note.params["agentId"]) for note in self._rows.log if note.name == "agent.started"
        }
        again = {
            note.params["agentId"]
            for note in self._rows.log
            if note.name == "agent.redefined" and (note.cause, note.at, note.params["agentId"]) in started
        }
        if again:
            yield f"Of agents that were defined again only the last definition is kept: {', '.join(sorted(again))}."

    def _since(self, at: float) -> float:
        return round(at - self._began_at, 6)

    def _take(self, note: Any) -> None:
        """Take what a model or a tool brought, if the entry tells of that."""
        match note.name:
            case "step.started":
                self._began(note)
            case "step.finished":
                self._finished(note)
            case "step.retried":
                self._retried(note)
            case "step.interrupted":
                self._cut(note)
            case "context.compacted":
                self._windows[note.params["agentId"]] = note.params["window"]

    def _began(self, note: Any) -> None:
        params = note.params
        step_id, kind = params["stepId"], params["kind"]
        step = self._rows.steps.get(step_id)
        attempt = params.get("attempt") or 1
        if kind == StepKind.TOOL:
            tool = params["tool"]
            if tool in INSIDE:
                return
            if isinstance(known := self._open.get(step_id), Result):
                self._repeated.add(tool)
                self._results.append(known)
            self._open[step_id] = Result(
                key=self._paths.key(step_id), seq=0, at=0.0, tool=tool, arguments=self._arguments(step)
            )
            return
        key = self._paths.key(step_id) + (".summary" if kind == StepKind.COMPACTION else "")
        known = self._open.get(step_id)
        if isinstance(known, Reply) and known.key == key and known.attempt < attempt:
            self._replies.append(replace(known, interrupted=True))  # its process died, or it was cut off
        self._open[step_id] = Reply(key=key, seq=0, at=0.0, attempt=attempt, model=params.get("model") or "")

    def _arguments(self, step: StepRecord | None) -> str:
        return "" if step is None or step.call is None else self._paths.causal(step.call.arguments)

    def _finished(self, note: Any) -> None:
        step_id, params = note.params["stepId"], note.params
        step, known = self._rows.steps.get(step_id), self._open.pop(step_id, None)
        if known is None or step is None:
            return
        seen = {"seq": note.seq, "at": self._since(note.at)}
        if isinstance(known, Result):
            brought = self._causal(step.result if params["state"] == "done" else None)
            if brought is None:
                self._results.append(known)
            elif not brought.not_run and not brought.content.startswith(_UNKNOWN_TOOL):
                self._results.append(replace(known, result=brought, **seen))
        elif params["state"] == "done":
            if step.answer is not None:
                plain = replace(step.answer, read_as=(), objection="", excused=False)
                self._replies.append(replace(known, answer=self._causal(plain), **seen))
        elif (error := params.get("error")) is not None and error["code"] != "cancelled":
            self._replies.append(replace(known, error=_failure(error), **seen))
        else:
            self._replies.append(replace(known, interrupted=True))

    def _retried(self, note: Any) -> None:
        step_id, params = note.params["stepId"], note.params
        known = self._open.get(step_id)
        if not isinstance(known, Reply):
            return
        self._replies.append(
            replace(
                known,
                seq=note.seq,
                at=self._since(note.at),
                error=_failure(params["error"]),
                wait_seconds=round(params["retryAt"] - note.at, 6),
                retry_after_seconds=params.get("retryAfterSeconds"),
            )
        )
        del self._open[step_id]

    def _cut(self, note: Any) -> None:
        known = self._open.pop(note.params["stepId"], None)
        if isinstance(known, Reply):
            self._replies.append(replace(known, interrupted=True))

    def _close(self) -> None:
        """What was under way at the end has no outcome."""
        for known in self._open.values():
            if isinstance(known, Reply):
                self._replies.append(replace(known, interrupted=True))
            else:
                self._results.append(known)

    def _causal(self, value: Any) -> Any:
        """A record with causal ids in its texts."""
        if value is None:
            return None
        return msgspec.convert(self._paths.causal_data(msgspec.to_builtins(value)), type(value))

    def _agents(self) -> tuple[Agent, ...]:
        created = {
            note.params["agentId"]: note.params.get("createdBy") or ""
            for note in self._rows.log
            if note.name == "agent.created"
        }
        return tuple(
            Agent(
                id=agent_id,
                definition=(definition := self._definition(agent_id)),
                digest=definition_digest(definition),
                tools=self._rows.agents[agent_id].own_tools,
                created_by=by,
                context_window=self._windows.get(agent_id),
            )
            for agent_id, by in created.items()
            if agent_id in self._rows.agents
        )

    def _definition(self, agent_id: str) -> AgentDefinition:
        """The definition without the limits that were changed later: inputs do that again.

        What a limit was before is not kept, but told if it was reached.
        """
        definition = self._rows.agents[agent_id].definition
        before: dict[str, float | None] = {}
        changed: dict[str, float | None] = {}
        for note in self._rows.log:
            if note.params.get("agentId") != agent_id:
                continue
            if note.name == "limit.reached" and note.params["scope"] == "agent":
                before.setdefault(note.params["limit"], note.params["max"])
            elif note.name == "limits.changed":
                for name in note.params["limits"]:
                    changed.setdefault(name, before.get(name))
        return replace(definition, limits=replace(definition.limits, **changed)) if changed else definition

    def _tools(self) -> tuple[Tool, ...]:
        """The tools with effects outside that some agent could have called."""
        granted = {name for agent in self._rows.agents.values() for name in agent.definition.tools or ()}
        provided = {name for agent in self._rows.agents.values() for name in agent.own_tools}
        used = {result.tool for result in self._results}
        machine = machine_tools()
        asked = self._rows.approvals.values()
        found = []
        for name in sorted((granted | provided | used | self._specs.keys()) - INSIDE):
            spec = self._specs.get(name) or (machine[name].spec if name in machine else None)
            approved = {self._paths.causal(each.arguments) for each in asked if each.tool == name}
            found.append(
                Tool(
                    name=name,
                    spec=spec,
                    digest="" if spec is None else digest_of(told_tools((spec,))),
                    repeats=name in self._repeated,
                    approved=tuple(sorted(approved)),  # which become digests when they are blotted
                )
            )
        return tuple(found)


def _cause(paths: Paths, cause: str) -> str:
    return f"input:{paths.input}" if cause.partition(":")[0] in ("user", "request") else paths.causal(cause)


def _failure(error: dict[str, str]) -> Failure:
    """What the provider said, without what the runtime adds to it before the next attempt."""
    return Failure(code=error["code"], message=error["message"].partition(_ADDED)[0])


def _stated(limits: Any) -> dict[str, Any]:
    stated: dict[str, Any] = msgspec.to_builtins(limits)
    return {name: value for name, value in stated.items() if value is not None}
