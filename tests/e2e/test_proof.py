# Copyright 2026, the gpu_exact contributors
"""What `proof.py` takes for a proof, shown by runs and records that are spoilt on purpose."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import proof
import pytest
from proof import Suite

TESTS = Path(__file__).resolve().parents[1]

DEVICE = Suite("device", "device/test_*.cu", by="device", piece=2)
E2E = Suite("e2e", "e2e/test_*.py", env={"ASKED": "1"})
# Stands in for a program of GoogleTest that has three tests.
PROGRAM = """#!{python}
# built of {hash}
import json, os, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
file = options["gtest_output"].split(":", 1)[1]
if "--gtest_list_tests" in sys.argv:
    tests = [{{"name": name, "file": "/x/tests/device/test_a.cu"}} for name in ("One", "Two", "Three")]
    json.dump({{"testsuites": [{{"name": "A", "testsuite": tests}}]}}, open(file, "w"))
    sys.exit()
chosen = options["gtest_filter"].split(":")
how = open({how!r}).read()
if how == "ends early":
    sys.exit(3)
skipped = '<skipped message="a.cu:7&#10;no reason"/>' if how == "skips" else ""
cases = [f'<testcase classname="A" name="{{n[2:]}}" status="run">{{skipped}}</testcase>' for n in chosen]
open(file, "w").write(f"<testsuites>{{''.join(cases)}}</testsuites>")
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
        "tests/e2e/test_b.py": TEST_B,
        "tests/skips.txt": "# runs\n\ndevice,e2e  test_b.test_listed*  no * of [0-9] GPUs\n",
        ".gitignore": "/build/\n__pycache__/\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("conftest.py", "pytest.ini", "proof.py"):
        shutil.copy(TESTS / name, root / "tests")
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    monkeypatch.setenv("LESS", "1")
    monkeypatch.setattr(proof, "ROOT", root)
    monkeypatch.setattr(proof, "SUITES", [DEVICE, E2E])
    monkeypatch.setattr(proof, "visible_gpus", lambda: (["0"], "A GPU", "999"))
    monkeypatch.setattr(proof.Runner, "_xgboost", lambda _: ("XGBoost with CUDA", None))
    (root / "build").mkdir()
    (tmp_path / "how").write_text("")
    build(root)
    git(root, "init", "-q")
    commit(root)
    return root


def build(root: Path) -> None:
    (root / "build" / proof.GPU).write_text(proof.source_hash())
    program = root / "build/gpu_exact_device_tests"
    how = str(root.parent / "how")
    program.write_text(PROGRAM.format(python=sys.executable, hash=proof.source_hash(), how=how))
    program.chmod(0o755)


