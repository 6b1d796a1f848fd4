"""Resources of MCP servers, which agents list and read by tools that they are granted by name."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.acceptance.mcp_stage import everything, odd, play, staged

LIST, READ = "mcp__odd__list_resources", "mcp__odd__read_resource"


def test_an_agent_reads_resources_of_a_published_server() -> None:
    async def scenario() -> None:
        grants = ("mcp__all__list_resources", "mcp__all__read_resource")
        async with staged({"all": everything()}, *grants) as stage:
            listed = await stage.call("mcp__all__list_resources")
            uri = listed.content.split()[0]
            read, template = await stage.run(
                ("mcp__all__read_resource", {"uri": uri}),
                ("mcp__all__read_resource", {"uri": "demo://resource/dynamic/blob/1"}),
            )
        assert stage.offered[0] == list(grants)
        assert "{" in listed.content, "it has templates too"
        assert read.content.startswith(f"[resource {uri}]\n")
        assert "kept as received/" in template.content
        assert all(result.untrusted for result in (listed, read, template))

    play(scenario)


def test_text_is_shown_and_binary_data_is_kept(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"ABCD").hexdigest()[:32]

    async def scenario() -> None:
        async with staged({"odd": odd("resources")}, READ, data=tmp_path) as stage:
            result = await stage.call(READ, uri="odd://a")
        assert result.content.splitlines() == [
            "[resource odd://a]",
            "words",
            f"[resource odd://a: unknown kind, 4 bytes, sha256 {digest}, kept as received/{digest}.bin]",
            "[a resource that cannot be read]",
        ]

    play(scenario)


def test_a_list_is_bounded_and_continued_where_it_ended() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("resources")}, "mcp__odd") as stage:
            first, second = await stage.run((LIST, {}), (LIST, {"cursor": "two"}))
        assert stage.offered[0] == [LIST, READ]
        assert first.content.splitlines() == [
            f"odd://a (a, {'d' * 300})",
            "There are more: call again with the cursor 'two'.",
        ]
        assert len(second.content.splitlines()) == 501
        assert second.content.endswith("[1,500 more are not shown]")

    play(scenario)


def test_what_cannot_be_read_is_an_error_that_a_model_can_read() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("resources")}, READ) as stage:
            gone, nonsense, nothing = await stage.run(
                (READ, {"uri": "odd://gone"}), (READ, {"uri": "odd://nonsense"}), (READ, {})
            )
        assert gone.content == "The MCP server 'odd' refused: there is no such thing"
        assert nonsense.content == "The MCP server returned something that is not a resource."
        assert nothing.content.startswith("uri must be text of at most 4,000 characters")
        assert all(result.is_error and result.untrusted for result in (gone, nonsense, nothing))

    play(scenario)


def test_a_server_without_resources_has_no_tools_for_them() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("plain")}, "mcp__odd") as stage:
            result = await stage.call(READ, uri="odd://a")
        assert stage.offered[0] == ["mcp__odd__act"]
        assert result.is_error

    play(scenario)
