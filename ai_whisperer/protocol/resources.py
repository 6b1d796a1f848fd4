"""The methods `resource.*`: what the tools of agents touch."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.waits import ResourceStatus
from ai_whisperer.protocol.method import Effect, InSession, Method


class ResourceList(msgspec.Struct, frozen=True):
    """The resources that tools touch now, by name."""

    resources: list[ResourceStatus]


LIST_RESOURCES = Method("resource.list", InSession, ResourceList, "list_resources", Effect.READS)