def git(root: Path, *words: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *name, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all", "--allow-empty")


def run(root: Path, *more: str) -> tuple[int, list[dict]]:
    """What a run says, and the record after it."""
    record = root / "build/proof.jsonl"
    words = ["device", "e2e", "--build", str(root / "build"), "--out", str(record), *more]
    status = proof.main(["run", *words])
    return status, [json.loads(line) for line in record.read_text().splitlines()]


def check(root: Path, record: str = "proof", *more: str) -> int:
    file = str(root / f"build/{record}.jsonl")
    return proof.main(["check", file, "--suites", "device", "e2e", *more])


def test_a_good_run_is_a_proof(tree: Path, capsys: pytest.CaptureFixture) -> None:
    status, lines = run(tree, "--jobs", "2")
    assert status == 0 and sorted(line["passed"] for line in lines) == [1, 1, 2]
    assert {line["file"] for line in lines} == {"device/test_a.cu", "e2e/test_b.py"}
    assert max(map(len, map(json.dumps, lines))) <= proof.LONGEST
    assert check(tree) == 0 and "3 runs, with 1 x A GPU" in capsys.readouterr().out
    assert len(run(tree)[1]) == 3  # what has passed is not run again
    (tree / "src/a.cc").write_text("int b;")
    (tree / "README.md").write_text("of later")
    commit(tree)
    assert check(tree) == 0  # it is of a commit, whatever came after


def write(file: Path, lines: list[dict]) -> None:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_proof_is_summed_up(tree: Path) -> None:
    raw, release = run(tree)[1], tree / "build/v1.2.3.jsonl"
    write(tree / "build/twice.jsonl", [*raw, *raw])
    for record in ("proof", "twice", "v1.2.3"):
        assert check(tree, record, "--sum", str(release)) == 0
        sums = [json.loads(line) for line in release.read_text().splitlines()]
        counts = ("suite", "files", "runs", "passed", "fewest_passed", "gpus", "device")
        assert [[line[key] for key in counts] for line in sums] == [
            ["device", 1, 2, 3, 3, 1, "A GPU"],
            ["e2e", 1, 1, 1, 1, 1, "A GPU"],
        ]
        seconds = sum(line["seconds"] for line in raw if line["suite"] == "device")
        assert sums[0]["seconds"] == pytest.approx(seconds, abs=0.06)
    before = release.read_text()
    shutil.copy(release, tree / "build/v1.2.4.jsonl")
    assert check(tree, "v1.2.4") == 1
    assert check(tree, "proof", "--sum", str(tree / "build/v1.2.5.jsonl")) == 1
    write(tree / "build/proof.jsonl", [line | {"passed": 0} for line in raw])
    assert check(tree, "proof", "--sum", str(release)) == 1
    assert release.read_text() == before and not (tree / "build/v1.2.5.jsonl").exists()


@pytest.mark.parametrize("by_git", [True, False])
def test_a_dirty_tree_is_not_run(tree: Path, by_git: bool) -> None:
    """A copy without git is of the commit that is named."""
    if by_git:
        (tree / "new.txt").write_text("")
    else:
        shutil.rmtree(tree / ".git")
    with pytest.raises(SystemExit, match="not clean" if by_git else "--commit"):
        run(tree)
    if not by_git:
        assert {line["commit"] for line in run(tree, "--commit", "0123456789abcdef")[1]} == {"0123456789ab"}


def test_no_gpu_runs_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "visible_gpus", lambda: ([], "", ""))
    with pytest.raises(SystemExit, match="device needs 1 GPUs; there are 0"):
        run(tree)


def test_a_package_that_is_lacking_is_told_first(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = [DEVICE, Suite("e2e", "e2e/test_*.py", needs="json no_such_module")]
    monkeypatch.setattr(proof, "SUITES", suites)
    with pytest.raises(SystemExit, match="e2e needs no_such_module: install that for"):
        run(tree)


@pytest.mark.parametrize("name", [proof.GPU, "gpu_exact_device_tests"])
def test_a_binary_of_other_sources_is_not_run(tree: Path, name: str) -> None:
    file = tree / "build" / name
    file.write_text(file.read_text().replace(proof.source_hash(), "of yesterday"))
    with pytest.raises(SystemExit, match=f"{name} is of other sources"):
        run(tree)


@pytest.mark.parametrize("how", ["ends early", "skips"])
def test_a_program_that_proves_nothing_has_failed(tree: Path, how: str) -> None:
    (tree.parent / "how").write_text(how)
    status, lines = run(tree)
    assert status == 1 and [bool(line["failed"]) for line in lines] == [True, True, False]
    (tree.parent / "how").write_text("")
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
    monkeypatch.setattr(proof, "SUITES", [Suite("e2e", "e2e/test_*.py", pieces=2)])
    (tree / "tests/e2e/test_b.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(3)))
    commit(tree)
    status, lines = run(tree)
    assert status == 0 and [(line["piece"], line["passed"]) for line in lines] == [("1/2", 2), ("2/2", 1)]
    assert not proof.problems_of(lines, tree, ["e2e"]) and proof.problems_of(lines[:1], tree, ["e2e"])


# What it printed for each run, one after the other; the last one for all that follow.
SANITIZER = """#!{python}
import pathlib, subprocess, sys
told = pathlib.Path({told!r})
first, *rest = told.read_text().split("|")
told.write_text("|".join(rest or [first]))
start = next(i for i, word in enumerate(sys.argv) if word.endswith("gpu_exact_device_tests"))
subprocess.run(sys.argv[start:], check=True)
print(first)
sys.exit(0 if "SUMMARY: 0 " in first else 86)
"""
BROKE = """========= Internal error encountered
========= Malloc/Free Error encountered : Internal error
========= ERROR SUMMARY: 2 errors"""
CLEAN = "========= ERROR SUMMARY: 0 errors"
UNPRINTED = f"{proof.UNPRINTED}\n{CLEAN}"


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
    (tree.parent / "told").write_text(told)
    tool = tree.parent / "compute-sanitizer"
    tool.write_text(SANITIZER.format(python=sys.executable, told=str(tree.parent / "told")))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tree.parent), prepend=":")
    suite = Suite("device", "device/test_*.cu", by="device", tool="memcheck")
    monkeypatch.setattr(proof, "SUITES", [suite, E2E])
    status, (_, line) = run(tree)  # what a tool runs comes last
    assert (status == 0) == (broken is not None) == (not line["failed"])
    assert broken is None or line.get("broken", 0) == broken


