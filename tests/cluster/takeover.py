"""How long it takes until another node goes on with a session: `python -m tests.cluster.takeover [ROUNDS]`.

From the kill, the freeze or the order to drain until the first entry in the log of the one that took over.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.cluster.stage import Node, eventually, evidence, nodes, set_to_work
from tests.postgresql import Server, running_server

WAYS = ("kill -9", "freeze", "drain")


async def once(server: Server, database: str, way: str, a: Node, b: Node) -> float:
    """The seconds that one takeover took."""
    await set_to_work(a, "s", tasks=9)

    async def has_begun() -> bool:
        return bool((await evidence(server, database, "s")).mails)

    await eventually(has_begun)
    name = database.rpartition("/")[2]
    epoch = (await evidence(server, database, "s")).log[-1][1]
    began_at = time.time()
    match way:
        case "kill -9":
            a.kill()
        case "freeze":
            a.freeze()
        case _:
            async with b.client() as client:
                await client.drain_node("a")
    asking = f"SELECT min(at) FROM whisperer.notification WHERE epoch>{epoch} HAVING min(at) IS NOT NULL"  # noqa: S608
    ((first_at,),) = await eventually(partial(server._run, asking, name))
    return float(first_at) - began_at


def main(rounds: int) -> None:
    with running_server(durable=True) as server:
        for way in WAYS:
            took = []
            for _ in range(rounds):
                with (
                    tempfile.TemporaryDirectory() as folder,
                    server.database() as database,
                    nodes(database, Path(folder), "a", "b") as (a, b),
                ):
                    took.append(asyncio.run(once(server, database, way, a, b)))
            spread = f"{min(took):.2f} to {max(took):.2f} s in {rounds} rounds"
            print(f"{way:8} {statistics.median(took):.2f} s ({spread})", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
