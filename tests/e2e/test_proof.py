# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What `proof.py` takes for a proof, shown by runs and records that are spoilt on purpose."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import proof
import pytest
from proof import Suite

TESTS = Path(__file__).resolve().parents[1]
SUITES = [
    Suite("device", "device/test_*.cu", by="device", pieces=2),
    Suite("e2e", "e2e/test_*.py", env={"ASKED": "1"}),
]
# Stands in for a program of GoogleTest that has three tests in two files, and for compute-sanitizer, which
# prints the next of some texts. What they do is in the environment.
PROGRAM = """#!{python}
# built of {hash}
import os, subprocess, sys
how = {how!r}
if "--tool" in sys.argv:
    told = open(how).read().split("|")
    open(how, "w").write("|".join(told[1:] or told))
    subprocess.run(sys.argv[sys.argv.index("memcheck") + 1:], check=True)
    print(told[0])
    sys.exit(0 if "SUMMARY: 0 " in told[0] else 86)
if "ends early" in (how := open(how).read()):
    sys.exit(3)
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
tests = [("a", "One"), ("a", "Two"), ("b", "Three")]
tests = tests[int(os.environ["GTEST_SHARD_INDEX"])::int(os.environ["GTEST_TOTAL_SHARDS"])]
skipped = '<skipped message="a.cu:7&#10;no reason"/>' if how == "skips" else ""
case = '<testcase file="/x/tests/device/test_%s.cu" classname="A" name="%s" status="run">%s</testcase>'
cases = [case % (*test, skipped) for test in tests]
open(options["gtest_output"].split(":", 1)[1], "w").write(f"<testsuites>{{''.join(cases)}}</testsuites>")
"""
# A test that knows its environment: what its suite wants, and NVLink's switches as they are here.
TEST_B = """
import os
def test_b():
    assert [os.environ.get(n) for n in ("ASKED", "NCCL_NVLS_ENABLE", "LESS")] == ["1", "0", None]
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite of each kind, and what was built of it."""
    root = tmp_path / "tree"
    texts = {
        "CMakeLists.txt": "project()",
        "src/a.cc": "int a;",
        proof.VERSIONS: '__version__ = "1.2.3"\n',
        "tests/device/test_a.cu": "",
        "tests/device/test_b.cu": "",
        "tests/e2e/test_b.py": TEST_B,
        "tests/skips.txt": "# runs\n\ndevice,e2e  test_b.test_listed*  no * of [0-9] GPUs\n",
        ".gitignore": "/build/\n__pycache__/\n",
        "build/how": "",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("conftest.py", "pytest.ini", "proof.py"):
        shutil.copy(TESTS / name, root / "tests")
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    monkeypatch.setenv("LESS", "1")
    monkeypatch.setenv("PATH", f"{root}/build", prepend=":")
    monkeypatch.setattr(proof, "ROOT", root)
    monkeypatch.setattr(proof, "SUITES", SUITES)
    monkeypatch.setattr(proof, "visible_gpus", lambda: (["0"], "A GPU", "999"))
    (root / "build" / proof.GPU).write_text(proof.source_hash())
    program = PROGRAM.format(python=sys.executable, hash=proof.source_hash(), how=f"{root}/build/how")
    for name in ("gpu_exact_device_tests", "compute-sanitizer"):
        (root / "build" / name).write_text(program)
        (root / "build" / name).chmod(0o755)
    git(root, "init", "-q")
    commit(root)
    return root


def git(root: Path, *words: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *name, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all", "--allow-empty")


def run(root: Path, *more: str) -> tuple[int, list[dict]]:
    """What a run says, and the record after it."""
    record = root / "build/proof.jsonl"
    status = proof.main(["run", "device", "e2e", "--build", f"{root}/build", "--out", str(record), *more])
    return status, [json.loads(line) for line in record.read_text().splitlines()]


def check(root: Path, record: str = "proof", *more: str) -> int:
    return proof.main(["check", f"{root}/build/{record}.jsonl", "--suites", "device", "e2e", *more])


def write(file: Path, lines: list[dict]) -> None:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_good_run_is_a_proof(tree: Path, capsys: pytest.CaptureFixture) -> None:
    status, lines = run(tree, "--jobs", "2")
    counts = [{"device/test_a.cu": [1, 0], "device/test_b.cu": [1, 0]}, {"device/test_a.cu": [1, 0]}]
    found = {line["part"]: line["files"] for line in lines}
    parts = ["device 1/2", "device 2/2", "e2e/test_b.py 1/1"]
    assert status == 0 and found == dict(zip(parts, [*counts, {"e2e/test_b.py": [1, 0]}], strict=True))
    assert check(tree) == 0 and "3 runs, with 1 x A GPU" in capsys.readouterr().out
    assert len(run(tree)[1]) == 3  # what has passed is not run again
    (tree / "src/a.cc").write_text("int b;")
    commit(tree)
    assert check(tree) == 0  # it is of a commit, whatever came after


def test_a_proof_is_summed_up(tree: Path) -> None:
    raw, release = run(tree)[1], tree / "build/v1.2.3.jsonl"
    write(tree / "build/twice.jsonl", [*raw, *raw])
    for record in ("proof", "twice", "v1.2.3"):
        assert check(tree, record, "--sum", str(release)) == 0
        sums = [json.loads(line) for line in release.read_text().splitlines()]
        assert [[line[key] for key in ("suite", "runs", "gpus", "device", "files")] for line in sums] == [
            ["device", 2, 1, "A GPU", {"device/test_a.cu": [2, 0], "device/test_b.cu": [1, 0]}],
            ["e2e", 1, 1, "A GPU", {"e2e/test_b.py": [1, 0]}],
        ]
        assert sums[0]["seconds"] == pytest.approx(raw[0]["seconds"] + raw[1]["seconds"], abs=0.06)
    before = release.read_text()
    shutil.copy(release, tree / "build/v1.2.4.jsonl")
    assert check(tree, "v1.2.4") == 1
    assert check(tree, "proof", "--sum", f"{tree}/build/v1.2.5.jsonl") == 1
    write(tree / "build/proof.jsonl", raw[1:])
    assert check(tree, "proof", "--sum", str(release)) == 1
    assert release.read_text() == before and not (tree / "build/v1.2.5.jsonl").exists()


def of_yesterday(file: Path) -> None:
    file.write_text(file.read_text().replace(proof.source_hash(), "of yesterday"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda tree: (tree / "new.txt").write_text(""), "not clean"),
        (lambda tree: shutil.rmtree(tree / ".git"), "--commit"),
        (lambda _: setattr(proof, "visible_gpus", lambda: ([], "", "")), "device needs 1 GPUs; there are 0"),
        (lambda tree: of_yesterday(tree / "build" / proof.GPU), "so is of other sources"),
        (lambda tree: of_yesterday(tree / "build/gpu_exact_device_tests"), "tests is of other sources"),
        (lambda tree: (tree / "build" / proof.GPU).unlink(), "has no lib"),
    ],
)
def test_what_proves_nothing_is_not_run(tree: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(tree)
    with pytest.raises(SystemExit, match=message):
        run(tree)


def test_a_copy_without_git_is_of_the_commit_that_is_named(tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    assert {line["commit"] for line in run(tree, "--commit", "0123456789abcdef")[1]} == {"0123456789ab"}


@pytest.mark.parametrize("how", ["ends early", "skips"])
def test_a_program_that_proves_nothing_has_failed(tree: Path, how: str) -> None:
    (tree / "build/how").write_text(how)
    status, lines = run(tree)
    assert status == 1 and [bool(line["failed"]) for line in lines] == [True, True, False]
    (tree / "build/how").write_text("")
    status, lines = run(tree)
    assert status == 0 and [line["attempt"] for line in lines] == [1, 1, 1, 2, 2]
    assert check(tree) == 1  # failed attempts stay


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ("def test_listed():\n    pytest.skip('no pair of 2 GPUs')\ndef test_other(): pass", 0),
        ("def test_listed():\n    pytest.skip('none')\ndef test_other(): pass", 1),
        ("def test_more():\n    pytest.skip('no pair of 2 GPUs')\ndef test_other(): pass", 1),
        ("def test_listed():\n    pytest.skip('no pair of 2 GPUs')", 1),  # and nothing has passed
        ("pytest.importorskip('no_such_module')\ndef test_other(): pass", 1),
        ("def test_fails(): assert False", 1),
    ],
)
def test_skips_are_those_that_are_listed(tree: Path, test: str, status: int) -> None:
    (tree / "tests/e2e/test_b.py").write_text(f"import pytest\n{test}\n")
    commit(tree)
    assert run(tree)[0] == status


def test_a_file_is_shared_by_processes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "SUITES", [SUITES[0], Suite("e2e", "e2e/test_*.py", pieces=2)])
    (tree / "tests/e2e/test_b.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(3)))
    commit(tree)
    assert [line["files"] for line in run(tree)[1][2:]] == [{"e2e/test_b.py": [n, 0]} for n in (2, 1)]


CLEAN = "========= ERROR SUMMARY: 0 errors"
BROKE = "========= Internal error encountered\n========= Malloc: Internal error\n========= ERROR SUMMARY: 2 errors"
UNPRINTED = f"========= Error in printing record\n{CLEAN}"


@pytest.mark.parametrize(
    ("told", "broken"),
    [
        (CLEAN, 0),
        (f"{BROKE}|{BROKE}|{CLEAN}", 2),
        (f"{UNPRINTED}|{CLEAN}", 1),
        (BROKE, None),
        (UNPRINTED, None),
        (f"{BROKE.replace('2 errors', '3 errors')}|{CLEAN}", None),  # one of them is the program's
        ("|" + CLEAN, None),  # it has told nothing
    ],
)
def test_a_tool_that_breaks_is_asked_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch, told: str, broken: int | None
) -> None:
    (tree / "build/how").write_text(told)
    suite = Suite("device", "device/test_*.cu", by="device", tool="memcheck", stage=1)
    monkeypatch.setattr(proof, "SUITES", [suite, SUITES[1]])
    status, (_, line) = run(tree)  # what a tool runs comes last
    assert (status == 0) == (broken is not None) == (not line["failed"])
    assert broken is None or line.get("broken", 0) == broken


