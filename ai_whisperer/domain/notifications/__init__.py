"""The notifications of a session: each is a record with a name, its fields and a sentence that says what it tells.

The protocol, its TypeScript and the reference are made from these. Add one in the module of its concept; here only the
modules are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ai_whisperer.domain.notifications import (
    agents,
    approvals,
    context,
    events,
    limits,
    locks,
    mail,
    mcp,
    providers,
    questions,
    resources,
    rooms,
    schedules,
    sessions,
    steps,
    switch,
    tasks,
)
from ai_whisperer.domain.notifications.base import REGISTERED, Told

_ORDER = [
    concept.__name__
    for concept in (
        agents,
        tasks,
        steps,
        context,
        mail,
        events,
        schedules,
        rooms,
        switch,
        locks,
        approvals,
        questions,
        limits,
        providers,
        mcp,
        resources,
        sessions,
    )
]

NOTIFICATIONS: Mapping[str, type[Told]] = MappingProxyType(
    dict(sorted(REGISTERED.items(), key=lambda each: _ORDER.index(each[1].__module__)))
)
"""Every notification by its name, in the order of the reference."""
