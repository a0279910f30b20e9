# Copyright 2026, the gpu_exact contributors
"""datasets/fetch.py against a server of this machine that does what servers do wrong."""

import bz2
import errno
import hashlib
import importlib.util
import io
import re
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("fetch", ROOT / "datasets/fetch.py")
fetch = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fetch)

CONTENT = bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content` under any path, and remembers what was asked for."""

    content = CONTENT
    etag: str | None = '"one"'
    knows_ranges = True
    length = True  # whether it says how long its answer is
    ends_after: int | None = None  # bytes of an answer, less than it promised
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    def handle_error(self, *_: object) -> None:
        """A client that goes away early is no news."""

    def source(self, name: str = "table.bin", **facts: object) -> fetch.Source:
        return fetch.Source(f"http://127.0.0.1:{self.server_port}/{name}", name, **facts)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers["Range"]
        server.asked.append(asked)
        if server.status != 200:
            return self.send_error(server.status)
        begin = 0
        if asked and server.knows_ranges and self.headers["If-Range"] == server.etag:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        size = len(server.content)
        if begin >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            return self.end_headers()
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        if server.etag:
            self.send_header("ETag", server.etag)
        if server.length:
            self.send_header("Content-Length", str(size - begin))
        self.end_headers()
        self.wfile.write(server.content[begin:][: server.ends_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def refused(source: fetch.Source, folder: Path, message: str) -> None:
    with pytest.raises(fetch.FetchError, match=message):
        fetch.fetch(source, folder)


def files(folder: Path) -> list[str]:
    return sorted(f.name for f in folder.iterdir())


def test_a_file_is_fetched_once(server, tmp_path):
    source = server.source(sha256=SHA256, size=len(CONTENT))
    for _ in range(2):
        assert fetch.fetch(source, tmp_path / "new").read_bytes() == CONTENT
    assert server.asked == [None] and files(tmp_path / "new") == ["table.bin"]


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_what_was_cut_short_goes_on(server, tmp_path, sha256):
    server.ends_after = 100_000
    refused(server.source(sha256=sha256), tmp_path, "ended after 100,000 of 5,120,000 bytes")
    assert files(tmp_path) == ["table.bin.part", "table.bin.part.version"]
    refused(server.source(sha256=sha256), tmp_path, "ended after 200,000 of 5,120,000 bytes")
    server.ends_after = None
    assert fetch.fetch(server.source(sha256=sha256), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert files(tmp_path) == ["table.bin"]


def test_a_complete_part_is_taken(server, tmp_path):
    (tmp_path / "table.bin.part").write_bytes(CONTENT)
    (tmp_path / "table.bin.part.version").write_text('"one"')
    assert fetch.fetch(server.source(sha256=SHA256), tmp_path).read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_longer_than_the_file_is_dropped(server, tmp_path):
    (tmp_path / "table.bin.part").write_bytes(CONTENT + b"more")
    (tmp_path / "table.bin.part.version").write_text('"one"')
    assert fetch.fetch(server.source(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "fault", [{"knows_ranges": False}, {"etag": '"two"', "content": CONTENT[::-1]}, {"etag": None}]
)
def test_where_parts_do_not_fit_all_of_it_is_fetched(server, tmp_path, fault):
    """A server without Range; one whose file is another by now; one that names no version."""
    if fault.get("etag", "") is None:
        server.etag = None
    server.ends_after = 100_000
    refused(server.source(), tmp_path, "ended after 100,000")
    server.ends_after = None
    for name, value in fault.items():
        setattr(server, name, value)
    assert fetch.fetch(server.source(), tmp_path).read_bytes() == server.content
    assert files(tmp_path) == ["table.bin"]


def test_a_wrong_hash_is_not_unpacked(server, tmp_path):
    server.content = bz2.compress(CONTENT)
    source = server.source("t.bz2", sha256="0" * 64, unpacked="t")
    refused(source, tmp_path, f"SHA-256 {hashlib.sha256(server.content).hexdigest()} instead of 0")
    assert files(tmp_path) == []
    (tmp_path / "t.bz2").write_bytes(server.content)  # there already, from elsewhere
    refused(source, tmp_path, "it was removed")
    assert files(tmp_path) == []


def test_a_wrong_size_is_told(server, tmp_path):
    refused(server.source(size=5), tmp_path, "5,120,000 bytes instead of 5")
    assert files(tmp_path) == []


def test_an_answer_of_unknown_length(server, tmp_path):
    server.length = False
    assert fetch.fetch(server.source(), tmp_path).read_bytes() == CONTENT


def test_a_missing_file(server, tmp_path):
    server.status = 404
    refused(server.source(), tmp_path, r"/table.bin answered 404 Not Found. Look for the file")


def test_no_server(tmp_path):
    with Server() as closed:
        source = closed.source()
    refused(source, tmp_path, "cannot be read: .*refused.* Check the network")


def test_too_little_room(server, tmp_path, monkeypatch):
    few = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: few)
    refused(server.source(), tmp_path, r"takes 5.1 MB more, and 1.0 MB are free in `.*`. Free some")


def test_a_full_disk(server, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetch.Bar, "show", full)
    refused(server.source(), tmp_path, f"The disk of `{re.escape(str(tmp_path))}` is full. Free")
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "copyfileobj", full)
    server.content = bz2.compress(CONTENT)
    refused(server.source("t.bz2", unpacked="t"), tmp_path, "is full")
    assert "t.part" not in files(tmp_path) and "t" not in files(tmp_path)


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, CONTENT)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content"), [("t.bz2", bz2.compress(CONTENT)), ("t.zip", zipped("t"))]
)
def test_unpacking(server, tmp_path, name, content):
    server.content = content
    for _ in range(2):
        assert fetch.fetch(server.source(name, unpacked="t"), tmp_path).read_bytes() == CONTENT
    assert files(tmp_path) == ["t", name]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.bz2", b"<html>come back later</html>"),
        ("t.bz2", bz2.compress(CONTENT)[:-20]),
        ("t.zip", b"<html>come back later</html>"),
        ("t.zip", zipped("another")),
    ],
)
def test_what_cannot_be_unpacked(server, tmp_path, name, content):
    server.content = content
    refused(server.source(name, unpacked="t"), tmp_path, "cannot be unpacked: .* Remove it")
    assert files(tmp_path) == [name]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_is_for_terminals(server, tmp_path):
    out = Terminal()
    fetch.fetch(server.source(), tmp_path / "a", out)
    last = out.getvalue().split("\r")[-1]
    assert last.startswith(f"table.bin [{'#' * fetch.BAR}] 100% of 5.1 MB, 5.1 MB at ")
    out = io.StringIO()
    fetch.fetch(server.source(), tmp_path / "b", out)
    assert "\r" not in out.getvalue() and f"SHA-256 {SHA256} (none is published" in out.getvalue()


def test_command_line(server, tmp_path, monkeypatch, capsys):
    sources = [server.source("a"), server.source("b")]
    monkeypatch.setitem(fetch.SOURCES, "airline", sources)
    assert fetch.main(["Airline", "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "b")]
    server.status = 503
    assert fetch.main(["airline", "--to", str(tmp_path / "other")]) == 1
    assert "error: http://127.0.0.1" in capsys.readouterr().err
    assert fetch.main(["Criteo"]) == 1
    assert "Criteo needs a login. Log in at kaggle.com" in capsys.readouterr().err
    assert fetch.main([]) == 0
    assert "higgs, " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        fetch.main(["absent"])
    assert "there is no table `absent`" in capsys.readouterr().err


def test_readme_agrees():
    """Each table that can be fetched, with the hash and size that are checked."""
    text = (ROOT / "datasets/README.md").read_text().split("## Originals")[1]
    rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    assert set(rows) == {*fetch.SOURCES, *fetch.LOGIN}
    for name, sources in fetch.SOURCES.items():
        for source in sources:
            assert source.name in rows[name]
            assert source.sha256 is None or source.sha256 in rows[name]
            assert source.size is None or f"{source.size:,} bytes" in rows[name]
        assert "login" not in rows[name]
    assert all("login" in rows[name] for name in fetch.LOGIN)
