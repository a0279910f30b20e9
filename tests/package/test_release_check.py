# Copyright 2026, the gpu_exact contributors
"""What `release_check.py` finds in two versions of a library that a small program uses."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from release_check import DEBUG_FLAGS, Layout, differences, functions_of, read_layouts

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
