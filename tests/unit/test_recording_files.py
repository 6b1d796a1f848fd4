"""The file of a recording: what is written is read, and what is not whole is refused with what to do."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ai_whisperer.domain.conversation import Answer, ToolCall, ToolResult
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import RecordingError
from ai_whisperer.replay.recording import Recording, is_recording, read_recording, replayed, write_recording
from ai_whisperer.replay.recording.files import LARGE_BYTES, bodies_folder
from ai_whisperer.replay.recording.format import FORMAT, Agent, Asked, Entry, Header, Input, Reply, Result, Tool

GOLDEN = Path(__file__).parent / "recordings"
"""A recording of each format that was ever written. Never change one; add one with each new format."""


def small() -> Recording:
    return Recording(
        header=Header(format=FORMAT, version="1.2.3", session="default", last=2, began_at=1_800_000_000.0),
        agents=(Agent(id="ann", definition=AgentDefinition(prompt="You are Ann."), digest="d1"),),
        tools=(Tool(name="pay", approved=("x",)),),
        inputs=(Input(number=1, seq=1, at=0.0, call="send_task", arguments={"agent_id": "ann", "prompt": "go"}),),
        replies=(
            Reply(
                key="1>ann/1",
                seq=2,
                at=1.5,
                answer=Answer(text="é\u2028", tool_calls=(ToolCall(call_id="c", name="pay", arguments="{}"),)),
                asked=Asked(system="a", tools="b", settings="c", turns=("d",)),
            ),
        ),
        results=(Result(key="1>ann/2", seq=3, at=2.0, tool="pay", arguments="e", result=ToolResult(content="paid")),),
        entries=(Entry(seq=1, at=0.0, name="agent.created", cause="input:1", params={"agentId": "ann"}),),
        bodies={"d": "[told]\ngo"},
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_recording(small(), tmp_path / "a.wrec")
    assert read_recording(path) == small()
    assert is_recording(path)
    assert [json.loads(line)["line"] for line in path.read_text(encoding="utf-8").split("\n")[:-1]] == [
        *("recording", "agent", "tool", "input", "answer", "result", "entry", "body", "end")
    ]


def test_a_long_text_is_in_a_folder_beside_the_file_under_its_digest(tmp_path: Path) -> None:
    long = "x" * (LARGE_BYTES + 1)
    recording = replace(small(), bodies={"d": long})
    path = write_recording(recording, tmp_path / "a.wrec")
    assert path.stat().st_size < LARGE_BYTES
    (kept,) = bodies_folder(path).iterdir()
    assert kept.read_text(encoding="utf-8") == long
    assert read_recording(path) == recording
    kept.write_text("other", encoding="utf-8")
    with pytest.raises(RecordingError, match=r"was changed\. Get it back, or record the session again"):
        read_recording(path)
    kept.unlink()
    with pytest.raises(RecordingError, match="Keep the folder beside the recording"):
        read_recording(path)


def test_long_texts_that_are_no_longer_in_the_recording_are_deleted(tmp_path: Path) -> None:
    first, second = "x" * (LARGE_BYTES + 1), "y" * (LARGE_BYTES + 1)
    path = write_recording(replace(small(), bodies={"d": first}), tmp_path / "a.wrec")
    (bodies_folder(path) / "notes.txt").write_text("not ours", encoding="utf-8")
    write_recording(replace(small(), bodies={"d": second}), path)
    assert sorted(each.read_text(encoding="utf-8")[:8] for each in bodies_folder(path).iterdir()) == [
        "not ours",
        "y" * 8,
    ]
    (bodies_folder(path) / "notes.txt").unlink()
    write_recording(small(), path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.wrec"]


def test_only_its_owner_can_read_a_recording_and_its_long_texts(tmp_path: Path) -> None:
    path = write_recording(replace(small(), bodies={"d": "x" * (LARGE_BYTES + 1)}), tmp_path / "a.wrec")
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, *bodies_folder(path).iterdir())]
    assert modes == [0o600, 0o600]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_recording(small(), tmp_path / "a.wrec")
    long, unknown = "x" * (LARGE_BYTES + 1), replace(small().inputs[0], arguments={"agent": object()})
    with pytest.raises(TypeError):
        write_recording(
            replace(small(), entries=(replace(small().entries[0], params={"a": long, "b": object()}),)), path
        )
    spoilt = replace(small(), tools=(replace(small().tools[0], digest=long),), inputs=(unknown,))
    with pytest.raises(TypeError):
        write_recording(spoilt, path)
    assert read_recording(path) == small()
    assert [each.name for each in tmp_path.iterdir()] == ["a.wrec"]


@pytest.mark.parametrize(
    "data",
    [
        {"$body": "mine"},
        {"$$body": {"$body": 1}},
        {"$body": "x" * (LARGE_BYTES + 1)},
        {"text": "half \ud800 of it"},
        {"text": "\udc00" * (LARGE_BYTES + 1)},
        {"text": 'said \\ud800 and "$body"'},
    ],
)
def test_odd_data_of_a_session_is_read_as_it_was_written(data: dict[str, object], tmp_path: Path) -> None:
    recording = replace(small(), entries=(replace(small().entries[0], params=data),))
    assert read_recording(write_recording(recording, tmp_path / "a.wrec")) == recording


def _edited(text: str) -> str:
    return text.replace("You are Ann.", "You are Ben.")


def _without_a_line(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if '"line":"entry"' not in line)


def _newer(text: str) -> str:
    return re.sub(r'"format":\d+', '"format":99', text)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda text: text[: len(text) // 2], "ends before its end: it was cut off|is no JSON"),
        (lambda text: text.rsplit("\n", 2)[0] + "\n", "ends before its end: it was cut off"),
        (lambda text: text.split("\n", 1)[0] + "\n", "ends before its end"),
        (lambda text: text[:60], "ends before its end"),
        (_edited, "was changed after it was written: .* record the session again"),
        (_without_a_line, "was changed after it was written"),
        (_newer, r"has format 99 and was written by AI Whisperer 1\.2\.3; this one reads formats up to \d+\. Update"),
        (lambda text: text.replace('"number":1', '"number":"one"'), "line 4 does not fit the format"),
        (lambda text: text.replace('"line":"input"', '"line":"wish"'), "line 4 does not fit the format"),
        (lambda _: "agent ann\nann: hello\n", "is not a recording. Make one: whisperer record SESSION"),
        (lambda _: "", "is not a recording"),
        (lambda _: "{}", "is not a recording"),
        (lambda text: text + text, "was changed after it was written|does not fit"),
    ],
)
def test_what_is_no_whole_recording_is_refused_with_what_to_do(
    spoil: Callable[[str], str], told: str, tmp_path: Path
) -> None:
    path = write_recording(small(), tmp_path / "a.wrec")
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(RecordingError, match=told):
        read_recording(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wrec"
    path.write_bytes(b"\xff\xfe\x00" * 100)
    with pytest.raises(RecordingError, match="is not a recording"):
        read_recording(path)
    path.write_bytes(b'{"line":"recording","format":1}\n\xff\xff\n')
    with pytest.raises(RecordingError):
        read_recording(path)


def test_a_file_that_is_not_there_or_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none\.wrec' cannot be read: No such file"):
        read_recording(tmp_path / "none.wrec")
    with pytest.raises(RecordingError, match=r"cannot be written to .* Choose another place"):
        write_recording(small(), tmp_path / "no folder" / "a.wrec")


def test_a_recording_takes_the_place_of_another_as_a_whole(tmp_path: Path) -> None:
    path = write_recording(small(), tmp_path / "a.wrec")
    write_recording(replace(small(), entries=()), path)
    assert read_recording(path).entries == ()
    assert [each.name for each in tmp_path.iterdir()] == ["a.wrec"]


def test_there_is_a_golden_file_for_each_format() -> None:
    assert {path.name for path in GOLDEN.glob("*.wrec")} == {f"format-{number}.wrec" for number in range(1, FORMAT + 1)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.wrec")), ids=lambda path: path.stem)
def test_recordings_of_all_formats_are_read_and_played(path: Path) -> None:
    recording = read_recording(path)
    assert recording.steps > 10
    replayed(recording, ignore=["tools"]).check()
