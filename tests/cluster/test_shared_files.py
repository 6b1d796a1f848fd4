"""Files of agents in a folder that all nodes share: they are where the session is, and are deleted with it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.client import Client
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import SettingsError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server import duties
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.store.postgresql.registry import Registry
from ai_whisperer.tools.files import removing
from tests.cluster.stage import TOKEN
from tests.simulation.stage import call, prompt_of, results_of, round_of

TEXT = "what ann wrote down"


def answer(request: ModelRequest) -> Answer | str:
    if round_of(request):
        return results_of(request)[-1]
    if prompt_of(request) == "write":
        return call("write_file", path="notes.txt", content=TEXT)
    return call("read_file", path="notes.txt")


@asynccontextmanager
async def two_clients(database: str, folder: Path, *works: Path | None) -> AsyncIterator[list[Client]]:
    """Clients of two servers in this process, whose files are in these folders."""
    async with AsyncExitStack() as stack:
        clients = []
        for name, work in zip(("a", "b"), works, strict=True):
            settings = Settings(
                data=folder / name, store=database, node=name, port=0, model="scripted", token=TOKEN, work=work
            )
            server = await stack.enter_async_context(running(settings, model_factory=lambda _: FunctionModel(answer)))
            clients.append(await stack.enter_async_context(Client(server.address.url, TOKEN, session_id="s")))
        yield clients


def test_files_move_with_their_session_and_are_deleted_with_it(database: str, tmp_path: Path) -> None:
    work = tmp_path / "shared"

    async def scenario() -> None:
        async with two_clients(database, tmp_path, work, work) as (of_a, of_b):
            shown = (await of_a.cluster_status()).nodes
            assert all(each.has_same_settings and each.sandbox not in ("auto", "untried") for each in shown)
            await of_a.create_session("s")
            await of_a.create_agent("ann", {"tools": ["write_file", "read_file"]})
            await of_a.run_task("ann", "write")
            assert (await of_a.move_session("s", "b")).node == "b"
            assert TEXT in str(await of_b.run_task("ann", "read"))
            (written,) = work.rglob("notes.txt")
            await of_b.delete_session("s")
            assert not written.exists()

    asyncio.run(scenario())
    assert not list(tmp_path.glob("[ab]/work/*"))


def test_files_of_a_session_that_was_deleted_at_another_node_are_removed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_SWEEP_BEATS", 1)
    files = {each: tmp_path / "a" / "work" / each for each in ("s", "elsewhere", "foreign", "again")}

    async def scenario() -> None:
        async with two_clients(database, tmp_path, None, None) as (of_a, of_b):
            for session_id in ("s", "elsewhere", "again"):
                client = of_a.session(session_id)
                await client.create_session(session_id)
                await client.create_agent("ann", {"tools": ["write_file", "read_file"]})
                await client.run_task("ann", "write")
                assert (await of_a.move_session(session_id, "b")).node == "b"
            files["foreign"].mkdir()  # of a session that this database has never had
            await of_b.session("again").delete_session("again")
            await of_b.session("again").create_session("again")
            with monkeypatch.context() as patch:
                patch.setattr(Registry, "deleted_elsewhere", no_answer)
                await of_b.delete_session("s")
                await of_b.cluster_status()
                assert files["s"].exists(), "nothing is removed while nobody can say what is there"
            async with asyncio.timeout(60):
                while files["s"].exists():
                    await of_b.cluster_status()
            assert [each.exists() for each in files.values()] == [False, True, True, True]

    asyncio.run(scenario())


def test_files_that_could_not_be_removed_are_removed_later(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_SWEEP_BEATS", 1)
    refused: list[Path] = []
    remove_beneath = removing.remove_beneath

    def busy_at_first(root: Path, path: Path) -> None:
        if len(refused) < 3:
            refused.append(path)
            raise OSError(errno.EBUSY, "in use")
        remove_beneath(root, path)

    async def scenario() -> None:
        async with two_clients(database, tmp_path, None, None) as (of_a, _):
            client = of_a.session("s")
            await client.create_session("s")
            await client.create_agent("ann", {"tools": ["write_file", "read_file"]})
            await client.run_task("ann", "write")
            monkeypatch.setattr(removing, "remove_beneath", busy_at_first)
            await client.delete_session("s")
            files = tmp_path / "a" / "work" / "s"
            assert files.exists()
            async with asyncio.timeout(60):
                while files.exists():
                    await of_a.cluster_status()
            assert len(refused) == 3

    asyncio.run(scenario())


async def no_answer(_: Registry) -> list[str]:
    raise ConnectionError


@pytest.mark.parametrize("works", [("one", None), ("one", "another")], ids=["one has none", "each has its own"])
def test_the_status_tells_of_nodes_whose_files_are_elsewhere(
    database: str, tmp_path: Path, works: tuple[str | None, ...]
) -> None:
    async def scenario() -> None:
        folders = [None if each is None else tmp_path / each for each in works]
        async with two_clients(database, tmp_path, *folders) as (of_a, _):
            assert [each.has_same_settings for each in (await of_a.cluster_status()).nodes] == [True, False]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("store", "work", "told"),
    [
        (None, "shared", "work is for sessions in PostgreSQL"),
        ("postgresql://127.0.0.1:1/none", "file", "Mount it, let the user of the server write to it"),
    ],
    ids=["a data folder has its own", "a file"],
)
def test_a_folder_that_cannot_be_shared_is_refused_before_anything_is_opened(
    tmp_path: Path, store: str | None, work: str, told: str
) -> None:
    (tmp_path / "file").write_text("")

    async def scenario() -> None:
        settings = Settings(data=tmp_path / "data", store=store, work=tmp_path / work, port=0, model="scripted")
        with pytest.raises(SettingsError, match=told):
            async with running(settings):
                pass

    asyncio.run(scenario())
