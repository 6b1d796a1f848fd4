"""`whisperer cluster up`, `scale` and `down`: nodes that Ray runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from ai_whisperer.cli.calling import SERVING, Call
from ai_whisperer.cluster.ray.chores import is_name, names_of
from ai_whisperer.cluster.ray.launch import OF_EACH_NODE, Launch, settings_for_nodes
from ai_whisperer.domain.cluster import NodeState, RayStatus
from ai_whisperer.domain.nodes import RunNode
from ai_whisperer.errors import InvalidInputError, RayError, StateError, StoreError
from ai_whisperer.store.postgresql.addresses import EXAMPLE, checked_address

if TYPE_CHECKING:
    from ai_whisperer.cluster.ray.crew import RayCrew
    from ai_whisperer.store.postgresql.launching import LaunchBook

OF_ALL_NODES: Final = ("store", *(name for name in SERVING if name not in OF_EACH_NODE))
"""The settings that `up` takes: those of a server, without those that differ from node to node."""
_PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_LOOKS_BETWEEN_QUESTIONS: Final = 15
_DEATHS: Final = 3
"""A node that died so often while it was waited for is not waited for any longer."""
_SECRET_BYTES: Final = 24


class RunNodes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many nodes there are to be, and those that have joined; `trouble` is why others have not."""

    wanted: int
    nodes: Sequence[RunNode]
    trouble: str = ""


async def up(
    call: Call,
    *,
    ray: Annotated[
        str, typer.Option("--ray", metavar="HOST:PORT", help="The head of Ray, on whose machines nodes run.")
    ],
    hosts: Annotated[int, typer.Option("--hosts", metavar="NUMBER", min=1, max=1000, help="How many nodes.")],
    cpus: Annotated[
        float, typer.Option("--cpus", metavar="NUMBER", min=0, help="Processors that Ray counts for each node.")
    ] = 1.0,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="FOLDER", help="On each machine: the data folders of its nodes are below it."),
    ] = None,
    accept_open_ray: Annotated[
        bool, typer.Option("--accept-open-ray", help="Use a Ray that asks nobody for a token, and runs anybody's code.")
    ] = False,
) -> None:
    """Let Ray run so many nodes, with these settings, and wait until they have joined. Again: bring everything back.

    Ray places each on a machine, starts it again when it dies, and elsewhere when its machine does. Run this on a
    machine that Ray has. Settings hold for nodes that are started from now on; drain one to have it started anew.
    """
    from ai_whisperer.cluster.ray import connecting

    store = _store(call)
    async with _book(store) as book:
        connecting.check(ray, is_open_accepted=accept_open_ray)
        former = await book.ray()
        if former is not None and former.address != ray and not is_silent(former):
            raise StateError(
                f"The nodes of this database are run by the Ray at {former.address}. End those first: whisperer "
                "cluster down"
            )
        cluster_id, _ = await book.cluster()
        settings = settings_for_nodes(call.settings)
        settings.setdefault("token", _former_token(await book.launch()) or secrets.token_urlsafe(_SECRET_BYTES))
        launch = Launch(cluster_id=cluster_id, settings=settings, folder=folder, cpus=cpus)
        await book.order(ray, hosts, msgspec.json.encode(launch).decode())
        with ExitStack() as stack:
            crew = _crew(stack, ray, store, launch)
            await asyncio.to_thread(crew.keep)
            _tell(call, await _joined(book, hosts, crew), settings["token"])


async def scale(
    call: Call, hosts: Annotated[int, typer.Argument(metavar="NUMBER", min=1, max=1000, help="How many nodes.")]
) -> None:
    """Let there be so many nodes, and wait until it is so. One that is too many is drained before it is ended."""
    async with _book(_store(call)) as book:
        ray = _running(await book.ray())
        await book.want(hosts)
        if is_silent(ray):
            raise RayError(f"It will be {hosts} nodes once Ray is back. {silence(ray)}")
        _tell(call, await _joined(book, hosts), _former_token(await book.launch()))


