# Copyright 2026, the gpu_exact contributors
"""The trust report and what it is made of: a good one proves, and each spoilt entry is refused."""

import argparse
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import gpu_report  # noqa: E402
import mutants  # noqa: E402
import soak  # noqa: E402
import trust_report  # noqa: E402

# Of test_faults.py: into a training of each, faults of each kind must be injected.
TABLES = ("sort", "histogram", "histogram, few rows", "little memory", "external memory")
TABLES += ("one GPU twice", "two GPUs", "two GPUs, sort")
ON_GPU = {"device": "a GPU", "environment": {}}
ON_HOST: dict = {"environment": {}}
TESTS_RUN = ON_GPU | {"passed": 14, "skips": {}, "built_of": "now"}
SOAK = {"trees": 20_000, "gpu_trees": 20_000, "processes": 1, "kinds": 72, "problems": []}
SOAK |= {"built_of": "now", "memory": [{"trees": 1, "host_mib": 200.0, "device_mib": 500.0}] * 2, **ON_GPU}
WALKED = {"faults": 900, "calls": 1000, "errors": 800}
ON_CPU, ON_CUDA = (
    {f"{test}[{table}-{route}]": WALKED for test in trust_report.FAULTS for table in TABLES}
    for route in ("cpu", "cuda")
)
IN_NCCL = {"test_nccl_calls": {"faults": 9, "errors": 8}}
for case in trust_report.OF_ONE_WORKER:
    IN_NCCL[f"test_calls_of_one_worker[{case}]"] = {"faults": 3, "calls": 60, "errors": 3}
RANDOM = dict.fromkeys(trust_report.RANDOM.values(), 100_000)
MUTANTS = {"explained": 10, "survived": 0, "survivors": [], "changed": {}}
TESTED = {"passed": 500, "skipped": 3}
GOOD = {
    "source_hash": "now",
    "steps": {
        "faults_cpu": TESTS_RUN | {"cases": ON_CPU},
        "faults_cuda": TESTS_RUN | {"cases": ON_CUDA},
        "faults_nccl": TESTS_RUN | {"cases": IN_NCCL},
        "neighbours": TESTS_RUN,
        "inputs": TESTS_RUN | {"tried": RANDOM},
        "soak": SOAK,
        "crowd": SOAK | {"processes": 24, "memory": [{"trees": 1, "host_mib": 200.0}] * 2},
        "kernels": MUTANTS | ON_GPU | {"killed": 30},
        "evidence": {
            "tests": [test for *_, test in trust_report.EVIDENCE],
            "lacking": [],
            "built_of": ["now", "now"],
            **ON_HOST,
        },
        "files": ON_HOST | {"tried": {trust_report.FILES: 100_000}, "passed": 1, "built_of": "now"},
        "tools": {
            "script_hash": mutants.file_hash(TESTS.parent, ".ci/tools"),
            "exit": dict.fromkeys(trust_report.TOOLS, 0),
            "tests": dict.fromkeys(trust_report.TESTING, TESTED),
            "coverage": {"lines": 2000, "run": 1900, "percent": 95.0},
            **ON_HOST,
        },
        "mutants": MUTANTS | ON_HOST | {"killed": 190},
    },
}
SANITIZED = {"errors": 0, "passed": 121, "skipped": 14}
GPU_REPORT = {"source_hash": "now", "sanitizers": {"memcheck": SANITIZED}}


