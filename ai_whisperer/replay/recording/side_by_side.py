"""Two recordings side by side, aligned by causal paths: where agents first differ, and what it comes to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence

import msgspec

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.replay.recording.asking import plain
from ai_whisperer.replay.recording.differences import diff_of
from ai_whisperer.replay.recording.format import Recording, Reply


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """The first answer in which an agent differs. An empty `diff` means that only one of the two was asked."""

    agent: str
    key: str
    what: str
    diff: str = ""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a session, or an agent of it, has used. `cost_usd` is of what has a price, None if nothing has."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What two recordings have in common and what not. A is the first one, B the second."""

    partings: tuple[Parting, ...]
    same_answers: int
    other_answers: int
    calls_only_in_a: tuple[str, ...]
    calls_only_in_b: tuple[str, ...]
    mails_only_in_a: tuple[str, ...]
    mails_only_in_b: tuple[str, ...]
    spent: tuple[Spent, Spent]
    spent_by_agent: dict[str, tuple[Spent, Spent]]

    @property
    def is_same(self) -> bool:
        """Whether agents answered, called and wrote the same."""
        return not (
            self.partings
            or self.calls_only_in_a
            or self.calls_only_in_b
            or self.mails_only_in_a
            or self.mails_only_in_b
        )


def compare(first: Recording, second: Recording) -> Comparison:
    """Lay two recordings side by side: of two sessions, or of one before and after a change."""
    agents = dict.fromkeys((*_agents_of(first), *_agents_of(second)))
    one, two = _answers(first), _answers(second)
    common = one.keys() & two.keys()
    same = sum(_words(one[key]) == _words(two[key]) for key in common)
    calls = _lost_and_found(_calls(first), _calls(second))
    mails = _lost_and_found(_mails(first), _mails(second))
    return Comparison(
        partings=tuple(found for agent in agents if (found := _parting(agent, first, second)) is not None),
        same_answers=same,
        other_answers=len(one.keys() | two.keys()) - same,
        calls_only_in_a=calls[0],
        calls_only_in_b=calls[1],
        mails_only_in_a=mails[0],
        mails_only_in_b=mails[1],
        spent=(_spent(first), _spent(second)),
        spent_by_agent={agent: (_spent(first, agent), _spent(second, agent)) for agent in agents},
    )


_SECOND = re.compile(r"\.\d+$")
"""What the second of one kind with one cause ends in."""


def agent_of(key: str, agents: Container[str] = ()) -> str:
    """The agent whose step has this key. The id of one of these `agents` may end as the second of a kind does."""
    last = key.rpartition("/")[0].rpartition(">")[2].partition("~")[0]
    return last if last in agents else _SECOND.sub("", last)


def _agents_of(recording: Recording) -> Iterable[str]:
    return (agent.id for agent in recording.agents)


def _answers(recording: Recording) -> dict[str, Reply]:
    """The answers by key; of several attempts the last one."""
    return {reply.key: reply for reply in recording.replies if reply.answer is not None or reply.error is not None}


def _words(reply: Reply) -> str:
    if reply.error is not None:
        return f"[failed] {reply.error.code}: {reply.error.message}"
    answer = reply.answer or Answer()
    return plain(answer.text + "".join(f"\n[calls {call.name}] {call.arguments}" for call in answer.tool_calls))


def _parting(agent: str, first: Recording, second: Recording) -> Parting | None:
    agents = {*_agents_of(first), *_agents_of(second)}
    one = {key: reply for key, reply in _answers(first).items() if agent_of(key, agents) == agent}
    two = {key: reply for key, reply in _answers(second).items() if agent_of(key, agents) == agent}
    for key, reply in one.items():
        if key not in two:
            return Parting(agent=agent, key=key, what="is asked only in A")
        before, after = _words(reply), _words(two[key])
        if before != after:
            return Parting(agent=agent, key=key, what="answers differently", diff=diff_of(before, after))
    more = next((key for key in two if key not in one), None)
    return None if more is None else Parting(agent=agent, key=more, what="is asked only in B")


def _calls(recording: Recording) -> Counter[str]:
    agents = set(_agents_of(recording))
    answers = ((agent_of(reply.key, agents), reply.answer) for reply in recording.replies if reply.answer is not None)
    return Counter(
        f"{agent}: {call.name} {plain(call.arguments)}" for agent, answer in answers for call in answer.tool_calls
    )


def _mails(recording: Recording) -> Counter[str]:
    mails = (entry.params for entry in recording.entries if entry.name == "mail.sent")
    return Counter(f"{mail['sender']} to {mail['recipient']}: {plain(mail['subject'])}" for mail in mails)


def _lost_and_found(first: Counter[str], second: Counter[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple((first - second).elements()), tuple((second - first).elements())


def _spent(recording: Recording, agent: str | None = None) -> Spent:
    used = [
        (entry.params["usage"], entry.at)
        for entry in recording.entries
        if entry.name == "step.finished" and "usage" in entry.params and agent in (None, entry.params["agentId"])
    ]
    costs = [usage["costUsd"] for usage, _ in used if usage.get("costUsd") is not None]
    times: Sequence[float] = [
        entry.at for entry in recording.entries if agent in (None, entry.params.get("agentId"))
    ] or (0.0,)
    return Spent(
        requests=len(used),
        input_tokens=sum(usage["inputTokens"] for usage, _ in used),
        output_tokens=sum(usage["outputTokens"] for usage, _ in used),
        cost_usd=sum(costs) if costs else None,
        seconds=round(max(times) - min(times), 3),
    )
