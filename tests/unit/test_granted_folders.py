"""Which folders agents can be granted, and how that is written down."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.definitions import definition_from, merged, overridden
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import DefinitionError, InvalidInputError, SettingsError, TemplateError, ToolError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.serving import folders_of
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import Settings
from ai_whisperer.templates.parsing import parse_template
from ai_whisperer.tools.commands import job_for
from ai_whisperer.tools.workplace import OWN, Folder, Workplace


def loaded(folder: Path, *, environment: dict[str, str] | None = None, **flags: Any) -> Settings:
    return load_settings(flags, environment=environment or {}, folder=folder).values


def test_folders_come_from_a_table_a_variable_or_a_flag(tmp_path: Path) -> None:
    assert loaded(tmp_path, environment={"WHISPERER_FOLDERS": "docs=a, code=/b"}).folders == {
        "docs": tmp_path / "a",
        "code": Path("/b"),
    }
    assert loaded(tmp_path, folders="docs=c").folders == {"docs": tmp_path / "c"}
    (tmp_path / "whisperer.toml").write_text('[folders]\ndocs = "d"\n')
    read = load_settings({}, environment={}, folder=tmp_path)
    assert read.values.folders == {"docs": tmp_path / "d"}
    assert next(each.value for each in read.shown() if each.name == "folders") == {"docs": str(tmp_path / "d")}


@pytest.mark.parametrize("written", ["docs", "shared=a", "own=a", "a/b=c", "..=a", "=a", "docs=", "a=b,a=c"])
def test_a_bad_name_is_refused_where_it_stands(tmp_path: Path, written: str) -> None:
    with pytest.raises(SettingsError, match=r"folders is wrong \(environment WHISPERER_FOLDERS\)"):
        loaded(tmp_path, environment={"WHISPERER_FOLDERS": written})


def test_a_server_takes_only_folders_that_are_there_and_apart_from_its_data(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "data" / "work").mkdir(parents=True)
    (tmp_path / "link").symlink_to("data")
    data = tmp_path / "data"
    docs = tmp_path / "docs"
    assert folders_of(Settings(data=data, folders={"docs": docs})) == {"docs": docs.resolve()}
    assert folders_of(Settings(data=data, folders={"all": tmp_path})) == {"all": tmp_path.resolve()}
    for bad in (data, data / "work", tmp_path / "link"):
        with pytest.raises(SettingsError, match="lies in it, where the runtime has its data"):
            folders_of(Settings(data=data, folders={"x": bad}))
    with pytest.raises(SettingsError, match="all of this machine"):
        folders_of(Settings(data=data, folders={"x": Path("/")}))
    with pytest.raises(SettingsError, match="is not there"):
        folders_of(Settings(data=data, folders={"x": tmp_path / "missing"}))


@pytest.mark.parametrize(
    "folders",
    [["docs"], "docs", 5, {"": "."}, {5: "."}, {"a b": "."}, {"shared": "."}, {"x": 5}, {"x": ""}, {"x": "a\0b"}],
)
def test_a_manager_refuses_folders_that_make_no_sense(folders: Any) -> None:
    with pytest.raises(InvalidInputError):
        AsyncAgentSessionManager(folders=folders)
    with pytest.raises(InvalidInputError, match="work must be"):
        AsyncAgentSessionManager(work=5)  # type: ignore[arg-type]


TEMPLATE = "---\nname: writer\nfolders:{}\n---\nWrite.\n"


@pytest.mark.parametrize(
    ("written", "granted"),
    [
        ("\n  shared: write\n  docs: read", {"shared": Access.WRITE, "docs": Access.READ}),
        (" [shared, docs]", {"shared": Access.READ, "docs": Access.READ}),
        (" shared, docs", {"shared": Access.READ, "docs": Access.READ}),
    ],
)
def test_a_template_grants_folders_by_name(written: str, granted: dict[str, Access]) -> None:
    assert parse_template(TEMPLATE.format(written)).definition.folders == granted


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("\n  shared: write\n  docs: rw", "line 5: `folders.docs` must be one of read, write, not"),
        ("\n  - shared\n  - 5", "line 3: `folders`"),
        (" 5", "line 3: `folders`"),
        ("\n  5: read", "line 3: `folders[5]` must be text, not a whole number"),
        ("\n  - {a: b}", "line 3: `folders`"),
    ],
)
def test_a_grant_that_cannot_be_read_is_told_with_its_line(written: str, complaint: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(TEMPLATE.format(written))
    assert complaint in caught.value.message


def test_a_config_grants_folders_in_the_same_ways_and_over_those_of_a_template() -> None:
    assert definition_from({"folders": ["docs"]}).folders == {"docs": Access.READ}
    base = definition_from({"folders": {"docs": "write", "code": "write"}})
    assert overridden(base, {"folders": ["docs"]}).folders == {"docs": Access.READ, "code": Access.WRITE}
    assert merged({"folders": ["a"]}, {"folders": {"a": "write"}}) == {"folders": {"a": "write"}}
    with pytest.raises(DefinitionError):
        definition_from({"folders": [5]})


def working_in(folder: Path) -> Workplace:
    folders = {OWN: folder / "own", "project": folder / "project", "docs": folder / "docs"}
    return Workplace(
        folders={name: Folder(path=path, access=Access.WRITE) for name, path in folders.items()},
        network=(),
        limits=EffectiveLimits(),
        working="project",
    )


@pytest.mark.parametrize(
    ("path", "name", "inside"),
    [
        ("src/a.py", "project", "src/a.py"),
        (".", "project", "."),
        ("project/settings.py", "project", "project/settings.py"),
        ("./docs/a", "docs", "a"),
        ("docs/a", "docs", "a"),
        ("own/a", OWN, "a"),
        ("own", OWN, "."),
    ],
)
def test_paths_are_relative_to_the_folder_that_an_agent_works_in(
    tmp_path: Path, path: str, name: str, inside: str
) -> None:
    place = working_in(tmp_path).place(path)
    assert (place.name, place.path) == (name, inside)
    with pytest.raises(ToolError, match=r"leads out .* relative to your working folder, .* \('own/', 'docs/'\)"):
        working_in(tmp_path).place("../a")


def test_programs_run_in_the_folder_that_an_agent_works_in(tmp_path: Path) -> None:
    job = job_for(working_in(tmp_path), ("true",), temporary="/nowhere", wall_seconds=1)
    assert job.cwd == str(tmp_path / "project")
    assert job.env["HOME"] == str(tmp_path / "own")


def test_an_agent_works_only_in_a_folder_that_it_is_granted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncAgentSessionManager(folders={"docs": tmp_path}, model="scripted", templates=()) as manager:
            with pytest.raises(DefinitionError, match="to work in the folder 'docs', which it is not granted"):
                await manager.create_agent("a", {"working_folder": "docs"})
            await manager.create_agent("a", {"working_folder": "docs", "folders": ["docs"]})

    asyncio.run(scenario())


@pytest.mark.parametrize("stated", [None, "project"])
def test_agents_of_files_for_claude_code_work_in_the_project_if_that_is_set(tmp_path: Path, stated: str | None) -> None:
    project, agents = tmp_path / "project", tmp_path / "other" / ".claude" / "agents"
    project.mkdir()
    agents.mkdir(parents=True)
    (agents / "visitor.md").write_text("---\nname: visitor\ntools: Write\n---\nWrite.\n")
    (agents.parent / "own.md").write_text("---\nname: own\n---\n")
    write = ToolCall(call_id="c", name="write_file", arguments='{"path": "a.txt", "content": "x"}')

    def say(request: ModelRequest) -> Answer | str:
        return "done" if isinstance(request.turns[-1], ToolTurn) else Answer(tool_calls=(write,))

    async def scenario() -> None:
        async with AsyncAgentSessionManager(
            tmp_path / "data",
            folders={"project": project},
            claude_folder=stated,
            templates=[agents, agents.parent],
            model_factory=lambda _: FunctionModel(say),
        ) as manager:
            await manager.run_task("visitor", "write")
            await manager.create_agent("own", template="own")
            definition = manager.active_sessions["own"].record.definition
            assert (definition.folders, definition.working_folder) == ({}, "")

    asyncio.run(scenario())
    assert (project / "a.txt").exists() == (stated is not None)


def test_a_folder_for_claude_code_must_be_one_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="claude_folder must name one of folders, not 'projet'"):
        AsyncAgentSessionManager(folders={"project": tmp_path}, claude_folder="projet")
    with pytest.raises(SettingsError, match=r"claude_folder is wrong\. .* There are: project"):
        folders_of(Settings(data=tmp_path / "data", folders={"project": tmp_path}, claude_folder="projet"))