def test_a_complete_report_proves(tmp_path: Path) -> None:
    assert trust_report.problems(GOOD, "now") == []
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- trust -->\nWAS THERE\n<!-- end of trust -->\nafter\n")
    trust_report.write_table(readme, trust_report.table(GOOD, GPU_REPORT))
    text = readme.read_text()
    assert text.startswith("before\n<!-- trust -->\n| tried |") and text.endswith("-->\nafter\n")
    assert "WAS THERE" not in text and "20,000 trees, 24 processes" in text
    assert "| faults of CUDA calls; gradients: cpu | 7,200 of 8,000 calls failed in turn, in 8 tr" in text
    assert "| faults of NCCL calls | 9 calls failed in turn, in 1 trainings; 8 gave an error" in text
    assert "| faults of CUDA calls and allocations of one worker | 12 of 240 calls failed" in text
    assert "| 95% killed: 190 of 200; 10 survived with a reason, 0 without one |" in text
    assert "| mutants of kernels, on a GPU | 75% killed: 30 of 40; 10 survived" in text
    assert "| ThreadSanitizer | no finding; 500 tests passed, 3 skipped |" in text
    assert "| compute-sanitizer: memcheck | 0 errors; 121 tests passed, 14 skipped |" in text
    assert "| compute-sanitizer: racecheck | not run |" in text
    stale = trust_report.table(GOOD, GPU_REPORT | {"source_hash": "then"})
    assert "14 skipped; stale: of other sources |" in stale


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["source_hash"], "then", "stale"),
        (["steps", "soak"], None, "`soak` was not run"),
        (["steps", "inputs", "device"], None, "inputs: no NVIDIA GPU"),
        (["steps", "faults_cpu", "built_of"], "then", "faults_cpu: a binary is of other sources"),
        (["steps", "soak", "device"], "reference builder (no GPU)", "soak: no NVIDIA GPU"),
        (["steps", "crowd", "environment"], {"GPU_EXACT_SEEDS": "2"}, "crowd: GPU_EXACT_SEEDS=2"),
        (
            ["steps", "faults_cuda", "cases", "test_device_calls[sort-cpu]"],
            {"faults": 0},
            "no fault was injected into test_device_calls[sort-cpu]",
        ),
        *(
            (
                ["steps", "faults_cuda", "cases", f"{test}[{table}-cuda]"],
                None,
                f"faults_cuda: no fault was injected into {test}[{table}-cuda].",
            )
            for test in trust_report.FAULTS
            for table in TABLES
        ),
        (["steps", "faults_cuda", "cases"], ON_CPU, "into test_device_calls[sort-cuda]."),
        (["steps", "faults_cpu", "skips"], {"a[x-cpu]": "why"}, "a[x-cpu] was skipped: why."),
        *(
            (["steps", "faults_nccl", "cases", test], None, f"no fault was injected into {test}.")
            for test in IN_NCCL
        ),
        (["steps", "inputs", "tried", "parameters"], 90_000, "90000 parameters of 100000"),
        (["steps", "inputs", "skips"], {"test_a[3]": "why"}, "inputs: test_a[3] was skipped"),
        (["steps", "files", "tried"], {}, "0 damaged ELF files of 100000"),
        (["steps", "soak", "problems"], ["it grew."], "soak: it grew."),
        (["steps", "soak", "gpu_trees"], 19_999, "19999 trees of 20000"),
        (["steps", "crowd", "processes"], 8, "8 processes"),
        (["steps", "soak", "kinds"], 36, "36 kinds were trained, not 72"),
        (["steps", "soak", "memory"], [{"host_mib": 1.0}] * 2, "device_mib was measured 0 times"),
        (["steps", "crowd", "memory"], [], "host_mib was measured 0 times"),
        (["steps", "evidence", "tests"], [], "has not passed"),
        (["steps", "evidence", "lacking"], ["a.b[c]"], "evidence: a.b[c] has passed with no module."),
        (["steps", "evidence", "built_of"], ["now", "then"], "evidence: a binary is of other sources"),
        (["steps", "evidence", "built_of"], None, "evidence: a binary is of other sources"),
        (["steps", "soak", "environment"], {"PYTEST_ADDOPTS": "-k a"}, "soak: PYTEST_ADDOPTS=-k a was"),
        (["steps", "files", "environment"], {"GTEST_FILTER": "A"}, "files: GTEST_FILTER=A was set"),
        (["steps", "tools", "script_hash"], "then", "tools: .ci/tools has changed since they ran."),
        (["steps", "tools", "exit", "thread"], 1, "thread failed"),
        (["steps", "tools", "exit"], {}, "ruff failed, or was not run"),
        (["steps", "tools", "tests", "address"], {"passed": 0}, "address: no test passed"),
        (["steps", "mutants", "killed"], 189, "199 mutants were tried, not 200"),
        (["steps", "mutants", "explained"], 30, "190 of 220 mutants were killed, less than 90%"),
        (["steps", "mutants", "changed"], {"a.cc": 3}, "a.cc has changed: its 3 mutants want"),
        (["steps", "kernels", "killed"], 29, "39 mutants were tried, not 40"),
        (["steps", "neighbours", "skips"], {"test_torch": "why"}, "test_torch was skipped: why"),
        (["steps", "neighbours", "passed"], 0, "no test passed"),
        (["steps", "mutants", "survivors"], ["a.cc:1"], "survived: a.cc:1"),
        (["steps", "mutants", "survived"], 40, "190 of 240"),
    ],
)
def test_what_does_not_prove_is_said(path: list[str], value: object, message: str) -> None:
    report = copy.deepcopy(GOOD)
    entry = report
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = value
    if value is None and path[-1] != "device":
        del entry[path[-1]]
    found = trust_report.problems(report, "now")
    assert any(message in problem for problem in found), found


