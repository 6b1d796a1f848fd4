"""What a simulated disk has after a power cut: never less than was synced, and of the rest anything."""

from __future__ import annotations

import random

from ai_whisperer.testing.power import SECTOR_BYTES, WrittenFile, WrittenFolder, WrittenTree

_PAGE = 4 * SECTOR_BYTES
_CHANCES = 300


def outcomes_of(file: WrittenFile) -> set[bytes]:
    return {file.after_cut(random.Random(seed)) for seed in range(_CHANCES)}


def test_what_was_synced_is_there_whatever_happens() -> None:
    file = WrittenFile()
    file.write(0, b"a" * _PAGE)
    file.sync()
    file.write(_PAGE, b"b" * _PAGE)
    assert {outcome[:_PAGE] for outcome in outcomes_of(file)} == {b"a" * _PAGE}


def test_nothing_all_or_a_torn_part_of_what_was_not_synced_is_there() -> None:
    file = WrittenFile(b"a" * _PAGE)
    file.write(0, b"b" * _PAGE)
    found = outcomes_of(file)
    assert {b"a" * _PAGE, b"b" * _PAGE} <= found
    torn = found - {b"a" * _PAGE, b"b" * _PAGE}
    assert len(torn) > 5
    for outcome in torn:
        sectors = [outcome[start : start + SECTOR_BYTES] for start in range(0, _PAGE, SECTOR_BYTES)]
        assert set(sectors) == {b"a" * SECTOR_BYTES, b"b" * SECTOR_BYTES}, "a sector is torn"


def test_a_later_write_may_be_there_without_an_earlier_one() -> None:
    file = WrittenFile(b"a" * 2 * SECTOR_BYTES)
    file.write(0, b"b" * SECTOR_BYTES)
    file.write(SECTOR_BYTES, b"c" * SECTOR_BYTES)
    assert b"a" * SECTOR_BYTES + b"c" * SECTOR_BYTES in outcomes_of(file)


def test_a_file_that_has_grown_may_have_its_size_without_its_content() -> None:
    file = WrittenFile()
    file.write(0, b"b" * SECTOR_BYTES)
    found = outcomes_of(file)
    assert bytes(SECTOR_BYTES) in found
    assert any(len(outcome) == SECTOR_BYTES and not {*outcome} <= {0, ord("b")} for outcome in found), (
        "there is never junk"
    )


def test_a_file_that_was_cut_may_be_as_long_as_before() -> None:
    file = WrittenFile(b"a" * _PAGE)
    file.truncate(SECTOR_BYTES)
    assert outcomes_of(file) == {b"a" * _PAGE, b"a" * SECTOR_BYTES}
    file.sync()
    assert outcomes_of(file) == {b"a" * SECTOR_BYTES}


def test_a_name_is_durable_when_its_folder_was_synced() -> None:
    folder = WrittenFolder()
    new = folder.open("new")
    new.write(0, b"a")
    new.sync()
    found = [folder.after_cut(random.Random(seed)) for seed in range(_CHANCES)]
    assert {} in found
    assert {"new": b"a"} in found
    folder.sync()
    folder.delete("new")
    found = [folder.after_cut(random.Random(seed)) for seed in range(_CHANCES)]
    assert {} in found
    assert {"new": b"a"} in found, "what was deleted never comes back"


def test_a_folder_is_there_when_the_one_above_was_synced() -> None:
    tree = WrittenTree()
    tree.folder.open("new")
    tree.folder.sync()
    assert None in [tree.after_cut(random.Random(seed)) for seed in range(_CHANCES)]
    tree.sync_outer()
    assert [tree.after_cut(random.Random(seed)) for seed in range(3)] == [{"new": b""}] * 3
