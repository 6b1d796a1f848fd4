"""Every notification of every scenario must be what the protocol says of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ai_whisperer.protocol.notification_params import PARAMS
from ai_whisperer.protocol.wire import wire_type
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.log import NotificationBus

_TYPES = {name: wire_type(kind) for name, kind in PARAMS.items()}
_KEYS = {name: {field.encode_name for field in msgspec.structs.fields(kind)} for name, kind in _TYPES.items()}


def complaint_about(name: str, params: dict[str, Any]) -> str | None:
    """What the protocol does not say of such a notification, if anything."""
    if name not in _TYPES:
        return f"{name} is not among the notifications of the protocol"
    if unknown := params.keys() - _KEYS[name]:
        return f"{name} has {sorted(unknown)}, of which the protocol knows nothing"
    try:
        msgspec.convert(params, _TYPES[name])
    except msgspec.ValidationError as error:
        return f"{name}: {error}"
    return None


@pytest.fixture(autouse=True)
def _as_the_protocol_says(monkeypatch: pytest.MonkeyPatch) -> Any:
    complaints: set[str | None] = set()
    tell, publish_delta = Decision.tell, NotificationBus.publish_delta

    def checked_tell(self: Decision, name: str, params: dict[str, Any]) -> None:
        complaints.add(complaint_about(name, params))
        tell(self, name, params)

    def checked_delta(self: NotificationBus, name: str, **rest: Any) -> None:
        complaints.add(complaint_about(name, rest["params"]))
        publish_delta(self, name, **rest)

    monkeypatch.setattr(Decision, "tell", checked_tell)
    monkeypatch.setattr(NotificationBus, "publish_delta", checked_delta)
    yield
    assert complaints <= {None}, "\n".join(str(each) for each in complaints if each)