def test_a_failure_is_no_proof() -> None:
    report = copy.deepcopy(GOOD)
    report["steps"]["faults_cpu"] |= {"failed": 1, "failures": ["test_x"]}
    assert trust_report.problems(report, "now") == ["faults_cpu: 1 failed: test_x."]


def test_a_test_that_may_be_skipped_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    report = copy.deepcopy(GOOD)
    report["steps"]["neighbours"]["skips"] = {"test_x": "needs it"}
    monkeypatch.setattr(trust_report, "MAY_SKIP", {"test_x": "it cannot be had"})
    assert trust_report.problems(report, "now") == []


CASES = """
import pytest

chunks = pytest.mark.parametrize("chunk", range(4))

@chunks
def test_random_tables(chunk, record_property):
    if chunk == 3:
        pytest.skip("no GPU")
    record_property("tried", 25_000)

@chunks
def test_random_parameters(chunk, record_property):
    record_property("tried", 25_000 - (chunk == 2))

@chunks
def test_random_configurations(chunk, record_property):
    record_property("tried", 25_000)
    assert chunk != 0
"""


def test_what_is_skipped_was_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four parts of the tables is skipped, one of the parameters tries one less."""
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / "tests/e2e/test_inputs.py").write_text(CASES)
    monkeypatch.setattr(trust_report, "find", lambda *_: "module")
    options = argparse.Namespace(source=tmp_path, python=sys.executable, jobs=2, timeout=300)
    step = trust_report.inputs(options)
    assert step["tried"] == {"tables": 75_000, "parameters": 99_999, "configurations": 75_000}
    report = copy.deepcopy(GOOD)
    report["steps"]["inputs"] = step | ON_GPU | {"built_of": "now"}
    assert trust_report.problems(report, "now") == [
        "inputs: 1 failed: test_inputs.test_random_configurations[0].",
        "inputs: test_inputs.test_random_tables[3] was skipped: no GPU.",
        "inputs: 75000 tables of 100000 were tried.",
        "inputs: 99999 parameters of 100000 were tried.",
        "inputs: 75000 configurations of 100000 were tried.",
    ]


DAMAGED = """#!{python}
import json, sys
out = sys.argv[-1].removeprefix("--gtest_output=json:")
case = {{"name": "DamagedFiles", "status": "RUN", "result": "COMPLETED", "tried": "99000"}}
suites = [{{"name": "ElfSymbols", "testsuite": [case]}}]
json.dump({{"source_hash": "now", "testsuites": suites}}, open(out, "w"))
"""


def test_files_are_those_that_the_test_has_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / "host_tests"
    binary.write_text(DAMAGED.format(python=sys.executable))
    binary.chmod(0o755)
    monkeypatch.setattr(trust_report, "find", lambda *_: str(binary))
    step = trust_report.files(argparse.Namespace(timeout=60))
    assert (step["passed"], step["built_of"]) == (1, "now")
    assert trust_report.judge("files", step | ON_HOST) == [
        "99000 damaged ELF files of 100000 were tried."
    ]


PLANTED = """
import os
import pytest

@pytest.mark.parametrize("case", ["a", "b", "c"])
def test_of_cases(case):
    if case == os.environ.get("LEFT_OUT") or case not in os.environ["GPU_EXACT_MODULE"]:
        pytest.skip("not by this module")

def test_skipped():
    pytest.skip("never")
