"""Two recordings side by side: where agents first differ, what only one has, what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ai_whisperer.domain.conversation import Answer, ToolCall
from ai_whisperer.replay.recording import Recording, compare, read_recording
from ai_whisperer.replay.recording.format import Entry
from ai_whisperer.replay.recording.side_by_side import agent_of

PATH = Path(__file__).parent / "recordings" / "format-1.wrec"


@pytest.fixture(scope="module")
def team() -> Recording:
    return read_recording(PATH)


def answering(recording: Recording, key: str, answer: Answer) -> Recording:
    replies = (replace(each, answer=answer) if each.key == key else each for each in recording.replies)
    return replace(recording, replies=tuple(replies))


def test_a_recording_is_the_same_as_itself(team: Recording) -> None:
    found = compare(team, team)
    assert (found.is_same, found.partings, found.other_answers) == (True, [], 0)
    assert found.spent.a == found.spent.b
    assert found.spent.a.input_tokens > 0


def test_the_first_answer_in_which_an_agent_differs_is_told(team: Recording) -> None:
    key, seq = next((reply.key, reply.seq) for reply in team.replies if agent_of(reply.key) == "editor")
    other = answering(team, key, Answer(text="No.", tool_calls=(ToolCall(call_id="c", name="pay", arguments="{}"),)))
    found = compare(team, other)
    assert [(each.agent_id, each.key, each.kind) for each in found.partings] == [("editor", key, "answer")]
    assert "+No." in found.partings[0].diff
    assert (found.partings[0].seq_a, found.partings[0].text_b) == (seq, "No.\n[calls pay] {}")
    assert found.first == found.partings[0]
    assert [(each.agent_id, each.text, each.seq) for each in found.calls_only_in_b] == [("editor", "pay {}", seq)]
    assert (found.is_same, found.other_answers) == (False, 1)


def test_steps_that_only_one_has_are_told(team: Recording) -> None:
    last = max((reply for reply in team.replies if agent_of(reply.key) == "writer"), key=lambda reply: reply.seq)
    fewer = replace(team, replies=tuple(reply for reply in team.replies if reply.key != last.key))
    assert [each.kind for each in compare(team, fewer).partings] == ["only_in_a"]
    assert [each.kind for each in compare(fewer, team).partings] == ["only_in_b"]


def test_mails_that_only_one_has_are_told(team: Recording) -> None:
    mails = [entry for entry in team.entries if entry.name == "mail.sent"]
    fewer = replace(team, entries=tuple(entry for entry in team.entries if entry is not mails[0]))
    found = compare(team, fewer)
    sent = mails[0].params
    assert [(each.agent_id, each.text, each.seq) for each in found.mails_only_in_a] == [
        (sent["sender"], f"to {sent['recipient']}: {sent['subject']}", mails[0].seq)
    ]
    assert compare(fewer, team).mails_only_in_b == found.mails_only_in_a


def test_whose_step_a_key_is() -> None:
    assert agent_of("3>writer/2") == "writer"
    assert agent_of("3>writer>mail:editor>editor.2/4.summary") == "editor"
    assert agent_of("3>ann.of.may/2") == "ann.of.may"
    assert agent_of("3>ann.of.may.2/2") == "ann.of.may"
    assert agent_of("3>ann.2/2", {"ann.2"}) == "ann.2"


def test_an_agent_with_a_dot_in_its_id_is_compared(team: Recording) -> None:
    def renamed(recording: Recording) -> Recording:
        agents = tuple(replace(each, id=each.id.replace("writer", "the.writer")) for each in recording.agents)
        replies = tuple(replace(each, key=each.key.replace(">writer", ">the.writer")) for each in recording.replies)
        return replace(recording, agents=agents, replies=replies)

    key = next(reply.key for reply in team.replies if agent_of(reply.key) == "writer")
    found = compare(renamed(team), renamed(answering(team, key, Answer(text="No."))))
    assert [each.agent_id for each in found.partings] == ["the.writer"]


def test_what_many_agents_have_used_is_found_in_one_pass(team: Recording) -> None:
    """Else two sessions of a thousand agents would take as long as a thousand pairs of sessions."""
    read = 0

    class Counted(tuple):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Entry]:
            nonlocal read
            read += 1
            return super().__iter__()

    entries = Counted(team.entries)
    many = tuple(replace(team.agents[0], id=f"agent-{number}") for number in range(50))
    found = compare(replace(team, entries=entries, agents=(*team.agents, *many)), team)
    assert len(found.spent_by_agent) == len(team.agents) + 50
    assert read == 2
