# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What `release_check.py` finds in two versions of a library that a small program uses."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from release_check import (
    DEBUG_FLAGS,
    Layout,
    bodies,
    changed_rules,
    differences,
    download_source,
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
        ["g++", *DEBUG_FLAGS.split(), "-fPIC", "-c", file, "-o", file.with_suffix(".o")], check=True
    )
    return read_layouts(file.with_suffix(".o"))


def test_reads_size_members_and_virtual_functions(tmp_path):
    layouts = layouts_of(tmp_path, HEADER)
    assert layouts.keys() == {"xgboost::Base", "xgboost::Tree", "xgboost::Kind"}
    tree, base = layouts["xgboost::Tree"], layouts["xgboost::Base"]
    assert (tree["size"], tree["leaf"], tree["weight"]) == (32, 12, 16)
    assert base["virtual function 2"] == "_ZN7xgboost4Base4GrowEv"
    assert base["virtual function 3"] == "_ZN7xgboost4Base5PruneEv"
    assert layouts["xgboost::Kind"] == {"size": 4, "kFirst": 1, "kSecond": 2}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("double weight", "double weight, more", "xgboost::Tree: size is 40, not 32"),
        ("char leaf; double weight", "double weight; char leaf", "xgboost::Tree: leaf is 24, not 12"),
        ("Grow(); virtual int Prune", "Prune(); virtual int Grow", "xgboost::Base: virtual function 2 is "),
        ("kSecond = 2", "kSecond = 3", "xgboost::Kind: kSecond is 3, not 2"),
        ("struct Tree : Base {", "struct More {}; struct Tree : Base { More more;", "More is new"),
    ],
)
def test_tells_what_differs(tmp_path, before, after, message):
    assert before in HEADER
    ours = layouts_of(tmp_path, HEADER)
    theirs = layouts_of(tmp_path, HEADER.replace(before, after))
    found = differences(ours, theirs)
    assert any(message in sentence for sentence in found), found
    assert not differences(ours, ours)


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


def test_a_source_distribution_is_downloaded_and_not_run(tmp_path, monkeypatch):
    pytest.importorskip("pip")
    archive = make_archive(tmp_path / "index")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(archive.parent)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    (tmp_path / "work").mkdir()
    source, sha256 = download_source("9.9.9", tmp_path / "work")
    assert sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (source / "PKG-INFO").is_file()
    assert not (archive.parent / "ran").exists()
    with pytest.raises(SystemExit, match="pip finds no source distribution of XGBoost 9.9.8"):
        download_source("9.9.8", tmp_path / "work")


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


def test_a_member_that_has_a_new_name_is_no_new_rule(tmp_path):
    trees = [tmp_path / name for name in ("ours", "renamed", "changed")]
    text = "void BoostNewTrees() { model_.learner_model_param->Size(); }"
    texts = [text, text.replace("_param", "_state"), text.replace("->", ".")]
    for tree, words in zip(trees, texts, strict=True):
        (tree / "src/gbm").mkdir(parents=True)
        (tree / "src/gbm/gbtree.cc").write_text(words)
    assert not changed_rules(trees[0], trees[1])
    [finding] = changed_rules(trees[0], trees[2])
    assert finding.startswith("BoostNewTrees of src/gbm/gbtree.cc has another text")
