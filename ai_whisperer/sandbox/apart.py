"""A job in a world of its own: namespaces around it, no privileges in it, and a filter of calls over it."""

from __future__ import annotations

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import namespaces, system
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.covering import check_can_be_hidden
from ai_whisperer.sandbox.held import limit_this_process, threads_in_use
from ai_whisperer.sandbox.system import existing

_LAID_OUT = (*system.FOLDERS, *system.ETC, *system.interpreter_folders())


class Apart:
    """Takes the process that holds a job out of the server's world, step by step. With `network` it keeps that."""

    def __init__(self, *, network: bool) -> None:
        self._network = network
        self._root: namespaces.Root | None = None
        self._why_not = "the kernel gives this user none"

    def prepare(self, *, apart: bool) -> None:
        """Lay out what every job sees; `apart`: the processes of others are out of reach already."""
        threads_in_use()
        if not apart:
            return
        try:
            self._root = namespaces.Root(
                readable=existing(_LAID_OUT), devices=existing(system.DEVICES), network=self._network
            )
        except OSError as error:
            self._why_not = str(error)

    def enter(self, job: Job) -> None:
        """Go in, under the limits of the job; raises `SandboxError` if it cannot be."""
        if self._root is None:
            raise SandboxError(
                f"Namespaces are not available here ({self._why_not}), and without them a program could change modes "
                "and times of the server's files."
            )
        check_can_be_hidden(job.hidden, job.writable)
        temporary = [job.temporary] if job.temporary else []
        self._root.enter(
            readable=[path for path in existing(job.readable) if path not in _LAID_OUT],
            writable=existing([*job.writable, *temporary]),
            hidden=job.hidden,
            owned=(*job.owned, *temporary),
            temporary=job.temporary if system.is_temporary_free(job) else "",
        )
        limit_this_process(job)
