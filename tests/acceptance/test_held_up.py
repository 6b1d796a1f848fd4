"""The harness that measures callbacks finds one that holds up the event loop."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.acceptance.held_up import DOCUMENT, LONGEST, longest_callback


@pytest.mark.parametrize(("times", "gives_way", "is_found"), [(50, False, True), (50, True, False), (1, False, False)])
def test_a_callback_that_reads_for_long_is_found_and_one_that_gives_way_is_not(
    times: int,
    gives_way: bool,  # noqa: FBT001
    is_found: bool,  # noqa: FBT001
) -> None:
    async def read() -> None:
        for _ in range(times):
            json.loads(DOCUMENT)
            if gives_way:
                await asyncio.sleep(0)

    with longest_callback() as longest:
        asyncio.run(read())
    assert (longest.readings > LONGEST) is is_found
