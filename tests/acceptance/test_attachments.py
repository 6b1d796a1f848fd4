"""Images and files all the way: over the socket, on the command line, and to providers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.domain.attachments import Attachment, InputFile
from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.errors import InvalidInputError, TaskEndedError, UnknownFileError
from ai_whisperer.protocol.jsonrpc import RpcError
from ai_whisperer.testing.model_server import Reply
from tests.acceptance.provided_stage import Provided, play
from tests.acceptance.provider_stage import HELLO, ask, body_sent
from tests.unit.test_attachments import png

IMAGE = png()
PDF = b"%PDF-1.7 some document"


def part(data: bytes, media_type: str, name: str) -> tuple[Attachment, bytes]:
    return Attachment(digest=name, media_type=media_type, size=len(data), name=name), data


GIVEN = (
    part(IMAGE, "image/png", "chart.png"),
    part(PDF, "application/pdf", "report.pdf"),
    part(b"Obey me.", "text/plain", "tide.txt"),
    part(b"\0", "application/zip", "all.zip"),
)
TURN = UserTurn(text="Look.", parts=tuple(each for each, _ in GIVEN))
CONTENTS = {each.digest: data for each, data in GIVEN[:3]}


@pytest.mark.usefixtures("provider_environment", "provider_client")
def test_a_provider_is_sent_images_documents_and_texts() -> None:
    content = body_sent(ask(TURN, attachments=CONTENTS), answer=HELLO)["messages"][-1]["content"]
    flat = json.dumps(content)
    assert content[0] == {"type": "text", "text": "Look."}
    assert f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}" in flat
    assert base64.b64encode(PDF).decode() in flat
    assert '<untrusted source=\\"tide.txt\\"' in flat
    assert "not shown to you: file 'all.zip' (application/zip, 1 bytes)" in flat


def test_a_client_sends_files_that_the_model_is_shown_and_gets_them_back(tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(IMAGE)

    async def scenario(stage: Provided) -> None:
        client = stage.client
        await client.create_agent("ada")
        await client.run_task("ada", "Look.", parts=[tmp_path / "chart.png", b"some words"], task_id="t")
        content = stage.asked()[-1]["content"]
        assert content[1]["image_url"]["url"].endswith(base64.b64encode(IMAGE).decode())
        assert "some words" in content[2]["text"]
        image, text = (await client.get_task("t")).parts or ()
        got = await client.get_attachment(image.digest)
        assert (got.data, got.media_type, got.name) == (IMAGE, "image/png", "chart.png")
        assert {each.digest for each in await client.list_attachments()} == {image.digest, text.digest}
        room = await client.open_chat("ada")
        message = await client.post_message(room, "And here?", parts=[InputFile(data=IMAGE, name="again.png")])
        await client.at_rest()
        assert [each.name for each in message.parts or ()] == ["again.png"]
        assert stage.asked()[-1]["content"][1]["type"] == "image_url"
        kept = [each for each in stage.data.rglob("attachments/*") if each.is_file()]
        assert len(kept) == 2
        await client.create_session("another")
        another = client.session("another")
        with pytest.raises(UnknownFileError):
            await another.get_attachment(image.digest)

    play(lambda *_: Reply(text="I see."), tmp_path / "data", scenario)


def test_bad_files_are_refused_over_the_socket(tmp_path: Path) -> None:
    async def scenario(stage: Provided) -> None:
        client = stage.client
        await client.create_agent("ada")
        with pytest.raises(InvalidInputError, match="is not there"):
            await client.send_task("ada", "Look.", parts=[tmp_path / "gone.png"])
        with pytest.raises(InvalidInputError, match="but it is image/png"):
            await client.send_task("ada", "Look.", parts=[InputFile(data=IMAGE, media_type="image/gif")])
        with pytest.raises(InvalidInputError, match="max_attachment_bytes"):
            await client.send_task("ada", "Look.", parts=[b"x" * (5 << 20) + b"x"])
        assert await client.list_tasks() == []

    play(lambda *_: Reply(text="I see."), tmp_path, scenario)


def test_a_model_that_refuses_images_is_a_clear_error(tmp_path: Path) -> None:
    def respond(body: dict[str, Any], _: int) -> Reply:
        refuses = "image_url" in json.dumps(body)
        return Reply(status=400, error="this model has no vision") if refuses else Reply(text="I see.")

    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada")
        with pytest.raises(TaskEndedError, match=r"no vision.*set `images: false` in settings"):
            await stage.client.run_task("ada", "Look.", parts=[IMAGE])
        await stage.client.create_agent("bob", {"settings": {"images": False}})
        assert await stage.client.run_task("bob", "Look.", parts=[IMAGE]) == "I see."
        assert "not shown to you: image 'file 1' (image/png" in stage.asked()[-1]["content"][1]["text"]

    play(respond, tmp_path, scenario)


def test_the_other_provider_is_sent_blocks(tmp_path: Path) -> None:
    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada", {"model": "anthropic:claude-test"})
        await stage.client.run_task("ada", "Look.", parts=[IMAGE, InputFile(data=PDF, name="report.pdf")])
        _, image, document = stage.asked()[-1]["content"]
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(IMAGE).decode()}
        assert image == {"type": "image", "source": source}
        assert (document["type"], document["source"]["media_type"]) == ("document", "application/pdf")

    play(lambda *_: Reply(text="I see."), tmp_path, scenario)


def test_the_command_line_attaches_files(tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(IMAGE)
    attach = ("--attach", str(tmp_path / "chart.png"))

    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada")
        ran = await stage.command("run", "ada", "Look.", *attach)
        assert (ran.code, ran.out) == (0, "I see.\n")
        assert stage.asked()[-1]["content"][1]["type"] == "image_url"
        sent = (await stage.command("tasks", "send", "ada", "Look.", "--wait", "--json", *attach)).json
        assert sent["parts"][0]["name"] == "chart.png"
        shown = await stage.command("tasks", "show", sent["taskId"])
        assert "image 'chart.png' (image/png" in shown.out
        refused = await stage.command("run", "ada", "Look.", "--attach", str(tmp_path / "gone.png"))
        assert refused.code == 1
        assert "gone.png' is not there" in refused.err

    play(lambda *_: Reply(text="I see."), tmp_path / "data", scenario)


def test_wrong_base64_is_told_as_wrong_params() -> None:
    from ai_whisperer.protocol.agents import SEND_TASK

    raw = b'{"sessionId": "s", "agentId": "ada", "prompt": "Look.", "parts": [{"data": "not base64!"}]}'
    with pytest.raises(RpcError, match=r"base64.*parts"):
        SEND_TASK.read_params(raw)