"""


@pytest.mark.parametrize("left_out", ["", "b"])
def test_every_case_of_planted_faults_must_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    """A case passes with one of two modules, and a test has passed if all its cases have."""
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / "tests/e2e/test_it.py").write_text(PLANTED)
    tests = ["e2e/test_it.py::test_of_cases", "e2e/test_it.py::test_skipped"]
    monkeypatch.setattr(trust_report, "EVIDENCE", [("a", "b", test) for test in tests])
    monkeypatch.setattr(trust_report, "find", lambda _, name: "b c" if "ref" in name else "a b")
    monkeypatch.setattr(trust_report, "module_hash", lambda module: f"hash of {module}")
    monkeypatch.setenv("LEFT_OUT", left_out)
    options = argparse.Namespace(source=tmp_path, python=sys.executable, jobs=1, timeout=300)
    step = trust_report.evidence(options)
    assert step["built_of"] == ["hash of a b", "hash of b c"]
    assert step["tests"] == ([] if left_out else tests[:1])
    lacking = ["test_it.test_of_cases[b]"] * bool(left_out) + ["test_it.test_skipped"]
    assert (step["lacking"], step["failed"]) == (lacking, 0)


def test_variables_that_try_less_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_EXACT_SEEDS", "2")
    monkeypatch.setitem(trust_report.STEPS, "neighbours", lambda _: copy.deepcopy(TESTS_RUN))
    out = tmp_path / "report.json"
    options = argparse.Namespace(source=TESTS.parent, out=out, steps=["neighbours"])
    report = trust_report.make_report(options)
    said = "GPU_EXACT_SEEDS=2 was set: the tests tried less than by default."
    step = report["steps"]["neighbours"]
    assert step["environment"]["GPU_EXACT_SEEDS"] == "2" and step["device"] == "a GPU"
    assert said in trust_report.judge("neighbours", step)
    assert said in gpu_report.problems({"environment": step["environment"]}, "now")


def test_memory_that_grows_is_told() -> None:
    first = {"trees": 10, "host_mib": 100.0, "device_mib": 50.0}
    assert soak.growth([first, first | {"trees": 20}]) == []
    grown = first | {"trees": 20, "host_mib": 100.0 + soak.MAY_GROW["host_mib"] + 1}
    assert [text.split()[0] for text in soak.growth([first, grown])] == ["host_mib"]
    assert soak.growth([{"trees": 1, "host_mib": 1.0}, {"trees": 2, "host_mib": 2.0}]) == []
    shared = [first | {"device_mib": n} for n in (14_000.0, 14_000.0, 50.0, 600.0, 600.0, 600.0)]
    assert any("others used the GPU" in text for text in soak.growth(shared))


SMALL_SOAK = """
import os
import sys
import soak

soak.SHAPES = {"small": (50, 4, 0.1), "sparse": (50, 4, 0.8)}
for name in ("deep", "forest", "classes"):
    del soak.PARAMS[name]
soak.BEGIN_S = float(os.environ["BEGIN_S"])
soak.Soak.sample = lambda self, _: self.samples.append({"trees": self.n_trees, "host_mib": 1.0})
if __name__ == "__main__":
    sys.exit(soak.main())
