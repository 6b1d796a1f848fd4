"""Two recordings side by side, aligned by causal paths: where agents first differ, and what it comes to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.forks import Comparison, Parting, PartingKind, Spent, SpentByBoth, Unmatched
from ai_whisperer.replay.recording.asking import plain
from ai_whisperer.replay.recording.blotting import blotted
from ai_whisperer.replay.recording.differences import diff_of
from ai_whisperer.replay.recording.format import Entry, Recording, Reply, Result
from ai_whisperer.replay.recording.rows import read_rows
from ai_whisperer.replay.recording.taking import Offered, taken_of
from ai_whisperer.store.base import Store

_SHOWN_CHARACTERS = 2_000
_LISTED = 100
"""So many calls and mails that only one has are listed of each kind."""


async def record_to_compare(store: Store, session_id: str, *, tools: Iterable[Offered] = ()) -> Recording:
    """What a session has done so far, redacted, for `compare` alone: it is not played, so no request is in it."""
    return blotted(taken_of(await read_rows(store, session_id), tools), None)


def compare(first: Recording, second: Recording) -> Comparison:
    """Lay two recordings side by side: of two sessions, or of one before and after a change."""
    agents = dict.fromkeys((*_agents_of(first), *_agents_of(second)))
    one, two = _steps(first, agents), _steps(second, agents)
    answers = {key for side in (one, two) for steps in side.values() for key, step in steps.items() if step.is_answer}
    flat_one, flat_two = _flat(one), _flat(two)
    same = sum(key in flat_one and key in flat_two and flat_one[key].text == flat_two[key].text for key in answers)
    partings = [found for agent in agents if (found := _parting(agent, one[agent], two[agent])) is not None]
    calls = _unmatched(_calls(first, agents), _calls(second, agents))
    mails = _unmatched(_mails(first), _mails(second))
    spent_by_a, spent_by_b = _spent(first), _spent(second)
    left_out = sum(max(len(each) - _LISTED, 0) for each in (*calls, *mails))
    return Comparison(
        is_same=not (partings or any(calls) or any(mails)),
        first=min(partings, key=_moment, default=None),
        partings=partings,
        same_answers=same,
        other_answers=len(answers) - same,
        calls_only_in_a=calls[0][:_LISTED],
        calls_only_in_b=calls[1][:_LISTED],
        mails_only_in_a=mails[0][:_LISTED],
        mails_only_in_b=mails[1][:_LISTED],
        more=left_out,
        spent=SpentByBoth(a=spent_by_a(None), b=spent_by_b(None)),
        spent_by_agent=[SpentByBoth(agent_id=agent, a=spent_by_a(agent), b=spent_by_b(agent)) for agent in agents],
    )


_SECOND = re.compile(r"\.\d+$")
"""What the second of one kind with one cause ends in."""


def agent_of(key: str, agents: Container[str] = ()) -> str:
    """The agent whose step has this key. The id of one of these `agents` may end as the second of a kind does."""
    last = key.rpartition("/")[0].rpartition(">")[2].partition("~")[0]
    return last if last in agents else _SECOND.sub("", last)


class _Step(NamedTuple):
    seq: int
    text: str
    is_answer: bool


def _agents_of(recording: Recording) -> Iterable[str]:
    return (agent.id for agent in recording.agents)


def _steps(recording: Recording, agents: Container[str]) -> Mapping[str, dict[str, _Step]]:
    """What steps brought, by agent and key, in the order of the log; of several attempts the last one."""
    found: dict[str, dict[str, _Step]] = defaultdict(dict)
    told: list[Reply | Result] = [each for each in recording.replies if each.answer is not None or each.error]
    told += [each for each in recording.results if each.result is not None]
    for each in sorted(told, key=lambda each: each.seq):
        step = _Step(each.seq, _words(each), isinstance(each, Reply))
        found[agent_of(each.key, agents)][each.key] = step
    return found


def _flat(steps: Mapping[str, dict[str, _Step]]) -> dict[str, _Step]:
    return {key: step for of_agent in steps.values() for key, step in of_agent.items()}


def _words(step: Reply | Result) -> str:
    if isinstance(step, Result):
        result = step.result
        return "" if result is None else plain(f"{'[failed] ' if result.is_error else ''}{result.content}")
    if step.error is not None:
        return f"[failed] {step.error.code}: {step.error.message}"
    answer = step.answer or Answer()
    return plain(answer.text + "".join(f"\n[calls {call.name}] {call.arguments}" for call in answer.tool_calls))


def _parting(agent: str, one: Mapping[str, _Step], two: Mapping[str, _Step]) -> Parting | None:
    for key, before in one.items():
        after = two.get(key)
        if after is None:
            return _alone(agent, key, before, PartingKind.ONLY_IN_A)
        if before.text != after.text:
            return Parting(
                agent_id=agent,
                key=key,
                kind=PartingKind.ANSWER if before.is_answer else PartingKind.RESULT,
                seq_a=before.seq or None,
                seq_b=after.seq or None,
                text_a=_shortened(before.text),
                text_b=_shortened(after.text),
                diff=_shortened(diff_of(before.text, after.text)),
            )
    more = next((key for key in two if key not in one), None)
    return None if more is None else _alone(agent, more, two[more], PartingKind.ONLY_IN_B)


def _alone(agent: str, key: str, step: _Step, kind: PartingKind) -> Parting:
    text, seq = _shortened(step.text), step.seq or None
    if kind is PartingKind.ONLY_IN_A:
        return Parting(agent_id=agent, key=key, kind=kind, seq_a=seq, text_a=text)
    return Parting(agent_id=agent, key=key, kind=kind, seq_b=seq, text_b=text)


def _moment(parting: Parting) -> int:
    """Up to where both are the same, as far as the logs can be laid beside each other."""
    return min(each for each in (parting.seq_a, parting.seq_b, 1 << 60) if each is not None)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _calls(recording: Recording, agents: Container[str]) -> list[Unmatched]:
    answers = ((reply, reply.answer) for reply in recording.replies if reply.answer is not None)
    return [
        Unmatched(agent_id=agent_of(reply.key, agents), text=f"{call.name} {plain(call.arguments)}", seq=reply.seq)
        for reply, answer in answers
        for call in answer.tool_calls
    ]


def _mails(recording: Recording) -> list[Unmatched]:
    sent = ((entry.seq, entry.params) for entry in recording.entries if entry.name == "mail.sent")
    return [
        Unmatched(agent_id=mail["sender"], text=f"to {mail['recipient']}: {plain(mail['subject'])}", seq=seq)
        for seq, mail in sent
    ]


def _unmatched(first: list[Unmatched], second: list[Unmatched]) -> tuple[list[Unmatched], list[Unmatched]]:
    """Those of each side that have no equal on the other; of several equal ones those that came last."""
    return _beyond(first, second), _beyond(second, first)


def _beyond(some: list[Unmatched], others: list[Unmatched]) -> list[Unmatched]:
    left: dict[tuple[str, str], int] = defaultdict(int)
    for each in others:
        left[each.agent_id, each.text] += 1
    found = []
    for each in some:
        left[each.agent_id, each.text] -= 1
        if left[each.agent_id, each.text] < 0:
            found.append(Unmatched(agent_id=each.agent_id, text=_shortened(each.text), seq=each.seq))
    return found


def _spent(recording: Recording) -> Callable[[str | None], Spent]:
    """What the session has used, or an agent of it: the log is read once, however many there are."""
    entries: dict[str | None, list[Entry]] = defaultdict(list)
    for entry in recording.entries:
        for agent in {None, entry.params.get("agentId")}:
            entries[agent].append(entry)
    return lambda agent: _spent_in(entries.get(agent, []))


def _spent_in(entries: Sequence[Entry]) -> Spent:
    used = [entry.params["usage"] for entry in entries if entry.name == "step.finished" and "usage" in entry.params]
    costs = [usage["costUsd"] for usage in used if usage.get("costUsd") is not None]
    return Spent(
        requests=len(used),
        input_tokens=sum(usage["inputTokens"] for usage in used),
        output_tokens=sum(usage["outputTokens"] for usage in used),
        cost_usd=sum(costs) if costs else None,
        seconds=round(max(entry.at for entry in entries) - min(entry.at for entry in entries), 3) if entries else 0.0,
    )
