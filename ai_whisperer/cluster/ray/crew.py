"""The actors in Ray: made, found, asked and ended. Ray is loaded when one of these is called."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Final

from ai_whisperer.cluster.ray.chores import is_name
from ai_whisperer.cluster.ray.keeping import Keeper
from ai_whisperer.cluster.ray.shell import END_SECONDS, Shell, ShellStatus, listening_address
from ai_whisperer.errors import RayError

KEEPER: Final = "keeper"
_ANSWER_SECONDS: Final = 10.0
_PLACED_SECONDS: Final = 3.0
_THREADS: Final = 4
"""So many calls at a time: one that ends a process takes a while."""


def namespace_of(cluster_id: str) -> str:
    """Clusters on one Ray know nothing of each other."""
    return f"whisperer-{cluster_id}"


class RayCrew:
    """The actors of one cluster."""

    def __init__(self, store: str, cluster_id: str, cpus: float) -> None:
        self._store = store
        self._namespace = namespace_of(cluster_id)
        self._cpus = cpus

    def names(self) -> Collection[str]:
        from ray.util import list_named_actors

        found = _asked(lambda: list_named_actors(all_namespaces=True))
        return {each["name"] for each in found if each["namespace"] == self._namespace and is_name(each["name"])}

    def start(self, name: str) -> None:
        self._make(PlacedShell, name, self._cpus, self._store, name)

    def restart(self, name: str) -> bool:
        return bool(self._call(name, "restart", END_SECONDS + _ANSWER_SECONDS))

    def status(self, name: str) -> ShellStatus | None:
        """None if the actor is not there, or waits for room."""
        try:
            return ShellStatus(*self._call(name, "status", _PLACED_SECONDS))
        except RayError:
            return None

    def end(self, name: str, *, has_node: bool) -> None:
        with suppress(RayError):  # it is not placed, or has lost its machine
            self._call(name, "end", END_SECONDS + _ANSWER_SECONDS if has_node else _PLACED_SECONDS)
        self._kill(name)

    def keep(self, address: str) -> None:
        """Have a keeper of the newest version of everything, in place of a former one, as long as this is the Ray."""
        self.dismiss_keeper()
        self._make(Keeper, KEEPER, 0, self._store, self, address)
        self._call(KEEPER, "ping", END_SECONDS)

    def dismiss_keeper(self) -> None:
        self._kill(KEEPER)

    def _kill(self, name: str) -> None:
        import ray

        with suppress(RayError):  # there is none
            _asked(lambda: ray.kill(ray.get_actor(name, namespace=self._namespace), no_restart=True))

    def _make(self, kind: type[Any], name: str, cpus: float, *arguments: Any) -> None:
        import ray

        options = {
            "name": name,
            "namespace": self._namespace,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": -1,
            "max_concurrency": _THREADS,
            "num_cpus": cpus,
            "scheduling_strategy": "SPREAD",
        }
        _asked(lambda: ray.remote(kind).options(**options).remote(*arguments))

    def _call(self, name: str, method: str, seconds: float) -> Any:
        import ray

        def call() -> Any:
            actor = ray.get_actor(name, namespace=self._namespace)
            return ray.get(getattr(actor, method).remote(), timeout=seconds)

        return _asked(call)


class PlacedShell(Shell):
    """A shell on the machine where Ray has placed it."""

    def __init__(self, store: str, name: str) -> None:
        from ray.util import get_node_ip_address

        super().__init__(store, name, listening_address(get_node_ip_address()))


def _asked(ask: Callable[[], Any]) -> Any:
    """What Ray answers; its own errors are told as ours."""
    from ray import exceptions

    try:
        return ask()
    except (exceptions.RayError, ValueError, RuntimeError, OSError) as error:
        raise RayError(f"Ray does not do it: {str(error).strip().partition(chr(10))[0]}") from error
