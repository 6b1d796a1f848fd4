"""Answers to `resource.*`."""

from __future__ import annotations

from ai_whisperer.protocol import resources
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import reads


@reads(resources.LIST_RESOURCES)
def list_resources(session: AsyncAgentSessionManager, _: resources.ListResources) -> resources.ResourceList:
    return resources.ResourceList(session.list_resources())
