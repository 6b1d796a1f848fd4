"""The notifications that are kept in memory for those who read along."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ai_whisperer.core.recent import MAX_BYTES, MAX_NOTES, PAGE_BYTES, PAGE_NOTES, RecentNotes, size_of, size_of_params
from ai_whisperer.domain.notification import Notification


def note(seq: int, **params: Any) -> Notification:
    return Notification(seq=seq, session_id="s", name="x", cause="test", at=1.0, params=params)


def put(recent: RecentNotes, each: Notification) -> None:
    """As the store does: it has the params as text."""
    recent.extend([each], [size_of_params(msgspec.json.encode(each.params).decode())])


def filled(count: int, *, text: str = "") -> RecentNotes:
    recent = RecentNotes()
    for seq in range(1, count + 1):
        put(recent, note(seq, text=text))
    return recent


def read_on(recent: RecentNotes, cursor: int) -> list[int]:
    """The numbers after the cursor, page by page."""
    seqs: list[int] = []
    while page := recent.page(cursor):
        seqs.extend(each.seq for each in page)
        cursor = page[-1].seq
    return seqs


def test_all_is_read_in_order_from_any_cursor_that_is_held() -> None:
    recent = filled(100)
    for cursor in (0, 1, 50, 98, 99):
        assert read_on(recent, cursor) == list(range(cursor + 1, 101))


def test_small_notifications_come_in_pages_of_a_number() -> None:
    assert len(filled(100).page(3) or ()) == PAGE_NOTES


def test_large_notifications_come_in_pages_of_a_size() -> None:
    recent = filled(100, text="x" * 10_000)
    page = recent.page(7) or []
    assert [each.seq for each in page] == [8, 9, 10, 11]
    assert sum(map(size_of, page)) <= PAGE_BYTES < sum(map(size_of, page)) + 11_000
    assert read_on(recent, 0) == list(range(1, 101))


def test_a_notification_that_is_larger_than_a_page_comes_alone() -> None:
    recent = filled(3, text="x" * 2 * PAGE_BYTES)
    assert [each.seq for each in recent.page(0) or ()] == [1]
    assert read_on(recent, 0) == [1, 2, 3]


def test_of_many_the_oldest_give_way() -> None:
    recent = filled(MAX_NOTES + 1)
    assert len(recent) == MAX_NOTES // 2
    assert recent.page(MAX_NOTES // 2) is None
    assert read_on(recent, MAX_NOTES // 2 + 1) == list(range(MAX_NOTES // 2 + 2, MAX_NOTES + 2))


@pytest.mark.parametrize(
    "params",
    [
        {"text": "x" * 200_000},
        {"text": "\U0001f600" * 50_000},
        {"data": {"rows": [{"cell": "x" * 100_000}] * 2}},
        {"data": [None] * 4_000},
        {"data": {"x" * 200_000: 1}},
    ],
    ids=["text", "wide text", "nested", "many values", "keys"],
)
def test_of_large_ones_the_oldest_give_way_wherever_their_bytes_are(params: dict[str, Any]) -> None:
    recent = RecentNotes()
    for seq in range(1, 200):
        put(recent, note(seq, **params))
        assert recent.size <= MAX_BYTES
    assert 0 < len(recent) <= MAX_BYTES // 200_000
    assert read_on(recent, 199 - len(recent)) == list(range(200 - len(recent), 200))


def test_one_that_is_larger_than_everything_is_not_held_and_those_after_it_are() -> None:
    recent = filled(3)
    put(recent, note(4, text="x" * 2 * MAX_BYTES))
    assert (len(recent), recent.size, recent.page(3)) == (0, 0, None)
    put(recent, note(5))
    assert recent.page(3) is None
    assert read_on(recent, 4) == [5]