"""


def run_soak(folder: Path, seconds: float) -> subprocess.CompletedProcess:
    """Three processes, with so long to begin together."""
    script = folder / "small.py"
    script.write_text(SMALL_SOAK)
    command = [sys.executable, script, "--trees=30", "--processes=3", "--allow-cpu"]
    path = os.pathsep.join([str(TESTS), *sys.path])
    env = os.environ | {"PYTHONPATH": path, "BEGIN_S": f"{seconds}"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env)


def test_processes_that_soak_are_counted(builder: str, tmp_path: Path) -> None:
    done = run_soak(tmp_path, 120)
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["processes"], told["problems"]) == (3, []) and told["trees"] >= 30
    late = run_soak(tmp_path, 0)
    assert late.returncode != 0 and "Not all processes were ready in 0.0 s." in late.stderr


def test_a_process_that_trains_twice_is_one() -> None:
    """Of three shares that two processes have trained, and one that none has."""
    result = {"trees": 9, "gpu_trees": 9, "samples": [{"trees": 9}], "models": {}}
    results = [result | {"process": number} for number in (7, 8, 7)]
    results.append(result | {"process": 9, "trees": 0, "gpu_trees": 0})
    assert soak.processes_of(results) == 2
    options = argparse.Namespace(processes=4, allow_cpu=True)
    assert "2 processes took part, not 4." in soak.problems(results, options)


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


def test_mutants_of_other_files_do_not_count(tmp_path: Path) -> None:
    """One of three files has changed since; a line of it is gone. Of a kernel the GPU is told."""
    for name in ("a.cc", "b.cc", "c.cc"):
        (tmp_path / name).write_text("{\n  x = true;\n  y = true;\n")
    killed = {"line": 2, "text": "  x = true;", "becomes": "  x = false;", "result": "killed"}
    killed["device"] = "a GPU"
    of_a, of_b = (
        killed | {"file": name, "file_hash": mutants.file_hash(tmp_path, name)}
        for name in ("a.cc", "b.cc")
    )
    results = [of_a, of_b, killed | {"file": "c.cc"}]  # the last has no hash
    results.append(of_b | {"text": "  y = true;", "becomes": "  y = false;"})
    results.append(of_a | {"text": "  z = true;"})  # never was there
    (tmp_path / "b.cc").write_text("{\n  // new\n  x = true;\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / mutants.EXPLAINED).write_text("[]")
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(result) + "\n" for result in results))
    options = argparse.Namespace(source=tmp_path, kernels=file, mutants=file)
    step = trust_report.mutants(options, "kernels")
    assert (step["killed"], step["device"]) == (1, "a GPU")
    assert step["changed"] == {"b.cc": 1, "c.cc": 1}
    assert trust_report.judge_mutants(step, 1) == [
        f"{name} has changed: its 1 mutants want another run of tests/mutants.py."
        for name in step["changed"]
    ]
    with file.open("a") as out:  # run again
        out.write(json.dumps(of_b | {"file_hash": mutants.file_hash(tmp_path, "b.cc")}) + "\n")
    step = trust_report.mutants(options, "mutants")
    assert (step["killed"], step["changed"]) == (2, {"c.cc": 1})


class Workshop:
    """In which every mutant is killed."""

    def __init__(self, root: Path, *_: Path) -> None:
        self.tree = self.build = root

    def make(self, *_: str) -> None:
        pass

    def mutated(self, _: mutants.Mutant) -> AbstractContextManager:
        return nullcontext()

    def first_failure(self) -> str:
        return ""

    def judge(self, mutant: mutants.Mutant) -> dict:
        of = {"file_hash": mutants.file_hash(self.tree, mutant.file)}
        return {**vars(mutant), **of, "result": "killed", "by": "a test"}


def test_mutants_of_changed_files_are_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These alone, where there are as many as are wanted."""
    monkeypatch.setattr(mutants, "Workshop", Workshop)
    (tmp_path / "src").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"src/{name}.cc").write_text(f"  {name} = true;\n  more = {name} + 1;\n")
    out = tmp_path / "out.jsonl"
    options = argparse.Namespace(source=tmp_path, build=tmp_path, work=tmp_path, out=out)
    options.__dict__ |= {"minutes": 1, "files": None, "seed": 1, "again": False, "count": 99}
    options.jobs = 2
    mutants.run_mutants(options)
    first = mutants.read_results(out)
    (tmp_path / "src/b.cc").write_text("  b = true;\n  // new\n")
    today, again = mutants.of_today(first, tmp_path)
    assert {r["file"] for r in today} == {"src/a.cc"}
    assert [r["text"] for r in again] == ["  b = true;"]
    options.count = 1
    n_lines = len(out.read_text().splitlines())
    mutants.run_mutants(options)
    [line] = out.read_text().splitlines()[n_lines:]
    assert json.loads(line)["file"] == "src/b.cc"
    assert mutants.of_today(mutants.read_results(out), tmp_path)[1] == []


