"""The commands there are: where each is, and what the list of all says of it.

A module is imported when a command of it is called, so that `whisperer --help` has to load none.
"""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "demo": {
        "demo": "Watch eleven agents at work on the workflows of the guide, see the plug pulled, and see them resume.",
    },
    "serve": {
        "serve": "Run the server until Ctrl-C or SIGTERM, or until its terminal is closed.",
    },
    "page": {
        "page": "Print the address of the running server's page, with the token that lets you in.",
    },
    "run": {
        "run": "Do one thing and leave: give an agent one task, or play a workflow of the guide.",
    },
    "record": {
        "record": "Record a session: a file that whisperer replay plays without models, as a test of its agents.",
    },
    "fork": {
        "fork": "Let a session continue from an entry of its log in another one, with other definitions.",
    },
    "compare": {
        "compare": "Lay two sessions or recordings side by side: where agents first differ, and what it comes to.",
    },
    "replay": {
        "replay": "Play conversation scripts and recordings of sessions, and say what is not as expected.",
    },
    "storm": {
        "storm": "Put a team into many universes with faults, and look whether what has to hold does.",
    },
    "agents": {
        "start": "Let an agent take work.",
        "pause": "Let no new step of an agent begin. The step under way runs to its end, mail keeps arriving.",
        "resume": "Let a paused agent resume where it was.",
        "stop": "Cancel what an agent runs and free everything. Its mail and its queue are kept.",
        "sleep": "Let an agent sleep for a time, until a time, or until an event, whichever comes first.",
        "wake": "End the sleep of an agent.",
        "agents": "Show the agents; create or delete one.",
    },
    "tasks": {
        "tasks": "Show the tasks; send, cancel or retry one; show or erase threads.",
    },
    "context": {
        "context": "Show what an agent's model is shown of a conversation; make it shorter.",
    },
    "mail": {
        "mail": "Show what agents have written to you; write to them.",
    },
    "chat": {
        "chat": "Talk with an agent, or with several in a group; Ctrl-D ends it.",
        "rooms": "Show the rooms; open a group, read it, post in it, delete it.",
    },
    "watch": {
        "watch": "Watch the agents at work: a live table and the last events; Ctrl-C ends it.",
        "logs": "Show the debug log of an agent; with --json an entry a line.",
    },
    "schedule": {
        "schedule": "Show the schedules; create, pause or delete one.",
        "events": "Show the events; broadcast one.",
    },
    "locks": {
        "lock": "Show who has which lock; take, renew, release, break or check one.",
    },
    "tools": {
        "resources": (
            "Show the resources that tools touch now: who holds them, and who waits for its turn, in that order."
        ),
        "tools": "Show the tools that agents can be granted, and the tool files that have a mistake.",
        "mcp": "Show the MCP servers; start one to see its tools.",
    },
    "memory": {
        "memory": "Show the files that an agent keeps for itself, or one of them.",
    },
    "approvals": {
        "approvals": "Show the tool calls that wait for your approval; approve or refuse one.",
    },
    "questions": {
        "questions": "Show what agents ask you; answer a question, or refuse to.",
    },
    "limits": {
        "limits": "Show what agents and the session may use; change it.",
    },
    "providers": {
        "providers": (
            "Show the accounts of providers: how many requests are under way, who waits, and which provider is down."
        ),
    },
    "sessions": {
        "usage": "Show what the agents have used, each and together.",
        "sessions": "Show your sessions; create or delete one.",
        "templates": "Show the templates that agents can be made of; check them.",
    },
    "retention": {
        "prune": "Erase the content of what ended longer ago, and the log before that; the database becomes smaller.",
        "storage": "Show how much room the session takes, by what is in it, and the database of all sessions.",
    },
    "moving": {
        "backup": "Write a backup of the data folder to a file, also while its server runs.",
        "restore": "Put a backup into a data folder that has no database, or with --replace in place of what it has.",
        "export": "Write one session to a file that people can read, with its files.",
        "import": "Bring in a session that was exported.",
    },
    "store": {
        "store": "Look after a PostgreSQL database that keeps the sessions: check, migrate, copy.",
    },
    "cluster": {
        "cluster": "Show the nodes that share a PostgreSQL database; drain one, move a session; let Ray run them.",
    },
    "config": {
        "config": "Show every setting with its value and where the value came from.",
    },
    "doctor": {
        "doctor": "Look whether everything is there that is needed, and say what to do where it is not.",
    },
}
"""By module, in their order: the name of each command, and the first sentence of its help."""

GROUPS: Final = frozenset(
    [
        "agents",
        "approvals",
        "cluster",
        "context",
        "events",
        "limits",
        "lock",
        "mail",
        "mcp",
        "questions",
        "rooms",
        "schedule",
        "sessions",
        "store",
        "tasks",
        "templates",
    ]
)
"""Those that have commands of their own: they are listed last."""
