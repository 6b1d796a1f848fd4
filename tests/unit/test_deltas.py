"""The pieces of streams that wait for a reader that lags."""

from __future__ import annotations

import random

from ai_whisperer.core.deltas import MAX_PENDING, PendingDeltas
from ai_whisperer.domain.notification import Notification


def delta(text: str, *, task: str = "t1", step: int = 1, attempt: int = 1, channel: str = "final") -> Notification:
    params = {"taskId": task, "stepId": f"{task}.{step}", "attempt": attempt, "channel": channel, "text": text}
    return Notification(seq=0, session_id="s", name="async.task.delta", cause=f"task:{task}", at=1.0, params=params)


def taken(pending: PendingDeltas) -> list[Notification]:
    notes: list[Notification] = []
    while pending:
        notes.append(pending.take())
    return notes


def texts(pending: PendingDeltas) -> list[str]:
    return [note.params["text"] for note in taken(pending)]


def test_a_delta_that_is_read_at_once_is_the_one_that_came() -> None:
    pending = PendingDeltas()
    note = delta("hello")
    pending.put(1, note)
    assert pending.take() is note
    assert not pending


def test_a_delta_joins_the_one_that_it_goes_on_with() -> None:
    pending = PendingDeltas()
    for number, text in enumerate(("Once ", "upon ", "a time")):
        pending.put(number, delta(text))
    assert pending.position == 0
    assert taken(pending) == [delta("Once upon a time")]


def test_streams_that_run_side_by_side_are_joined_each_by_itself() -> None:
    pending = PendingDeltas()
    for number in range(5):
        for task in ("t1", "t2"):
            pending.put(1, delta(f"{task}-{number} ", task=task))
    assert texts(pending) == ["t1-0 t1-1 t1-2 t1-3 t1-4 ", "t2-0 t2-1 t2-2 t2-3 t2-4 "]


def test_another_channel_another_step_and_another_attempt_are_never_joined() -> None:
    pending = PendingDeltas()
    pieces = [
        delta("a"),
        delta("b", channel="analysis"),
        delta("c"),
        delta("d", step=2),
        delta("e", attempt=2),
    ]
    for piece in pieces:
        pending.put(1, piece)
    assert taken(pending) == pieces


def test_what_was_read_is_not_joined_to_any_more() -> None:
    pending = PendingDeltas()
    pending.put(1, delta("read"))
    pending.take()
    pending.put(2, delta(" later"))
    assert taken(pending) == [delta(" later")]


def test_of_one_long_stream_the_end_is_kept_and_what_is_missing_is_told_once() -> None:
    pending = PendingDeltas()
    whole = "".join(f"{number:07} " for number in range(10_000))
    for start in range(0, len(whole), 8):
        pending.put(1, delta(whole[start : start + 8]))
        assert pending.size <= MAX_PENDING
    pending.put(2, delta("another", channel="analysis"))
    first, second = taken(pending)
    assert len(first.params["text"]) > MAX_PENDING // 2
    assert first.params["text"] == whole[first.params["skipped"] :]
    assert "skipped" not in second.params


def test_one_huge_delta_is_cut_too() -> None:
    pending = PendingDeltas()
    pending.put(1, delta("x" * 1_000_000))
    (note,) = taken(pending)
    assert note.params["skipped"] + len(note.params["text"]) == 1_000_000
    assert len(note.params["text"]) <= MAX_PENDING


def test_many_short_streams_take_no_more_than_one_long_one() -> None:
    pending = PendingDeltas()
    for number in range(10_000):
        pending.put(number, delta("ab", task=f"t{number}"))
        assert pending.size <= MAX_PENDING
    notes = taken(pending)
    assert len(notes) < 100
    assert notes[0].params["skipped"] == 2 * (10_000 - len(notes))
    assert [note.params["taskId"] for note in notes] == [f"t{n}" for n in range(10_000 - len(notes), 10_000)]
    assert pending.size == 0


def test_every_character_is_read_or_counted_as_skipped_whatever_comes() -> None:
    chance = random.Random(7)
    pending = PendingDeltas()
    put = read = skipped = 0
    for number in range(20_000):
        text = "x" * chance.choice((0, 1, 5, 200, 5_000))
        put += len(text)
        pending.put(number, delta(text, task=f"t{chance.randrange(20)}", channel=chance.choice(("final", "analysis"))))
        for note in taken(pending) if chance.random() < 0.01 else ():
            read += len(note.params["text"])
            skipped += note.params.get("skipped", 0)
    for note in taken(pending):
        read += len(note.params["text"])
        skipped += note.params.get("skipped", 0)
    assert skipped > 0
    assert put == read + skipped


def test_what_waits_for_one_can_wait_for_another_too() -> None:
    one, other = PendingDeltas(), PendingDeltas()
    one.put(1, delta("Once "))
    one.put(2, delta("upon "))
    one.put(2, delta("other", step=2))
    other.put(0, delta("Well. ", step=3))
    other.put_all_of(one)
    one.put(3, delta("a time"))
    assert texts(other) == ["Well. ", "Once upon ", "other"]
    assert texts(one) == ["Once upon a time", "other"]


def test_what_was_left_out_for_one_is_left_out_for_the_other() -> None:
    one, other = PendingDeltas(), PendingDeltas()
    one.put(0, delta("x" * (2 * MAX_PENDING)))
    other.put_all_of(one)
    assert taken(other) == taken(one)


def test_the_output_of_a_tool_is_joined_like_a_stream_and_apart_from_other_steps() -> None:
    def output(step: str, text: str) -> Notification:
        params = {"agentId": "ada", "taskId": "t", "stepId": step, "text": text}
        return Notification(seq=0, session_id="s", name="step.output", cause="task:t", at=1.0, params=params)

    pending = PendingDeltas()
    for step, text in (("t.1", "a"), ("t.2", "x"), ("t.1", "b")):
        pending.put(0, output(step, text))
    assert [pending.take().params["text"], pending.take().params["text"]] == ["ab", "x"]
    assert not pending