def test_mutants_of_changed_kernels_are_packed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "Workshop", Workshop)
    monkeypatch.setattr(mutants.subprocess, "run", lambda *_, **__: None)  # strip
    (tmp_path / "src/device").mkdir(parents=True)
    kernel = tmp_path / "src/device/a.cu"
    kernel.write_text("  a = true;\n")
    options = argparse.Namespace(source=tmp_path, build=tmp_path, work=tmp_path, pack=tmp_path)
    options.__dict__ |= {"minutes": 1, "files": None, "seed": 1, "count": 1, "out": tmp_path / "out"}
    for text in ("  a = true;\n", "  a = true;\n", "  // new\n  a = true;\n"):
        kernel.write_text(text)
        mutants.pack_mutants(options)
    listed = tmp_path / "mutants.jsonl"
    first, second = map(json.loads, listed.read_text().splitlines())
    assert (first["number"], second["number"]) == (1, 2)
    assert first["file_hash"] != second["file_hash"]
    assert mutants.of_today(mutants.read_results(listed), tmp_path) == ([second], [])
    options.out.write_text(json.dumps(second | {"result": "killed"}) + "\n")
    options.pack = tmp_path / "another"  # what has a result is not built again
    mutants.pack_mutants(options)
    assert not (options.pack / "mutants.jsonl").exists()
    options.out.write_text(json.dumps(first | {"result": "killed"}) + "\n")  # of the file as it was
    mutants.pack_mutants(options)
    assert len((options.pack / "mutants.jsonl").read_text().splitlines()) == 1


def pack(folder: Path, rings: list[str]) -> argparse.Namespace:
    """Scripts in the place of device rings, the unchanged one first."""
    lines = []
    for number, ring in enumerate(rings):
        (folder / f"{number}").write_text(f"#!/bin/sh\n{ring}\n")
        (folder / f"{number}").chmod(0o755)
        lines.append({"file": "a.cu", "line": number, "text": f"x{number}", "becomes": ""})
        lines[-1] |= {"number": number, "file_hash": "now"}
    text = "".join(json.dumps(line) + "\n" for line in lines[1:])
    (folder / "mutants.jsonl").write_text(text)
    return argparse.Namespace(run=folder, out=folder / "out.jsonl", jobs=2)


PASSED = "echo '[  PASSED  ] 7 tests.'"


def test_mutants_of_kernels_are_killed_by_the_device_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = "echo '[  FAILED  ] Finder.Best (3 ms)'; exit 1"
    options = pack(tmp_path, [PASSED, failing, PASSED, "kill -6 $$"])
    monkeypatch.setattr(mutants, "device_facts", lambda _: {"device": "a GPU"})
    mutants.run_packed(options)
    results = sorted(mutants.read_results(options.out), key=lambda r: r["number"])
    assert [r["result"] for r in results] == ["killed", "survived", "killed"]
    assert [r["by"] for r in results] == ["Finder.Best", "", "it ended with -6"]
    assert {(r["device"], r["file_hash"]) for r in results} == {("a GPU", "now")}
    mutants.run_packed(options)  # they are not run again
    assert len(options.out.read_text().splitlines()) == 3
    listed = options.run / "mutants.jsonl"
    listed.write_text(listed.read_text().replace("now", "later", 1))  # but what has changed
    mutants.run_packed(options)
    assert len(options.out.read_text().splitlines()) == 4


def alive(process: int) -> bool:
    """A zombie, which nobody has waited for, is not."""
    stat = Path(f"/proc/{process}/stat")
    return stat.is_file() and stat.read_text().rsplit(")")[-1].split()[0] != "Z"


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_programs_end_with_the_script_that_runs_them(tmp_path: Path, number: int) -> None:
    """What they have started, too."""
    pids = tmp_path / "pids"
    options = pack(tmp_path, [f"sleep 600 &\necho $$ $! > {pids}.new; mv {pids}.new {pids}; wait"])
    command = [sys.executable, TESTS / "mutants.py", "--run", tmp_path, "--out", options.out]
    script = subprocess.Popen(command)
    wait_until(pids.is_file)
    processes = [int(pid) for pid in pids.read_text().split()]
    assert all(map(alive, processes))
    script.send_signal(number)
    assert script.wait(60) == 128 + number
    wait_until(lambda: not any(map(alive, processes)))


def test_what_is_not_done_in_time_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    begin = time.monotonic()
    script = f"sleep 600 &\necho $! > {pid}; wait"
    status, said = mutants.RUNNING.run("sh", "-c", script, limit_s=2)
    assert (status, said) == (mutants.TOO_LATE, "not done after 2 s")
    assert time.monotonic() - begin < 60 and mutants.RUNNING.groups == set()
    wait_until(lambda: not alive(int(pid.read_text())))


