# Copyright 2026, the gpu_exact contributors
"""The trust report and what it is made of: a good one proves, and each spoilt entry is refused."""

import argparse
import copy
import json
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import mutants  # noqa: E402
import soak  # noqa: E402
import trust_report  # noqa: E402

SOAK = {"trees": 20_000, "gpu_trees": 20_000, "processes": 1, "kinds": 9, "problems": []}
SOAK |= {"memory": [{"trees": 1, "host_mib": 200.0, "device_mib": 500.0}] * 2, "device": "a GPU"}
INJECTED = {kind: {"faults": 9, "errors": 8} for kind in trust_report.FAULTS.values()}
FAULTS = {"injected": INJECTED, "device": "a GPU", "built_of": "now"}
GOOD = {
    "source_hash": "now",
    "steps": {
        "faults_cpu": FAULTS,
        "faults_cuda": copy.deepcopy(FAULTS),
        "faults_nccl": FAULTS | {"injected": {"NCCL calls": {"faults": 9, "errors": 8}}},
        "neighbours": {"passed": 14, "skipped": 2, "device": "a GPU", "built_of": "now"},
        "inputs": {"inputs": 100_000, "passed": 5, "device": "a GPU", "built_of": "now"},
        "soak": SOAK,
        "crowd": SOAK | {"processes": 24},
        "kernels": {"killed": 37, "explained": 3, "survived": 0, "survivors": [], "device": "a GPU"},
        "evidence": {"tests": [test for *_, test in trust_report.EVIDENCE]},
        "files": {"inputs": 100_000, "passed": 1},
        "tools": {
            "exit": dict.fromkeys(trust_report.TOOLS, 0),
            "coverage": {"lines": 2000, "run": 1900, "percent": 95.0},
        },
        "mutants": {"killed": 190, "explained": 10, "survived": 0, "survivors": []},
    },
}


def test_a_complete_report_proves(tmp_path: Path) -> None:
    assert trust_report.problems(GOOD, "now") == []
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- trust -->\nold\n<!-- end of trust -->\nafter\n")
    trust_report.write_table(readme, trust_report.table(GOOD))
    text = readme.read_text()
    assert text.startswith("before\n<!-- trust -->\n| tried |") and text.endswith("-->\nafter\n")
    assert "old" not in text and "190 killed" in text and "20,000 trees, 24 processes" in text


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["source_hash"], "then", "stale"),
        (["steps", "soak"], None, "`soak` was not run"),
        (["steps", "inputs", "device"], None, "inputs: no NVIDIA GPU"),
        (["steps", "faults_cpu", "built_of"], "then", "faults_cpu: a binary is of other sources"),
        (["steps", "faults_cuda", "injected", "allocations"], {"faults": 0}, "into allocations"),
        (["steps", "faults_cuda", "injected"], {}, "injected into CUDA calls."),
        (["steps", "faults_nccl", "injected"], {}, "into NCCL calls."),
        (["steps", "inputs", "inputs"], 99, "99 inputs"),
        (["steps", "inputs", "passed"], 0, "0 passed"),
        (["steps", "files", "inputs"], 99, "99 inputs"),
        (["steps", "soak", "problems"], ["it grew."], "soak: it grew."),
        (["steps", "soak", "gpu_trees"], 19_999, "19999 trees of 20000"),
        (["steps", "crowd", "processes"], 8, "8 processes"),
        (["steps", "evidence", "tests"], [], "has not passed"),
        (["steps", "tools", "exit", "thread"], 1, "thread failed"),
        (["steps", "tools", "exit"], {}, "ruff failed, or was not run"),
        (["steps", "mutants", "killed"], 99, "99 of 99 killed"),
        (["steps", "mutants", "explained"], 9, "190 of 190 killed"),
        (["steps", "kernels", "killed"], 30, "30 of 30 killed"),
        (["steps", "neighbours", "skipped"], 9, "9 tests were skipped"),
        (["steps", "mutants", "survivors"], ["a.cc:1"], "survived: a.cc:1"),
        (["steps", "mutants", "survived"], 40, "190 of 230"),
    ],
)
def test_what_does_not_prove_is_said(path: list[str], value: object, message: str) -> None:
    report = copy.deepcopy(GOOD)
    entry = report
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = value
    found = trust_report.problems(report, "now")
    assert any(message in problem for problem in found), found


