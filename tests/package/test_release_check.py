# Copyright 2026, the gpu_exact contributors
"""What `release_check.py` finds in two versions of a library that a small program uses."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import release_check
from release_check import (
    DEBUG_FLAGS,
    ROOT,
    VERSIONS,
    Layout,
    bodies,
    differences,
    functions_of,
    read_layouts,
)

HEADER = """
namespace xgboost {
enum class Kind { kFirst = 1, kSecond = 2 };
struct Base { virtual ~Base(); virtual int Grow(); virtual int Prune(); int depth; };
struct Tree : Base { char leaf; double weight; Kind kind; };
}
namespace other { struct Unrelated { int x; }; }
"""
PROGRAM = "xgboost::Tree tree; other::Unrelated unrelated; int Use() { return tree.Prune(); }"


def layouts_of(folder: Path, header: str) -> dict[str, Layout]:
    """Of a program that uses the header."""
    file = folder / "program.cc"
    file.write_text(header + PROGRAM)
    subprocess.run(
        ["g++", *DEBUG_FLAGS.split(), "-c", file, "-o", file.with_suffix(".o")], check=True
    )
    return read_layouts([file.with_suffix(".o")])


def test_reads_size_members_and_virtual_functions(tmp_path):
    layouts = layouts_of(tmp_path, HEADER)
    assert layouts.keys() == {"xgboost::Base", "xgboost::Tree", "xgboost::Kind"}
    tree, base = layouts["xgboost::Tree"], layouts["xgboost::Base"]
    assert (tree.size, tree.members["leaf"], tree.members["weight"]) == (32, 12, 16)
    assert base.virtual == {2: "_ZN7xgboost4Base4GrowEv", 3: "_ZN7xgboost4Base5PruneEv"}
    assert layouts["xgboost::Kind"].members == {"kFirst": 1, "kSecond": 2}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("double weight", "double weight, more", "xgboost::Tree has 40 bytes, not 32"),
        ("char leaf; double weight", "double weight; char leaf", "other places of kind, leaf"),
        ("Grow(); virtual int Prune", "Prune(); virtual int Grow", "virtual function 2 is "),
        ("kSecond = 2", "kSecond = 3", "xgboost::Kind: other places of kSecond"),
        ("struct Tree : Base {", "struct More {}; struct Tree : Base { More more;", "More is new"),
    ],
)
def test_tells_what_differs(tmp_path, before, after, message):
    assert before in HEADER
    ours = layouts_of(tmp_path, HEADER)
    theirs = layouts_of(tmp_path, HEADER.replace(before, after))
    found = differences(ours, theirs, whole=True)
    assert any(message in sentence for sentence in found), found
    assert not differences(ours, ours, whole=True)


def test_finds_exported_and_hidden_functions(tmp_path):
    file = tmp_path / "library.cc"
    hidden = '__attribute__((visibility("hidden")))'
    file.write_text(
        f"int variable; {hidden} int Hidden() {{ return 1; }} int Seen() {{ return 2; }}"
    )
    subprocess.run(["g++", "-shared", "-fPIC", file, "-o", tmp_path / "library.so"], check=True)
    functions = functions_of(tmp_path / "library.so")
    assert {"_Z6Hiddenv", "_Z4Seenv"} <= functions
    assert "variable" not in functions


def make_archive(folder: Path) -> Path:
    """A source distribution of no XGBoost, whose build backend notes that it has run."""
    root = folder / "xgboost-9.9.9"
    root.mkdir(parents=True)
    text = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (root / "pyproject.toml").write_text(text)
    (root / "backend.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    (root / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: xgboost\nVersion: 9.9.9\n")
    archive = folder / "xgboost-9.9.9.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(root, root.name)
    return archive


def test_an_archive_with_another_hash_is_refused_and_none_is_run(tmp_path, monkeypatch):
    pytest.importorskip("pip")
    archive = make_archive(tmp_path / "index")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(archive.parent)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(SystemExit, match="has the SHA-256"):
        release_check.download_source("9.9.9", tmp_path / "work", "0" * 64)
    assert not (archive.parent / "ran").exists()
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    (tmp_path / "work" / archive.name).write_bytes(archive.read_bytes())  # by an earlier run
    with pytest.raises(SystemExit, match="has the SHA-256"):
        release_check.download_source("9.9.9", tmp_path / "work", "0" * 64)
    source = release_check.download_source("9.9.9", tmp_path / "work", sha256)
    assert (source / "PKG-INFO").is_file()
    assert not (archive.parent / "ran").exists()


def test_a_release_that_is_not_served_wants_a_hash():
    served = {"3.4.1": "of 3.4.1"}
    assert release_check.hash_of("3.4.1", served, None) == "of 3.4.1"
    assert release_check.hash_of("3.5.0", served, "of 3.5.0") == "of 3.5.0"
    with pytest.raises(SystemExit, match="SHA-256 of xgboost-3.5.0.tar.gz by --sha256"):
        release_check.hash_of("3.5.0", served, None)


def test_versions_that_serve_one_more_release():
    text = release_check.versions_with("9.9.9", "9.9.9")
    assert '"9.9.9": "0",\n}' in text and '"9.9.9": "9.9.9",\n}' in text
    text = release_check.versions_with("3.4.0", "3.4.1")
    assert text.count('"3.4.0"') == 1 and '"3.4.0": "3.4.1",\n}' in text
    assert release_check.versions_with("3.4.1", "3.4.1") == (ROOT / VERSIONS).read_text()


RULES = """
// Weigh(no one)
double Weigh(double sum, int n) const {  // of a leaf
  return n > 0 ? sum / n : Weigh(sum, 1);
}
double Weigh(int);
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("// of a leaf", "/* of any\n leaf */", True),
        ("sum / n", "sum  /  n", True),
        ("n > 0", "n >= 0", False),
        ("int n)", "long n)", False),
        ("double Weigh(int);", "", True),
    ],
)
def test_text_of_functions(before, after, same):
    assert before in RULES
    ours, theirs = bodies(RULES, "Weigh"), bodies(RULES.replace(before, after), "Weigh")
    assert len(ours) == 1 and (ours == theirs) == same
