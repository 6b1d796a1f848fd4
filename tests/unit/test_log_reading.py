"""Reading a log while it grows, is put aside, or is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_whisperer.errors import InvalidInputError, StoreError
from ai_whisperer.server.log_files import log_path, next_of
from ai_whisperer.server.log_reading import LogPage, read_log
from tests.unit.log_stage import log, note, of_agent


def page(data: Path, *, after: int | None = None, limit: int = 100, agent: str | None = "ada") -> LogPage:
    return read_log(data, "s", agent, after=after, limit=limit)


def numbers(page: LogPage) -> list[int]:
    return [entry["params"]["number"] for entry in page.entries]


def write(data: Path, *some: int, max_bytes: int = 5_000_000, backups: int = 3, padding: int = 0) -> None:
    notes = [of_agent(number=number, text="x" * padding) for number in some]
    log(data, notes, max_bytes=max_bytes, backups=backups)


def test_there_is_nothing_to_read_before_anything_was_written(tmp_path: Path) -> None:
    assert page(tmp_path) == LogPage([], 0)
    assert page(tmp_path, after=500) == LogPage([], 0)


def test_without_a_position_the_last_entries_come(tmp_path: Path) -> None:
    write(tmp_path, *range(10))
    assert numbers(page(tmp_path, limit=3)) == [7, 8, 9]
    assert numbers(page(tmp_path)) == list(range(10))


def test_the_last_entries_are_found_over_many_blocks(tmp_path: Path) -> None:
    write(tmp_path, *range(400), padding=1_000)
    assert numbers(page(tmp_path, limit=399)) == list(range(1, 400))
    assert numbers(page(tmp_path, limit=1)) == [399]


def test_from_a_position_on_everything_comes_once(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2)
    read = page(tmp_path)
    assert page(tmp_path, after=read.next) == LogPage([], read.next)
    write(tmp_path, 3, 4, 5)
    seen: list[int] = []
    while (read := page(tmp_path, after=read.next, limit=2)).entries:
        seen += numbers(read)
    assert seen == [3, 4, 5]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_reader_misses_nothing_when_files_are_put_aside(tmp_path: Path, limit: int) -> None:
    seen: list[int] = []
    position = 0
    for first in range(0, 60, 3):
        write(tmp_path, *range(first, first + 3), max_bytes=1_500, backups=20, padding=300)
        read = page(tmp_path, after=position, limit=limit)
        seen += numbers(read)
        position = read.next
    while (read := page(tmp_path, after=position, limit=limit)).entries:
        seen += numbers(read)
        position = read.next
    assert seen == list(range(60))
    assert numbers(page(tmp_path, limit=50)) == list(range(10, 60))


def test_a_file_that_is_put_aside_while_one_reads_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, *range(6), max_bytes=1_500, padding=300)
    file = log_path(tmp_path, "s", "ada")
    file.with_name("ada.log.1").rename(file.with_name("ada.log.2"))
    file.with_name("ada.log.1").hardlink_to(file)
    assert numbers(page(tmp_path)) == list(range(6))
    assert numbers(page(tmp_path, after=0)) == list(range(6))


def test_a_reader_that_is_far_behind_goes_on_with_the_oldest_that_is_kept(tmp_path: Path) -> None:
    write(tmp_path, 0)
    position = page(tmp_path).next
    write(tmp_path, *range(1, 50), max_bytes=1_500, backups=1, padding=300)
    kept = numbers(page(tmp_path, after=position))
    assert 1 < len(kept) < 10
    assert kept == list(range(kept[0], 50))


def test_a_log_that_was_removed_is_read_from_its_start(tmp_path: Path) -> None:
    write(tmp_path, *range(10))
    position = page(tmp_path).next
    log_path(tmp_path, "s", "ada").unlink()
    write(tmp_path, 10)
    assert numbers(page(tmp_path, after=position)) == [10]


def test_what_was_put_aside_before_a_log_was_removed_is_not_taken_for_its_past(tmp_path: Path) -> None:
    write(tmp_path, *range(10), max_bytes=1_500, padding=300)
    position = page(tmp_path).next
    log_path(tmp_path, "s", "ada").unlink()
    write(tmp_path, 10)
    assert numbers(page(tmp_path, after=position)) == [10]


def test_positions_go_on_when_the_process_ended_while_it_put_the_log_aside(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2, padding=300)
    position = page(tmp_path).next
    write(tmp_path, 3, max_bytes=1_000, padding=300)
    path = log_path(tmp_path, "s", "ada")
    head = path.read_bytes().partition(b"\n")[0]
    path.unlink()
    next_of(path).write_bytes(head + b"\n")
    assert numbers(page(tmp_path)) == [0, 1, 2]
    assert numbers(page(tmp_path, after=position)) == []
    write(tmp_path, 4, 5)
    assert not next_of(path).exists()
    assert numbers(page(tmp_path, after=position)) == [4, 5]
    assert numbers(page(tmp_path)) == [0, 1, 2, 4, 5]


def test_a_log_that_was_not_put_aside_after_all_goes_on(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2, padding=300)
    next_of(log_path(tmp_path, "s", "ada")).write_bytes(b'{"event":"log.continued","position":77}\n')
    write(tmp_path, 3, padding=300)
    write(tmp_path, 4, max_bytes=1_000, padding=300)
    assert numbers(page(tmp_path)) == numbers(page(tmp_path, after=0)) == [0, 1, 2, 3, 4]


def test_a_line_that_is_being_written_waits_until_it_is_whole(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    file = log_path(tmp_path, "s", "ada")
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    read = page(tmp_path, after=0)
    assert numbers(read) == [0]
    assert numbers(page(tmp_path)) == [0]
    file.write_bytes(whole)
    assert numbers(page(tmp_path, after=read.next)) == [1]


def test_lines_that_are_no_entries_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 0)
    with log_path(tmp_path, "s", "ada").open("ab") as file:
        file.write(b'{"torn\n[1]\n\xff\xfe\n\n')
    write(tmp_path, 1)
    assert numbers(page(tmp_path)) == [0, 1]
    assert numbers(page(tmp_path, after=0)) == [0, 1]
    assert numbers(page(tmp_path, after=3)) == [1]


def test_the_sessions_own_log_is_read_without_an_agent(tmp_path: Path) -> None:
    log(tmp_path, [note("room.created", number=1), of_agent("session", number=2)])
    assert numbers(page(tmp_path, agent=None)) == [1]
    assert numbers(page(tmp_path, agent="session")) == [2]


def test_entries_of_a_name_that_differs_in_case_are_not_shown(tmp_path: Path) -> None:
    log(tmp_path, [of_agent("Ada", number=1)])
    log_path(tmp_path, "s", "Ada").rename(log_path(tmp_path, "s", "ada"))
    assert page(tmp_path).entries == []


@pytest.mark.parametrize(("after", "limit"), [(-1, 1), (0, 0), (None, -5), (True, 1)])
def test_odd_positions_and_limits_are_refused(tmp_path: Path, after: int | None, limit: int) -> None:
    write(tmp_path, 0)
    with pytest.raises(InvalidInputError):
        page(tmp_path, after=after, limit=limit)


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    log_path(tmp_path, "s", "ada").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be read"):
        page(tmp_path)