A, B, C = ({f"device/test_{name}.cu": [1, 0]} for name in "abc")
B_SKIPPED, E2E, E2E_SKIPPED = {"device/test_b.cu": [0, 1]}, {"e2e/test_b.py": [1, 0]}, {"e2e/test_b.py": [0, 1]}
GOOD_LINES = [
    {"suite": "device", "part": "device 1/2", "files": A},
    {"suite": "device", "part": "device 2/2", "files": B},
    {"suite": "e2e", "part": "e2e/test_b.py 1/1", "files": E2E},
]
SUM = {"part": proof.ALL, "files": A | B}
# What stands in the place of a line above, by its number.
GOOD = {"": {}, "sum": {0: [SUM], 1: []}}
SPOILT = {
    "suite skipped": {2: [{"files": E2E_SKIPPED}]},
    "file skipped": {1: [{"files": B_SKIPPED}]},
    "other sources": {2: [{"sources": "0123456789ab"}]},
    "failed, then passed": {2: [{"failed": ["b"]}, {"attempt": 2}]},
    "no GPU": {0: [{"gpus": 0}]},
    "other commit": {2: [{"commit": "d"}]},
    "piece lacking": {1: [{"part": "device 1/2"}]},
    "suite lacking": {2: []},
    "part of another suite": {2: [{}, {"part": "device 1/2"}]},
    "file of another suite": {2: [{"files": E2E | A}]},
    "file lacking": {1: [{"files": {}}]},
    "sum of too few": {0: [SUM | {"files": A}], 1: []},
    "sum of too many": {0: [SUM | {"files": A | B | C}], 1: []},
    "sum with a file skipped": {0: [SUM | {"files": A | B_SKIPPED}], 1: []},
    "sum without its files": {0: [SUM | {"files": {}}], 1: []},
    "two sums": {0: [SUM, SUM], 1: []},
    "sum beside a part": {0: [SUM]},
}


