"""Lines are read as they come, without a thread that nobody could end."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import TextIO

from ai_whisperer.cli.typed_lines import typed_lines


async def collected(stream: TextIO) -> list[str]:
    async with asyncio.timeout(60):
        return [line async for line in typed_lines(stream)]


def test_lines_of_a_pipe_come_whole_however_they_are_cut() -> None:
    async def run(stream: TextIO, writing: int) -> list[str]:
        lines = asyncio.create_task(collected(stream))
        for piece in (b"fir", b"st\nGr\xc3\xbc\xc3", b"\x9fe\n\nthe ", b"last"):
            await asyncio.sleep(0.001)
            os.write(writing, piece)
        os.close(writing)
        return await lines

    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stream:
        assert asyncio.run(run(stream, writing)) == ["first", "Grüße", "", "the last"]


def test_a_file_and_a_text_are_read_too(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("one\ntwo", encoding="utf-8")
    with file.open(encoding="utf-8") as stream:
        assert asyncio.run(collected(stream)) == ["one", "two"]
    assert asyncio.run(collected(io.StringIO("three\n"))) == ["three"]


def test_whoever_waits_for_a_line_can_be_stopped() -> None:
    async def run(stream: TextIO) -> bool:
        waiting = asyncio.create_task(collected(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stream:
        assert asyncio.run(run(stream))
    os.close(writing)


def test_whoever_writes_faster_than_the_lines_are_taken_has_to_wait() -> None:
    async def run(stream: TextIO, writing: int) -> int:
        lines = typed_lines(stream)
        os.write(writing, b"first\n")
        assert await anext(lines) == "first"
        os.set_blocking(writing, False)
        written = 0
        for _ in range(1000):
            try:
                written += os.write(writing, b"y\n" * 10_000)
            except BlockingIOError:
                break
            await asyncio.sleep(0)
        await lines.aclose()
        return written

    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stream:
        assert asyncio.run(run(stream, writing)) < 1 << 20
    os.close(writing)