def test_a_failure_is_no_proof() -> None:
    report = copy.deepcopy(GOOD)
    report["steps"]["faults_cpu"] |= {"failed": 1, "failures": ["test_x"]}
    assert trust_report.problems(report, "now") == ["faults_cpu: 1 failed: test_x."]


def test_memory_that_grows_is_told() -> None:
    first = {"trees": 10, "host_mib": 100.0, "device_mib": 50.0}
    assert soak.growth([first, first | {"trees": 20}]) == []
    grown = first | {"trees": 20, "host_mib": 100.0 + soak.MAY_GROW["host_mib"] + 1}
    assert [text.split()[0] for text in soak.growth([first, grown])] == ["host_mib"]
    assert soak.growth([{"trees": 1, "host_mib": 1.0}, {"trees": 2, "host_mib": 2.0}]) == []


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("  if (a < b) {", "", ["  if (a <= b) {", "  if (!(a < b)) {"]),
        ("  std::vector<int> v;  // of a < b", "", []),
        ("  Wait();", "  x = 1;", [""]),
        ("      Wait();", "      return n +", []),
        ('  Say("a + b 1");', "{", [""]),
        ("  x = true;", "}", ["  x = false;", ""]),
        ("  // if (a < b) {", "", []),
        ("  float const half = 0.5f;", ";", ["  float const half = 1.5f;"]),
    ],
)
def test_mutants_of_a_line(text: str, before: str, expected: list[str]) -> None:
    assert mutants.changes(text, before) == expected


def test_survivors_with_a_reason_are_no_survivors() -> None:
    lived = {"file": "a.cc", "line": 3, "text": "  x = 1;", "becomes": "", "result": "survived"}
    killed = lived | {"line": 4, "result": "killed"}
    told = mutants.summary([lived, killed], {})
    assert told["survived"] == 1 and told["survivors"] == ["a.cc:3: x = 1; -> (removed)"]
    told = mutants.summary([lived | {"line": 9}, killed], {("a.cc", "x = 1;", ""): "unused"})
    assert told == {"killed": 1, "explained": 1, "survived": 0, "survivors": []}


def pack(folder: Path, rings: list[str]) -> argparse.Namespace:
    """Scripts in the place of device rings, the unchanged one first."""
    lines = []
    for number, ring in enumerate(rings):
        (folder / f"{number}").write_text(f"#!/bin/sh\n{ring}\n")
        (folder / f"{number}").chmod(0o755)
        lines.append({"file": "a.cu", "line": number, "text": "x", "becomes": "", "number": number})
    text = "".join(json.dumps(line) + "\n" for line in lines[1:])
    (folder / "mutants.jsonl").write_text(text)
    return argparse.Namespace(run=folder, out=folder / "out.jsonl", jobs=2)


PASSED = "echo '[  PASSED  ] 7 tests.'"


def test_mutants_of_kernels_are_killed_by_the_device_ring(tmp_path: Path) -> None:
    failing = "echo '[  FAILED  ] Finder.Best (3 ms)'; exit 1"
    options = pack(tmp_path, [PASSED, failing, PASSED, "kill -6 $$"])
    mutants.run_packed(options)
    results = sorted(mutants.read_results(options.out), key=lambda r: r["number"])
    assert [r["result"] for r in results] == ["killed", "survived", "killed"]
    assert [r["by"] for r in results] == ["Finder.Best", "", "it ended with -6"]
    mutants.run_packed(options)  # they are not run again
    assert len(options.out.read_text().splitlines()) == 3


SKIPPED = "echo '[  PASSED  ] 1 test.'; echo '[  SKIPPED ] 130 tests, listed below:'"


@pytest.mark.parametrize("ring", ["exit 1", "echo '[  PASSED  ] 0 tests.'", SKIPPED])
def test_mutants_of_kernels_need_a_ring_that_passes(tmp_path: Path, ring: str) -> None:
    with pytest.raises(SystemExit, match="without any mutant"):
        mutants.run_packed(pack(tmp_path, [ring, PASSED]))
