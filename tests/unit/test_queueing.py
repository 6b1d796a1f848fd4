import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ai_whisperer.core.queueing import WorkQueue
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import Priority, TaskKind, TaskRecord


def task(arrival: int, *, thread: str = "", priority: Priority = Priority.NORMAL) -> TaskRecord:
    return TaskRecord(
        session_id="s",
        id=f"t{arrival}",
        agent_id="a",
        thread_id=thread or f"t{arrival}",
        kind=TaskKind.PROMPT,
        prompt="p",
        arrival=arrival,
        cause="test",
        priority=priority,
    )


def taken(queue: WorkQueue) -> list[str]:
    order = []
    while (item := queue.take()) is not None:
        order.append(item.id)
    return order


def test_urgent_comes_before_high_before_normal_before_low_and_each_by_arrival() -> None:
    queue = WorkQueue()
    priorities = [Priority.LOW, Priority.NORMAL, Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.URGENT]
    for arrival, priority in enumerate(priorities):
        queue.push(task(arrival, priority=priority))
    assert taken(queue) == ["t2", "t5", "t3", "t1", "t4", "t0"]


def test_a_thread_has_one_loop_at_a_time_and_others_pass_it() -> None:
    queue = WorkQueue()
    for arrival, thread in enumerate(["x", "x", "y"]):
        queue.push(task(arrival, thread=thread))
    assert taken(queue) == ["t0", "t2"]
    queue.release("x")
    assert taken(queue) == ["t1"]


def test_a_thread_that_runs_from_before_is_busy_without_having_been_taken() -> None:
    queue = WorkQueue()
    queue.occupy("x")
    queue.push(task(1, thread="x"))
    assert queue.take() is None
    queue.release("x")
    assert taken(queue) == ["t1"]


def test_a_removed_item_is_never_taken_also_when_it_was_parked() -> None:
    queue = WorkQueue()
    for arrival in range(3):
        queue.push(task(arrival, thread="x"))
    assert taken(queue) == ["t0"]
    assert queue.remove_task("t1") == task(1, thread="x")
    assert queue.remove_task("t1") is None
    queue.release("x")
    assert taken(queue) == ["t2"]
    assert len(queue) == 0


def mail(arrival: int, *, sender: str = "bob", thread: str = "") -> MailRecord:
    return MailRecord(
        session_id="s",
        id=f"t{arrival}",
        thread_id=thread or f"m{arrival}",
        sender=sender,
        sequence=arrival,
        recipient="a",
        subject="s",
        body="b",
        arrival=arrival,
        cause="test",
    )


def test_one_senders_mail_never_overtakes_even_when_the_first_waits_for_its_thread() -> None:
    queue = WorkQueue()
    queue.occupy("busy")
    for item in (mail(1, thread="busy"), mail(2), mail(3, sender="ann"), task(4)):
        queue.push(item)
    assert taken(queue) == ["t3", "t4"]
    queue.push(mail(5))
    assert queue.take() is None
    assert not queue.has_free()
    queue.release("busy")
    assert taken(queue) == ["t1", "t2", "t5"]


def test_one_senders_mail_never_overtakes_when_the_first_two_wait_for_different_threads() -> None:
    queue = WorkQueue()
    queue.occupy("left")
    queue.occupy("right")
    first, second, third = mail(1, thread="left"), mail(2, thread="right"), mail(3, thread="left")
    for each in (first, second, third):
        queue.push(each)
    assert queue.take() is None
    queue.release("left")
    assert queue.take() is first
    queue.release("left")
    assert queue.take() is None, "the second still waits for its thread"
    queue.release("right")
    assert [queue.take(), queue.take()] == [second, third]


def test_a_task_and_a_mail_of_the_same_id_are_two_things() -> None:
    queue = WorkQueue()
    queue.push(task(1))
    queue.push(mail(1))
    queue.remove_mail("t1")
    assert len(queue) == 1
    assert queue.has_free()
    assert isinstance(queue.take(), TaskRecord)


def test_the_same_item_cannot_wait_twice() -> None:
    queue = WorkQueue()
    queue.push(task(1))
    with pytest.raises(ValueError, match="already in the queue"):
        queue.push(task(1))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(Priority))), max_size=30), st.integers())
def test_all_items_come_once_and_within_a_thread_in_order(items: list[tuple[str, Priority]], seed: int) -> None:
    queue = WorkQueue()
    pushed = [task(arrival, thread=thread, priority=priority) for arrival, (thread, priority) in enumerate(items)]
    for item in pushed:
        queue.push(item)
    chance = random.Random(seed)
    order: list[str] = []
    running: list[str] = []
    while len(queue) or running:
        begun = queue.take()
        if begun is not None:
            assert begun.thread_id not in running
            order.append(begun.id)
            running.append(begun.thread_id)
        else:
            queue.release(running.pop(chance.randrange(len(running))))
    expected = sorted(pushed, key=lambda item: (item.priority.rank, item.arrival))
    for thread in "abc":
        ids = [item.id for item in expected if item.thread_id == thread]
        assert [item_id for item_id in order if item_id in ids] == ids
    assert len(order) == len(pushed)


def test_what_is_put_first_comes_before_urgent_work_that_came_earlier() -> None:
    queue = WorkQueue()
    queue.push(task(1, priority=Priority.URGENT))
    queue.push_first(task(2, priority=Priority.LOW))
    assert taken(queue) == ["t2", "t1"]


def test_a_mail_whose_sender_waits_does_not_wait_for_its_thread() -> None:
    queue = WorkQueue()
    queue.push(replace(mail(1, thread="x"), awaited=True))
    queue.push(replace(mail(2, thread="x"), awaited=True))
    assert taken(queue) == ["t1", "t2"]
