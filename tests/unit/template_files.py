"""Template files for tests."""

from pathlib import Path

BUILTIN_NAMES = [
    "alice", "analyzer", "coder", "debbie", "eamonn", "integrator", "monitor", "patricia", "planner", "reviewer",
    "tessa", "writer",
]  # fmt: skip


def write(folder: Path, name: str, fields: str = "", body: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(f"---\nname: {name}\n{fields}\n---\n{body}\n")
    return path
