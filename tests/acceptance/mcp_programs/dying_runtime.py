"""A session whose agent is in the middle of an MCP call until somebody kills the process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.acceptance.mcp_stage import odd, staged


async def main(data: Path, witness: str) -> None:
    async with staged({"odd": odd("hangs_in_a_call", witness)}, "mcp__odd", data=data) as stage:
        await stage.call("mcp__odd__act")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