def test_programs_without_what_is_mutated_are_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are built with all kernels."""
    built: list[tuple] = []
    monkeypatch.setattr(Workshop, "make", lambda _, *targets: built.append(targets))
    monkeypatch.setattr(Workshop, "judge", mutants.Workshop.judge)
    monkeypatch.setattr(Workshop, "first_failure", lambda *_: "")
    monkeypatch.setattr(mutants, "Workshop", Workshop)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_text("  a = true;\n")
    options = argparse.Namespace(source=tmp_path, build=tmp_path, work=tmp_path, out=tmp_path / "out")
    options.__dict__ |= {"minutes": 1, "files": None, "seed": 1, "again": False, "count": 9, "jobs": 1}
    mutants.run_mutants(options)
    assert built == [(*mutants.MUTATED, mutants.E2E_RING), ()]
    assert mutants.E2E_RING not in mutants.MUTATED


SKIPPED = "echo '[  PASSED  ] 1 test.'; echo '[  SKIPPED ] 130 tests, listed below:'"


@pytest.mark.parametrize("ring", ["exit 1", "echo '[  PASSED  ] 0 tests.'", SKIPPED])
def test_mutants_of_kernels_need_a_ring_that_passes(tmp_path: Path, ring: str) -> None:
    with pytest.raises(SystemExit, match="without any mutant"):
        mutants.run_packed(pack(tmp_path, [ring, PASSED]))


REPORTS = ("gpu_report", "trust_report", "ways_in", "xgboost_suite")


@pytest.mark.parametrize("name", REPORTS)
def test_a_stale_report_ends_its_check(tmp_path: Path, name: str) -> None:
    report = json.loads((TESTS / f"{name}.json").read_text()) | {"source_hash": "then"}
    out = tmp_path / "report.json"
    out.write_text(json.dumps(report))
    command = [sys.executable, TESTS / f"{name}.py", "--check", f"--out={out}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "The report is stale" in done.stdout and not done.stderr


STAND_IN = """
import sys
if sys.argv[1:] == ["--table"]:
    open("tests/README.md", "w").write("table of today")
    sys.exit()
sys.exit(sys.argv[1:] != ["--check"] or {lacks})
"""


class Repository:
    """In which scripts that stand in for these say whether their report proves."""

    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")

    def __init__(self, folder: Path, lacking: str, readme: str = "table of today") -> None:
        self.folder = folder
        (folder / ".ci").mkdir()
        (folder / "tests").mkdir()
        shutil.copy(TESTS.parent / ".ci/reports", folder / ".ci")
        for name in REPORTS:
            (folder / f"tests/{name}.py").write_text(STAND_IN.format(lacks=name == lacking))
        (folder / "tests/README.md").write_text(readme)
        subprocess.run([*self.git, "init", "-q"], cwd=folder, check=True)

    def judge(self, *command: str) -> subprocess.CompletedProcess:
        """What the judge says after something was done to the repository."""
        subprocess.run([*self.git, *command], cwd=self.folder, check=True)
        judge = self.folder / ".ci/reports"
        return subprocess.run([judge], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("lacking", ["", *REPORTS])
def test_a_release_needs_every_report(tmp_path: Path, lacking: str) -> None:
    """One of the scripts says that its report proves nothing."""
    repository = Repository(tmp_path, lacking)
    first = repository.judge("commit", "-q", "--allow-empty", "-m", "first")
    assert first.returncode == 0
    assert first.stdout.endswith(f": {lacking}.\n" if lacking else "xgboost_suite.json\n")
    assert repository.judge("tag", "very-good").returncode == 0
    assert repository.judge("tag", "v1.0").returncode == (1 if lacking else 0)


def test_a_release_needs_the_table_of_its_reports(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "", readme="table of old")
    first = repository.judge("commit", "-q", "--allow-empty", "-m", "first")
    assert (first.returncode, first.stderr) == (0, "")
    assert (tmp_path / "tests/README.md").read_text() == "table of old"
    tagged = repository.judge("tag", "v1.0")
    assert tagged.returncode == 1 and "tests/README.md was not up to date" in tagged.stderr
    assert repository.judge("status", "-s").returncode == 0  # it has been written
