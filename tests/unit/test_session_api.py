"""The manager and the client have one API. What only one of them has is listed here, with the reason."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import pytest
from msgspec.structs import fields as fields_of

from ai_whisperer import AsyncAgentSessionManager, Client
from ai_whisperer.client import base as of_client
from ai_whisperer.client.calls import complete
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Effect, Method
from ai_whisperer.runtime.api import base as of_manager
from ai_whisperer.server import answers
from ai_whisperer.server.calls import ANSWERS, Read, passed_on
from ai_whisperer.session_api import SessionApi, arguments_of, call_named, told

SHARED = sorted(name for name in vars(SessionApi) if not name.startswith("_"))

ONLY_IN_MANAGER = {
    "active_sessions": "the agents themselves are in its process",
    "check_fork": "for the server, which clients ask to `fork_session`",
    "failure": "its store is in its process; clients are told with each request",
    "flushed": "what a client is answered is on disk",
    "give_tools": "tools are code, and code does not go over a connection",
    "is_flushed": "what a client is answered is on disk",
    "first_seq": "the client is told with what it reads of the log",
    "last_seq": "clients have it with what they read",
    "limits_reached": "for the metrics of the server",
    "log_agents": "handlers of the standard library are in its process",
    "page": "it can serve one; a server always does",
    "subscribe": "clients have `events`, which continues over lost connections",
    "take_server_limits": "for the server, which clients ask to `set_server_limits`",
    "used": "for the metrics of the server",
    "work_counts": "for the metrics of the server",
}
ONLY_IN_CLIENT = {
    "cluster_status": "about the server",
    "drain_node": "about the server",
    "move_session": "about the server",
    "set_needs": "about the server",
    "fork_session": "a server plays it in a process of its own: see `replay.recording` for one that is in files",
    "compare_sessions": "it reads two sessions: see `replay.recording`",
    "import_session": "a program brings a session into a folder with `import_into_folder`",
    "answer_of": "a manager has the records that `run_task` takes the answer from",
    "create_session": "a manager is one session, a server has many",
    "delete_session": "a manager is one session, a server has many",
    "discover": "describes the connection",
    "events": "a manager has `subscribe`",
    "get_agent": "a manager has the agents in `active_sessions`",
    "get_agent_states": "a manager reads all of one moment by itself: `list_agents` and `last_seq`",
    "get_session": "a manager is one session, a server has many",
    "get_template": "a manager has the library",
    "list_sessions": "a manager is one session, a server has many",
    "list_tools": "a manager was given them",
    "server_info": "about the server",
    "session": "a manager is one session, a server has many",
    "set_server_limits": "a manager has no limits but those of its session",
}
IN_BOTH_APART = {
    "open": "one opens a store, one a connection",
    "close": "one waits for steps under way, one lets go",
    "session_id": "a property, which says what it is",
    "read_log": "a server has a setting for the level",
}
MORE_IN_MANAGER = {
    ("create_agent", "tools"): "tools are code, and code does not go over a connection",
    ("approve", "by"): "the server says who decides: the principal of the connection",
    ("answer_question", "by"): "the server says who decides: the principal of the connection",
    ("refuse_question", "by"): "the server says who decides: the principal of the connection",
    ("refuse", "by"): "the server says who decides: the principal of the connection",
}
MORE_IN_CLIENT = {
    ("wait_task", "timeout_seconds"): "a client that gives up has to be told how far the task is",
}
OTHER_TYPES_IN_MANAGER = {
    ("create_agent", "template"): "it takes a template that was read already too",
    ("create_agent", "return"): "the agent itself is in its process",
    ("start_agent", "template"): "it takes a template that was read already too",
    ("agent_threads", "return"): "a property, read-only",
}
SAYS_MORE = {
    "AsyncAgentSessionManager.create_agent": "about `tools`",
    "Client.stream": "about lost connections",
    "Client.wait_task": "about `timeout_seconds`",
}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def function_of(kind: type, name: str) -> Callable[..., Any]:
    member = inspect.getattr_static(kind, name)
    function = inspect.unwrap(getattr(member, "fget", member))
    assert inspect.isfunction(function)
    return function


def types_of(function: Callable[..., Any], agent_ref: object) -> dict[str, Any]:
    """Each names agents in its own way, and says how under the same name."""
    return get_type_hints(function, localns={"AgentRef": agent_ref})


def test_what_only_one_of_them_has_is_known() -> None:
    manager, client = public(AsyncAgentSessionManager), public(Client)
    assert manager - client == ONLY_IN_MANAGER.keys()
    assert client - manager == ONLY_IN_CLIENT.keys()
    assert manager & client == {*SHARED, *IN_BOTH_APART}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize(
    ("kind", "agent_ref", "more", "other_types"),
    [
        (AsyncAgentSessionManager, of_manager.AgentRef, MORE_IN_MANAGER, OTHER_TYPES_IN_MANAGER),
        (Client, of_client.AgentRef, MORE_IN_CLIENT, {}),
    ],
    ids=["manager", "client"],
)
def test_a_call_takes_and_returns_what_the_api_says(
    name: str,
    kind: type,
    agent_ref: object,
    more: dict[tuple[str, str], str],
    other_types: dict[tuple[str, str], str],
) -> None:
    said, made = function_of(SessionApi, name), function_of(kind, name)
    parameters = {
        each.name: (each.kind, each.default)
        for each in inspect.signature(made).parameters.values()
        if (name, each.name) not in more
    }
    assert parameters == {each.name: (each.kind, each.default) for each in inspect.signature(said).parameters.values()}
    expected, types = types_of(said, agent_ref), types_of(made, agent_ref)
    apart = {each for each in expected if types[each] != expected[each]}
    assert apart == {each for call, each in other_types if call == name}


def test_what_is_listed_as_more_is_there() -> None:
    for kind, listed in ((AsyncAgentSessionManager, MORE_IN_MANAGER), (Client, MORE_IN_CLIENT)):
        for name, parameter in listed:
            assert parameter in inspect.signature(function_of(kind, name)).parameters


@pytest.mark.parametrize("kind", [AsyncAgentSessionManager, Client])
def test_a_call_says_what_the_api_says(kind: type) -> None:
    apart = {name for name in SHARED if getattr(kind, name).__doc__ != getattr(SessionApi, name).__doc__}
    assert {f"{kind.__name__}.{name}" for name in apart} == {
        each for each in SAYS_MORE if each.startswith(f"{kind.__name__}.")
    }
    assert all(getattr(kind, name).__doc__ for name in SHARED)


@pytest.mark.parametrize("name", [each for each in SHARED if each != "stream"])
def test_all_calls_of_the_client_are_awaited(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(Client, name))
    assert getattr(Client, name) is not getattr(SessionApi, name)


CALLS = [method for method in METHODS.values() if method.call is not None]


@pytest.mark.parametrize("method", CALLS, ids=lambda method: method.name)
def test_the_params_of_a_method_carry_the_arguments_of_its_call(method: Method[Any, Any]) -> None:
    assert method.call is not None
    parameters = call_named(method.call).parameters
    fields = {each.name: each for each in fields_of(method.params)}
    fields.pop("session_id", None)
    arguments = arguments_of(method.call, fields)
    assert sorted(arguments.values()) == sorted(parameters)
    for field, parameter in arguments.items():
        default = parameters[parameter].default
        assert fields[field].required == (default is inspect.Parameter.empty)
        assert fields[field].required or fields[field].default == default
    assert method.once is None or parameters[method.once].default is None


def test_each_call_is_one_method() -> None:
    assert len({method.call for method in CALLS}) == len(CALLS)
    assert {method.call for method in CALLS} <= set(SHARED)


def test_what_is_looked_up_at_once_only_reads() -> None:
    assert ANSWERS["task.wait"] is answers.wait_task
    for name, answer in ANSWERS.items():
        assert not isinstance(answer, Read) or METHODS[name].effect is Effect.READS


def test_a_method_that_is_no_call_is_not_passed_on() -> None:
    with pytest.raises(TypeError, match=r"rpc\.discover is no call of a session"):
        passed_on(METHODS["rpc.discover"])


def test_a_client_that_leaves_out_what_no_method_does_is_not_made() -> None:
    class Half(of_client.ClientBase, SessionApi[str]):
        pass

    with pytest.raises(TypeError, match="has to say what it does"):
        complete(Half)


def test_what_a_class_says_itself_stays() -> None:
    @told
    class Quiet:
        async def at_rest(self) -> None:
            """Rest."""

        def list_agents(self) -> Awaitable[None] | None: ...

    assert Quiet.at_rest.__doc__ == "Rest."
    assert Quiet.list_agents.__doc__ == SessionApi.list_agents.__doc__
