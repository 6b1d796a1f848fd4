"""Connecting to Ray: whether there is one, of our version, that does not let everybody in."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ai_whisperer.errors import RayError

SUPPORTED: Final = "2.60"
_CONNECT_SECONDS: Final = 5.0
_PROBE_SECONDS: Final = 60.0
_ADDRESS: Final = re.compile(r"(?P<host>[^\s:/]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
_MODE: Final = "RAY_AUTH_MODE"


def check_installed() -> str:
    """The version of Ray that is installed; raises a `RayError` that says how to get the right one."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise RayError("Ray is not installed: pip install 'ai-whisperer[cluster]'") from None
    if _minor(version) != SUPPORTED:
        raise RayError(
            f"Ray {version} is installed, and {SUPPORTED} is needed, on all machines: pip install "
            "'ai-whisperer[cluster]'"
        )
    return version


def check(address: str, *, is_open_accepted: bool) -> None:
    """Raise a `RayError` unless nodes may run in the Ray at this address. Then `connected` can connect to it.

    It is for a program that has not used Ray yet: from then on this process asks Ray as that one wants it.
    """
    installed = check_installed()
    _check_reached(address)
    answer, told = _probed(address, "disabled")
    if answer == "in" and not is_open_accepted:
        raise RayError(
            f"The Ray at {address} lets everybody in: whoever reaches it can run any code on its machines. Start it "
            f"with {_MODE}=token and the same RAY_AUTH_TOKEN on all of them (`ray get-auth-token --generate` makes "
            "one), or, where nobody else reaches it, accept that: --accept-open-ray"
        )
    os.environ[_MODE] = "disabled" if answer == "in" else "token"
    if answer == "out":
        answer, told = _probed(address, "token")
    if answer == "out":
        raise RayError(
            f"The Ray at {address} wants its token, and none or another is here. Set RAY_AUTH_TOKEN, or "
            "RAY_AUTH_TOKEN_PATH to a file with it, or keep it in ~/.ray/auth_token."
        )
    if answer != "in":
        raise RayError(f"What answers at {address} is no Ray that can be used ({told}). Correct the address (--ray).")
    if _minor(told) != _minor(installed):
        raise RayError(
            f"The Ray at {address} has version {told}, and {installed} is installed here. Install the same on all "
            "machines: pip install 'ai-whisperer[cluster]'"
        )


@contextmanager
def connected(address: str, namespace: str) -> Iterator[None]:
    """This process is one of Ray's while the block runs."""
    import ray
    from ray import exceptions

    try:
        ray.init(address=address, namespace=namespace, logging_level=logging.ERROR, log_to_driver=False)
    except (exceptions.RayError, RuntimeError, ConnectionError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise RayError(
            f"The Ray at {address} cannot be used from here ({why}). Run this on a machine that Ray has, such as its "
            "head."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reached(address: str) -> None:
    matched = _ADDRESS.fullmatch(address)
    if matched is None:
        raise RayError(f"'{address}' is no address of a Ray. Write HOST:PORT, as `ray start --head` tells it (6379).")
    try:
        socket.create_connection((matched["host"].strip("[]"), int(matched["port"])), _CONNECT_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise RayError(
            f"No Ray answers at {address} ({error}). Start it (`ray start --head`), or correct the address (--ray)."
        ) from error


def _probed(address: str, mode: str) -> tuple[str, str]:
    """What `probing` says, in a process of its own: Ray looks once at how it is to ask, and writes what it thinks."""
    command = [sys.executable, "-m", "ai_whisperer.cluster.ray.probing", address]
    environment = {**os.environ, _MODE: mode, "RAY_BACKEND_LOG_LEVEL": "fatal"}
    try:
        ran = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, check=False, timeout=_PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "none", f"nothing came for {_PROBE_SECONDS:g} s"
    last = ran.stdout.strip().rpartition("\n")[2] or f"none {ran.stderr.strip().rpartition(chr(10))[2]}"
    answer, _, told = last.partition(" ")
    return answer, told


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
