"""Opening beneath a folder: nothing that lies elsewhere is ever opened, by the kernel's help or without it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ai_whisperer.tools.files import beneath
from ai_whisperer.tools.files.beneath import Links, has_openat2, open_beneath, open_by_parts, open_folder

Open = Callable[..., int]
WAYS = [pytest.param(open_by_parts, id="by parts")]
if has_openat2():
    WAYS.append(pytest.param(open_beneath, id="openat2"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    for link, target in {
        "a/to-b": "../a/b",
        "a/chain": "to-b/../file",
        "a/out": "../../secret",
        "a/out-by-chain": "out",
        "a/far": "/etc/passwd",
        "a/root": "/proc/self/root",
        "round": "round",
        "to-a": "a",
        "up": "..",
    }.items():
        (root / link).symlink_to(target)
    opened = open_folder(str(root.resolve()))
    yield opened
    os.close(opened)


def tried(way: Open, folder: int, path: str, links: Links, flags: int = os.O_RDONLY) -> str:
    """What was opened, by its name in the folder above the root, or the error."""
    try:
        descriptor = way(folder, path, flags, links=links)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    try:
        status = os.fstat(descriptor)
        root = os.fstat(folder)
        if (status.st_dev, status.st_ino) == (root.st_dev, root.st_ino):
            return "."
        return "file" if os.path.isfile(f"/dev/fd/{descriptor}") else "folder"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("path", "without_links", "with_links"),
    [
        ("a/file", "file", "file"),
        ("a/b/../file", "file", "file"),
        (".", ".", "."),
        ("a/..", ".", "."),
        ("a/to-b", "ELOOP", "folder"),
        ("a/chain", "ELOOP", "file"),
        ("to-a/file", "ELOOP", "file"),
        ("a/out", "ELOOP", "EXDEV"),
        ("a/out-by-chain", "ELOOP", "EXDEV"),
        ("a/far", "ELOOP", "EXDEV"),
        ("a/root", "ELOOP", "EXDEV"),
        ("a/root/etc/passwd", "ELOOP", "EXDEV"),
        ("up/secret", "ELOOP", "EXDEV"),
        ("round", "ELOOP", "ELOOP"),
        ("../secret", "EXDEV", "EXDEV"),
        ("a/../../secret", "EXDEV", "EXDEV"),
        ("/etc/passwd", "EXDEV", "EXDEV"),
        ("a/file/more", "ENOTDIR", "ENOTDIR"),
        ("missing/more", "ENOENT", "ENOENT"),
        ("n" * 300, "ENAMETOOLONG", "ENAMETOOLONG"),
    ],
)
def test_a_path_leads_to_what_is_beneath_or_nowhere(
    way: Open, folder: int, path: str, without_links: str, with_links: str
) -> None:
    assert tried(way, folder, path, Links.REFUSED) == without_links
    assert tried(way, folder, path, Links.BENEATH) == with_links


@pytest.mark.parametrize("way", WAYS)
def test_a_file_is_not_made_through_a_link_that_leads_out(way: Open, folder: int, tmp_path: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT
    (tmp_path / "root" / "dangling").symlink_to(tmp_path / "made")
    assert tried(way, folder, "dangling", Links.BENEATH, flags) == "EXDEV"
    assert tried(way, folder, "dangling", Links.REFUSED, flags) == "ELOOP"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("links", Links)
def test_swapping_a_folder_for_a_link_lets_nobody_out(way: Open, links: Links, folder: int, tmp_path: Path) -> None:
    """A thread swaps `a` for a link to a folder outside that has a file of the same name, again and again."""
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside")
    (root / "link").symlink_to("../outside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(root / "a", root / "aside")
            os.rename(root / "link", root / "a")
            os.rename(root / "a", root / "link")
            os.rename(root / "aside", root / "a")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: dict[str, int] = {}
    try:
        for tries in range(100_000):
            if tries >= 1000 and "inside" in seen and len(seen) > 1:
                break
            try:
                descriptor = way(folder, "a/file", os.O_RDONLY, links=links)
            except OSError as error:
                found = errno.errorcode[error.errno or 0]
            else:
                found = os.read(descriptor, 100).decode()
                os.close(descriptor)
            seen[found] = seen.get(found, 0) + 1
    finally:
        done.set()
        swapping.join()
    assert "inside" in seen
    assert len(seen) > 1
    assert set(seen) <= {"inside", "ENOENT", "ENOTDIR", "EXDEV", "ELOOP", "EAGAIN"}


def test_a_folder_whose_way_has_become_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="symbolic links"):
        open_folder(str(tmp_path.resolve() / "link"))


def test_without_the_system_call_the_path_is_walked(
    folder: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(beneath, "has_openat2", lambda: False)
    assert tried(open_beneath, folder, "a/chain", Links.BENEATH) == "file"
    assert tried(open_beneath, folder, "a/out", Links.BENEATH) == "EXDEV"
    os.close(open_folder(str(tmp_path.resolve())))


@pytest.mark.parametrize("way", WAYS)
def test_nothing_stays_open(way: Open, folder: int) -> None:
    before = len(os.listdir("/dev/fd"))
    for path in ("a/file", "a/out", "a/b/../../../secret", "missing", "a/chain", "round"):
        tried(way, folder, path, Links.BENEATH)
    assert len(os.listdir("/dev/fd")) == before
