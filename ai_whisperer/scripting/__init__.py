"""Agents from a script, without asyncio and without ceremony:

    from ai_whisperer import create_agent, send_task, wait_until_done

    analyzer = create_agent("analyzer")
    send_task(analyzer, "Analyze customer sentiment from feedback.csv")
    wait_until_done()

The functions talk to the server that `connect` was told, that the settings name (`WHISPERER_URL`, `whisperer.toml`), or
that runs on the data folder. If there is none, one is started in this process. That one ends with the script: what is
not done then resumes when a server is started on the same folder, so call `wait_until_done` to see the end of it.
Another script that runs on the folder meanwhile uses that server too, and loses it then: start one with `whisperer
serve` for scripts that are to outlive each other.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ai_whisperer.scripting.sync_client import SyncClient as SyncClient

P = ParamSpec("P")
R = TypeVar("R")


class _Script:
    """The one client that the functions of a script share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: SyncClient | None = None

    def connect(self, url: str | None, token: str | None, session_id: str | None) -> SyncClient:
        with self._lock:
            self._close()
            self._client = SyncClient(url, token, session_id=session_id)
            return self._client

    def disconnect(self) -> None:
        with self._lock:
            self._close()

    def unlock(self) -> None:
        """A forked process has none of the threads that might hold the lock."""
        self._lock = threading.Lock()

    @property
    def client(self) -> SyncClient:
        with self._lock:
            if self._client is None or not self._client.is_open:
                self._client = SyncClient()
            return self._client

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


_script = _Script()
os.register_at_fork(after_in_child=_script.unlock)


def connect(url: str | None = None, token: str | None = None, *, session_id: str | None = None) -> SyncClient:
    """Use this server and this session from now on; what is left out is found. The client before it is closed."""
    return _script.connect(url, token, session_id)


def disconnect() -> None:
    """Let go of the server. The next function that needs one connects again."""
    _script.disconnect()


def _shared(method: Callable[Concatenate[SyncClient, P], R]) -> Callable[P, R]:
    """The method of the client that all functions share."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return method(_script.client, *args, **kwargs)

    signature = inspect.signature(method)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return call


agent_states = _shared(SyncClient.agent_states)
agent_threads = _shared(SyncClient.agent_threads)
broadcast_event = _shared(SyncClient.broadcast_event)
cancel_task = _shared(SyncClient.cancel_task)
create_agent = _shared(SyncClient.create_agent)
create_schedule = _shared(SyncClient.create_schedule)
delete_schedule = _shared(SyncClient.delete_schedule)
events = _shared(SyncClient.events)
get_agent_status = _shared(SyncClient.get_agent_status)
get_task = _shared(SyncClient.get_task)
interrupt_agent = _shared(SyncClient.interrupt_agent)
list_agents = _shared(SyncClient.list_agents)
list_events = _shared(SyncClient.list_events)
list_schedules = _shared(SyncClient.list_schedules)
list_tasks = _shared(SyncClient.list_tasks)
mailbox = _shared(SyncClient.mailbox)
pause_agent = _shared(SyncClient.pause_agent)
pause_schedule = _shared(SyncClient.pause_schedule)
reply_mail = _shared(SyncClient.reply_mail)
resume_agent = _shared(SyncClient.resume_agent)
resume_schedule = _shared(SyncClient.resume_schedule)
run_task = _shared(SyncClient.run_task)
send_mail = _shared(SyncClient.send_mail)
send_mails = _shared(SyncClient.send_mails)
send_task = _shared(SyncClient.send_task)
sent_mail = _shared(SyncClient.sent_mail)
sleep_agent = _shared(SyncClient.sleep_agent)
start_agent = _shared(SyncClient.start_agent)
stop_agent = _shared(SyncClient.stop_agent)
wait_task = _shared(SyncClient.wait_task)
wait_until_done = _shared(SyncClient.wait_until_done)
wake_agent = _shared(SyncClient.wake_agent)

_functions = sorted(name for name, each in globals().items() if inspect.isfunction(each) and not name.startswith("_"))
__all__ = ["SyncClient", *_functions]  # noqa: PLE0604 - the names above, once