async def down(call: Call) -> None:
    """Drain and end all nodes that Ray runs. What is in the database stays, and `up` goes on with it."""
    from ai_whisperer.cluster.ray import connecting
    from ai_whisperer.cluster.ray.keeping import Crew, NoCrew, keep

    store = _store(call)
    async with _book(store) as book:
        ray = _running(await book.ray())
        launch = msgspec.json.decode(await book.launch(), type=Launch)
        await book.want(0)
        with ExitStack() as stack:
            crew: Crew = NoCrew()
            try:
                connecting.check(ray.address, is_open_accepted=True)
                found = _crew(stack, ray.address, store, launch)
                await asyncio.to_thread(found.dismiss_keeper)
                crew = found
            except RayError:
                if not is_silent(ray):
                    raise  # it would start again what is ended
            while not await keep(book, crew):  # noqa: ASYNC110 - it is others who end
                await asyncio.sleep(_LOOK_SECONDS)
        await book.order("", 0, msgspec.json.encode(launch).decode())
    call.output.told(RunNodes(wanted=0, nodes=()), "All nodes that Ray ran have ended.")


def is_silent(ray: RayStatus) -> bool:
    from ai_whisperer.cluster.ray.keeping import SILENT_SECONDS

    return ray.silent_seconds > SILENT_SECONDS


def silence(ray: RayStatus) -> str:
    """What a person should know of a Ray that is not heard of."""
    return (
        f"The Ray at {ray.address} was last heard of {ray.silent_seconds:,.0f} s ago: the nodes that live continue "
        "with their sessions, and none is started or replaced. Start Ray again, then: whisperer cluster up"
    )


def _store(call: Call) -> str:
    store = call.settings.values.store
    if store is None:
        raise InvalidInputError(f"Name the database (--store), or set store. Its address looks like {EXAMPLE}.")
    return checked_address(store)


@asynccontextmanager
async def _book(store: str) -> AsyncIterator[LaunchBook]:
    """The book of the nodes, in a database whose tables are up to date."""
    try:
        from ai_whisperer.store.postgresql.checking import migrate
        from ai_whisperer.store.postgresql.launching import LaunchBook
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError("PostgreSQL needs the package asyncpg: pip install 'ai-whisperer[cluster]'") from error
    await migrate(store)
    book = LaunchBook(store)
    try:
        yield book
    except ConnectionError as error:
        raise StoreError(f"The database does not answer ({error}). Try again later.") from error
    finally:
        await book.close()


def _crew(stack: ExitStack, address: str, store: str, launch: Launch) -> RayCrew:
    from ai_whisperer.cluster.ray.connecting import connected
    from ai_whisperer.cluster.ray.crew import RayCrew, namespace_of

    stack.enter_context(connected(address, namespace_of(launch.cluster_id)))
    return RayCrew(store, launch.cluster_id, launch.cpus)


def _running(ray: RayStatus | None) -> RayStatus:
    if ray is None:
        raise StateError(
            "Ray runs no nodes of this database. Let it: whisperer cluster up --ray HOST:PORT --hosts NUMBER"
        )
    return ray


async def _joined(book: LaunchBook, wanted: int, crew: RayCrew | None = None) -> RunNodes:
    """Wait until there are exactly those nodes that there are to be, or until it is clear why not."""
    names = set(names_of(wanted))
    trouble = ""
    for look in range(int(_PATIENCE_SECONDS / _LOOK_SECONDS)):
        nodes = [each for each in await book.run_nodes() if is_name(each.name) and each.has_lock]
        joined = [each for each in nodes if each.state is NodeState.JOINED]
        if {each.name for each in nodes} == {each.name for each in joined} == names:
            return RunNodes(wanted=wanted, nodes=joined)
        if crew is not None and look % _LOOKS_BETWEEN_QUESTIONS == _LOOKS_BETWEEN_QUESTIONS - 1:
            missing = names - {each.name for each in joined}
            trouble = await asyncio.to_thread(_trouble, crew, sorted(missing))
            if trouble:
                break
        await asyncio.sleep(_LOOK_SECONDS)
    return RunNodes(
        wanted=wanted, nodes=joined, trouble=trouble or "The others wait for room in Ray, or are about to end."
    )


def _trouble(crew: RayCrew, names: Sequence[str]) -> str:
    for name in names:
        status = crew.status(name)
        if status is not None and status.deaths >= _DEATHS:
            return f"'{name}' does not start, and is tried again and again: {status.last_words}"
    return ""


def _former_token(launch: str) -> str | None:
    """The token that the nodes have, if they were started before."""
    return str(msgspec.json.decode(launch, type=Launch).settings["token"]) if launch else None


def _tell(call: Call, found: RunNodes, token: str | None) -> None:
    pages = [f"  {each.name}  {each.address}/?token={token}" for each in found.nodes]
    told = f"{len(found.nodes)} of {found.wanted} nodes have joined:" if found.nodes else "No node has joined."
    call.output.told(found, "\n".join([told, *pages, *([found.trouble] if found.trouble else [])]))