@pytest.mark.parametrize("how", [*GOOD, *SPOILT])
def test_a_spoilt_record_is_refused(tree: Path, how: str) -> None:
    facts = {"commit": "c", "sources": proof.source_hash()[:12], "gpus": 1, "attempt": 1, "failed": []}
    facts |= {"when": "", "device": "A GPU", "driver": "999", "xgboost": "1", "seconds": 1.0}
    places = (GOOD | SPOILT)[how]
    lines = [facts | line | more for i, line in enumerate(GOOD_LINES) for more in places.get(i, [{}])]
    assert bool([*proof.problems_of(lines, tree, ["device", "e2e"])]) == (how in SPOILT)


@pytest.mark.parametrize("lost", [1, 2, 400])
def test_a_record_that_is_cut_short_is_refused(tree: Path, lost: int) -> None:
    run(tree)
    assert check(tree) == 0
    record = tree / "build/proof.jsonl"
    record.write_text(record.read_text()[:-lost])
    with pytest.raises(SystemExit, match="cut short"):
        check(tree)


def test_the_hash_is_of_what_is_compiled(tree: Path) -> None:
    before = proof.source_hash()
    for name in ("src/README.md", "plugin/R/R/a.R", "plugin/python/a.py", "tests/device/test_a.cu"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("more")
    assert proof.source_hash() == before
    (tree / "src/a.cc").write_text("int b;")
    assert proof.source_hash() != before


def test_builds_have_the_same_hash(tmp_path: Path) -> None:
    script = TESTS.parent / "plugin/cmake/WriteSourceHash.cmake"
    command = ["cmake", f"-DROOT={TESTS.parent}", f"-DOUTPUT={tmp_path}/hash.inc", "-P", script]
    subprocess.run(command, check=True)
    assert (tmp_path / "hash.inc").read_text() == f'"{proof.source_hash()}"\n'


def test_the_table_names_what_there_is() -> None:
    assert [suite.name for suite in proof.SUITES if not proof.files_of(suite)] == []
    files = {f"e2e/{file.name}" for file in (TESTS / "e2e").glob("test_*.py")}
    with_gpu = {f for s in proof.SUITES if s.gpus for f in proof.files_of(s)}
    assert files - with_gpu == set(proof.ONCE.split())
    lines = [line for line in (TESTS / "skips.txt").read_text().splitlines() if line[:1] not in ("", "#")]
    assert {suite for line in lines for suite in line.split()[0].split(",")} <= set(proof.NAMES)


@pytest.mark.parametrize("suite", [suite for suite in proof.SUITES if suite.by == "device"])
def test_a_filter_chooses_tests_of_the_row_s_files(suite: Suite) -> None:
    chosen, _, left_out = suite.tests.partition("-")
    found = set()
    for file in TESTS.glob("device/**/test_*.cu"):
        for fixture in re.findall(r"^TEST\w*\((\w+),", file.read_text(), re.MULTILINE):
            is_of = [any(fnmatchcase(f"{fixture}.", n) for n in s.split(":")) for s in (chosen or "*", left_out)]
            if is_of == [True, False]:
                found.add(file.relative_to(TESTS).as_posix())
    assert sorted(found) == proof.files_of(suite)
