# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""datasets/fetch.py, with files of this machine in the place of servers."""

import bz2
import hashlib
import importlib.util
import shutil
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("fetch", ROOT / "datasets/fetch.py")
fetch = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fetch)

CONTENT = bytes(range(256)) * 200
SHA256 = hashlib.sha256(CONTENT).hexdigest()
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


@pytest.fixture
def source(tmp_path):
    """A file where a server would be."""
    (tmp_path / "server").mkdir()

    def make(name="table.bin", content=CONTENT, **facts):
        (tmp_path / "server" / name).write_bytes(content)
        return fetch.Source((tmp_path / "server" / name).as_uri(), name, **facts)

    return make


def test_a_download_goes_on_and_is_checked(source, tmp_path):
    (tmp_path / "table.bin.part").write_bytes(CONTENT[:1000])
    file = fetch.fetch(source(sha256=SHA256, size=len(CONTENT)), tmp_path)
    assert file.read_bytes() == CONTENT
    assert not (tmp_path / "table.bin.part").exists()
    file.write_bytes(b"other")
    with pytest.raises(fetch.FetchError, match="bytes instead of 51,200: it was removed"):
        fetch.fetch(source(sha256=SHA256, size=len(CONTENT)), tmp_path)
    assert not file.exists()


def test_a_wrong_hash_is_not_unpacked(source, tmp_path):
    packed = source("table.bz2", bz2.compress(CONTENT), sha256=SHA256, unpacked="table")
    with pytest.raises(fetch.FetchError, match="the SHA-256 .* instead of"):
        fetch.fetch(packed, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["server"]


def test_a_missing_file(tmp_path):
    with pytest.raises(fetch.FetchError, match="could not be fetched.*Run this again"):
        fetch.fetch(fetch.Source((tmp_path / "absent").as_uri(), "absent"), tmp_path)


def test_unpacking(source, tmp_path):
    archive = tmp_path / "made.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("table", CONTENT)
    for name, content in {"a.zip": archive.read_bytes(), "b.bz2": bz2.compress(CONTENT)}.items():
        folder = tmp_path / name.replace(".", "-")
        assert fetch.fetch(source(name, content, unpacked="table"), folder).read_bytes() == CONTENT
        broken = source(name, content[:-20], unpacked="table")
        with pytest.raises(fetch.FetchError, match="cannot be unpacked"):
            fetch.fetch(broken, tmp_path / "broken")


def test_command_line(source, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(fetch.SOURCES, "airline", [source("a"), source("b")])
    assert fetch.main(["Airline", "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "b")]
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
