"""What a keeper decides to do, and how nodes that Ray runs are set up: all without a Ray."""

from __future__ import annotations

import importlib.metadata
import socket
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster.ray import connecting
from ai_whisperer.cluster.ray.chores import Chore, Kind, chores, names_of
from ai_whisperer.cluster.ray.launch import Launch, environment_of_nodes, settings_file, settings_for_nodes
from ai_whisperer.cluster.ray.shell import LONGEST_PAUSE_SECONDS, listening_address, pause_after
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import RunNode
from ai_whisperer.errors import RayError
from ai_whisperer.setting_sources import load_settings


def node(name: str, state: NodeState = NodeState.JOINED, *, sessions: int = 0, has_lock: bool = True) -> RunNode:
    return RunNode(
        host_id=f"id {name}", name=name, address="", state=state, beat=1, has_lock=has_lock, sessions=sessions
    )


def todo(wanted: int, actors: list[str], *nodes: RunNode) -> list[tuple[Kind, str]]:
    return [(each.kind, each.name) for each in chores(wanted, actors, nodes)]


def test_missing_actors_are_started_and_those_that_wait_for_room_are_left_alone() -> None:
    assert todo(3, ["ray-2"]) == [(Kind.START, "ray-1"), (Kind.START, "ray-3")]
    assert todo(2, ["ray-1", "ray-2"], node("ray-1")) == []


def test_a_node_that_is_too_many_is_drained_and_ended_only_when_it_is_empty() -> None:
    actors = names_of(2)
    one = node("ray-1")
    assert todo(1, actors, one, node("ray-2", sessions=3)) == [(Kind.DRAIN, "ray-2")]
    assert todo(1, actors, one, node("ray-2")) == [(Kind.DRAIN, "ray-2")], "it may take one at any moment"
    assert todo(1, actors, one, node("ray-2", NodeState.DRAINING, sessions=1)) == [(Kind.DRAIN, "ray-2")]
    assert todo(1, actors, one, node("ray-2", NodeState.DRAINING)) == [(Kind.END, "ray-2")]
    assert todo(1, actors, one) == [(Kind.END, "ray-2")]
    assert todo(1, actors, one, node("ray-2", sessions=1, has_lock=False)) == [(Kind.END, "ray-2")], "it is dead"


def test_a_node_whose_actor_is_gone_is_drained_and_let_go_through_the_database() -> None:
    assert todo(0, [], node("ray-1", sessions=1)) == [(Kind.DRAIN, "ray-1")]
    empty = node("ray-1", NodeState.DRAINING)
    assert chores(0, [], [empty]) == [Chore(Kind.REMOVE, "ray-1", empty)]


def test_a_wanted_node_that_somebody_has_drained_is_started_anew_once_it_is_empty() -> None:
    assert todo(1, ["ray-1"], node("ray-1", NodeState.DRAINING, sessions=2)) == []
    assert todo(1, ["ray-1"], node("ray-1", NodeState.DRAINING)) == [(Kind.RESTART, "ray-1")]


def test_nodes_that_people_have_started_are_none_of_its_business() -> None:
    assert todo(0, [], node("one", NodeState.DRAINING), node("ray-x"), node("ray-01")) == []


def test_the_settings_of_a_node_are_those_that_were_set_where_the_cluster_was_brought_up(tmp_path: Path) -> None:
    (tmp_path / "whisperer.toml").write_text(
        'port = 9\nmodel = "scripted:rules \\"a\\", b.yaml"\ntemplates = ["mine"]\n'
        '[tokens]\nalice = "a,b=c"\n[limits]\nmax_queue_length = 7\n[folders]\ndocs = "texts"\n'
        '[mcp.files]\ncommand = "serve files"\nenv = { KEY = "v" }\n',
        encoding="utf-8",
    )
    given = load_settings({"store": "postgresql://h/d"}, environment={"WHISPERER_TOKEN": "t"}, folder=tmp_path)
    launch = Launch(cluster_id="c", settings=settings_for_nodes(given), folder=str(tmp_path))
    place = launch.data_of("ray-1")
    assert place == tmp_path / "c" / "ray-1"
    place.mkdir(parents=True)
    (place / "whisperer.toml").write_text(settings_file(launch.settings, "postgresql://h/d"), encoding="utf-8")
    found = load_settings({}, environment={}, folder=place)
    for name in ("store", "model", "templates", "tokens", "token", "limits", "folders", "mcp"):
        assert getattr(found.values, name) == getattr(given.values, name), name
    assert found.sources["port"] == found.sources["sandbox"] == "default"


def test_settings_in_the_environment_of_a_machine_are_not_those_of_its_node() -> None:
    own = {"PATH": "/bin", "OPENAI_API_KEY": "key", "WHISPERER_HOME": "h"}
    others = {"RAY_AUTH_TOKEN": "secret", "WHISPERER_STORE": "another", "WHISPERER_TOKEN": "t", "WHISPERER_MODEL": "m"}
    assert environment_of_nodes({**own, **others}) == own


def test_a_folder_for_settings_that_others_can_write_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    launch = Launch(cluster_id="c", settings={})
    folder = launch.data_of("ray-1").parents[1]
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match=r"is somebody else's, or others may write there\. Name a folder"):
        launch.data_of("ray-1")


def test_a_process_that_dies_at_its_start_is_tried_ever_less_often() -> None:
    assert [pause_after(deaths) for deaths in (0, 1, 2, 3)] == [0.5, 0.5, 1.0, 2.0]
    assert pause_after(100) == LONGEST_PAUSE_SECONDS


def test_a_node_listens_where_ray_knows_its_machine() -> None:
    assert listening_address("10.0.0.5") == "10.0.0.5"
    assert listening_address("127.0.0.7") == "127.0.0.1"
    assert listening_address("machine.example") == "machine.example"


def test_without_ray_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(RayError, match=r"Ray is not installed: pip install 'ai-whisperer\[cluster\]'"):
        connecting.check_installed()
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "2.9.3")
    with pytest.raises(RayError, match=r"Ray 2\.9\.3 is installed, and 2\.60 is needed, on all machines: pip install"):
        connecting.check_installed()


def test_an_address_where_no_ray_is_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "check_installed", lambda: "2.60.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(RayError, match=f"No Ray answers at {address} .*`ray start --head`"):
        connecting.check(address, is_open_accepted=False)
    with pytest.raises(RayError, match=r"No Ray answers at a\.\.b:6379"):
        connecting.check("a..b:6379", is_open_accepted=False)
    for wrong in ("auto", "ray://10.0.0.1:10001", "10.0.0.1"):
        with pytest.raises(RayError, match=r"is no address of a Ray\. Write HOST:PORT"):
            connecting.check(wrong, is_open_accepted=False)
