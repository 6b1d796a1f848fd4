"""From the name of a host to addresses that may be talked to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address

from ai_whisperer.core.address_kinds import IPAddress, address_in, kind_of
from ai_whisperer.core.network import NetworkGrants
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.fetching.target import Target

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a name and a port to its addresses; raises `OSError` if there are none."""


_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="whisperer-names")
"""For names alone: one that takes long must not keep those waiting who need a thread for something else."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses that this machine knows for the name, asked for in a thread."""
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, ask)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def granted_addresses(target: Target, grants: NetworkGrants, resolve: Resolver) -> list[IPAddress]:
    """The addresses of the target, every one of them granted; raises `ToolError` if one is not, or there is none."""
    if not grants.allows(target.host, target.port):
        raise ToolError(_not_granted(target, grants))
    literal = address_in(target.host)
    addresses = [literal] if literal is not None else await _resolved(target, resolve)
    for address in addresses:
        if not grants.allows_address(target.host, target.port, address):
            leads = "is" if literal is not None else f"leads to {address},"
            raise ToolError(
                f"{target.host} {leads} a {kind_of(address)} address, which must not be fetched from. Only a host that "
                "is granted in full, without '*', may be on this machine or in its own networks."
            )
    return addresses


async def _resolved(target: Target, resolve: Resolver) -> list[IPAddress]:
    try:
        found = await resolve(target.host, target.port)
        addresses = [ip_address(each) for each in found]
    except (OSError, ValueError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"The host {target.host} was not found: {reason}. Check the spelling of the URL.") from error
    if not addresses:
        raise ToolError(f"The host {target.host} was not found: it has no address. Check the spelling of the URL.")
    return addresses


def _not_granted(target: Target, grants: NetworkGrants) -> str:
    granted = ", ".join(grant.written for grant in grants.grants)
    return (
        f"You may not talk to {target.host} at port {target.port}. "
        + (f"You are granted: {granted}. " if granted else "You are granted no host at all. ")
        + "A person can grant more in the field 'network' of your definition."
    )