def of(suite: str, file: str, **more: object) -> dict:
    numbers = {"piece": "1/1", "attempt": 1, "passed": 3, "skipped": 0, "failed": []}
    facts = {"commit": "c", "sources": proof.source_hash()[:12], "gpus": 1, "device": "A GPU"}
    return {"suite": suite, "file": file} | numbers | facts | more


SUM = {"file": proof.ALL, "files": 1, "fewest_passed": 3}
GOOD = {"": [], "sum": [("device/test_a.cu", SUM)]}
SPOILT = {
    "suite skipped": [("device/test_a.cu", {"passed": 0, "skipped": 3})],
    "file skipped": [("e2e/test_b.py", {"passed": 0, "skipped": 1})],
    "other sources": [("e2e/test_b.py", {"sources": "0123456789ab"})],
    "failed, then passed": [("e2e/test_b.py", {"failed": ["b"]}), ("e2e/test_b.py", {"attempt": 2})],
    "no GPU": [("device/test_a.cu", {"gpus": 0})],
    "other commit": [("e2e/test_b.py", {"commit": "d"})],
    "piece lacking": [("device/test_a.cu", {"piece": "1/2"})],
    "file lacking": [("e2e/test_b.py", None)],
    "file of another suite": [("e2e/test_b.py", {}), ("e2e/test_b.py", {"file": "device/test_a.cu"})],
    "sum of too few": [("device/test_a.cu", SUM | {"files": 0})],
    "sum of too many": [("device/test_a.cu", SUM | {"files": 2})],
    "sum with a file skipped": [("device/test_a.cu", SUM | {"fewest_passed": 0})],
    "sum without its files": [("device/test_a.cu", {"file": proof.ALL})],
    "two sums": [("device/test_a.cu", SUM), ("device/test_a.cu", SUM)],
    "sum beside a part": [("device/test_a.cu", SUM), ("device/test_a.cu", {})],
}


@pytest.mark.parametrize("how", [*GOOD, *SPOILT])
def test_a_spoilt_record_is_refused(tree: Path, how: str) -> None:
    files = {"device/test_a.cu": "device", "e2e/test_b.py": "e2e", "e2e/test_c.py": "e2e"}
    (tree / "tests/e2e/test_c.py").write_text("")
    spoilt = (GOOD | SPOILT)[how]
    lines = [of(suite, file) for file, suite in files.items() if file not in dict(spoilt)]
    lines += [of(files[file], file) | more for file, more in spoilt if more is not None]
    assert bool(proof.problems_of(lines, tree, ["device", "e2e"])) == (how in SPOILT)


@pytest.mark.parametrize("lost", [1, 2, 400])
def test_a_record_that_is_cut_short_is_refused(tree: Path, lost: int) -> None:
    run(tree)
    assert check(tree) == 0
    record = tree / "build/proof.jsonl"
    record.write_text(record.read_text()[:-lost])
    with pytest.raises(SystemExit, match="cut short"):
        check(tree)


def test_failures_are_told_in_a_line(tree: Path) -> None:
    line = of("e2e", "e2e/test_b.py", failed=[f"test_{'x' * 200}_{i}" for i in range(50)])
    told = proof.shortened(line)
    assert len(told) <= proof.LONGEST and json.loads(told)["failed"]


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
