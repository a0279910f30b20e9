# Copyright 2026, the gpu_exact contributors
"""The GPU report: what counts as proof, and that programs which fail are not counted as passed."""

import argparse
import copy
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact

_FILE = Path(__file__).resolve().parents[1] / "gpu_report.py"
_SPEC = importlib.util.spec_from_file_location("gpu_report", _FILE)
gpu_report = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gpu_report)

PASSED = {"passed": 30, "failed": 0, "skipped": 0, "seconds": 0.1, "failures": []}
PASSED |= {"skips": [], "sizes": ["Sizes.Many"], "built_of": ["now"]}
GOOD = {
    "source_hash": "now",
    "device": "a GPU",
    "environment": {"GPU_EXACT_SEEDS": "1000", "CUDA_VISIBLE_DEVICES": "0"},
    "rings": {
        **dict.fromkeys(("host", "device", "r"), PASSED),
        **dict.fromkeys(("e2e xgboost 1.2.3", "e2e xgboost-cpu 1.2.3"), PASSED),
    },
    "benchmarks": {"bench_builder": {"built_of": ["now"]}},
    "sanitizers": {t: {"errors": 0, "exit": 0, **PASSED} for t in gpu_report.SANITIZERS},
}


@pytest.fixture
def tree(tmp_path):
    for path in ("src/a.h", "plugin/b.cc", "include/c.h", "tests/d.cc", "CMakeLists.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(path)
    return tmp_path


def program(folder, text):
    """A stand-in for a test binary."""
    file = folder / "tests_binary"
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def test_programs_at_a_time_take_another_gpu_each():
    assert gpu_report.another_gpu_first([], 1) == gpu_report.another_gpu_first(["0"], 1) == {}
    firsts = [gpu_report.another_gpu_first(["2", "0", "5"], turn) for turn in range(4)]
    assert [first["CUDA_VISIBLE_DEVICES"] for first in firsts] == ["2,0,5", "0,5,2", "5,2,0", "2,0,5"]


def test_programs_at_a_time_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    shares = [gpu_report.share_of_cores(n_jobs)["OMP_NUM_THREADS"] for n_jobs in (1, 14, 100)]
    assert shares == ["64", "4", "1"]
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert gpu_report.share_of_cores(14) == {"OMP_NUM_THREADS": "8"}


def test_hash_follows_sources_and_nothing_else(tree):
    first = gpu_report.source_hash(tree)
    for report in gpu_report.REPORTS:
        (tree / report).write_text("{}")
    (tree / "src/__pycache__").mkdir()
    (tree / "src/__pycache__/x.pyc").write_text("made")
    (tree / "benchmarks").mkdir()
    (tree / "benchmarks/train.py").write_text("not tested")
    assert gpu_report.source_hash(tree) == first
    (tree / "src/a.h").rename(tree / "src/renamed.h")
    renamed = gpu_report.source_hash(tree)
    (tree / "src/renamed.h").write_text("changed")
    assert len({first, renamed, gpu_report.source_hash(tree)}) == 3


def test_binaries_get_the_same_hash(tree):
    """What CMake writes for them, of all kinds of files."""
    for path in ("tests/gpu_report.json", "src/.hidden", "src/__pycache__/x.pyc", "plugin/dist/x", "src/B.h"):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_bytes(path.encode() + b"\0\xff;[]\n")
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake")
    script = _FILE.parents[1] / "plugin/cmake/WriteSourceHash.cmake"
    out = tree / "benchmarks.inc"
    subprocess.run(["cmake", f"-DROOT={tree}", f"-DOUTPUT={out}", "-P", script], check=True)
    assert out.read_text() == f'"{gpu_report.source_hash(tree)}"\n'
    before = out.stat().st_mtime_ns
    subprocess.run(["cmake", f"-DROOT={tree}", f"-DOUTPUT={out}", "-P", script], check=True)
    assert out.stat().st_mtime_ns == before  # nothing is built again


def test_a_module_says_what_it_is_built_of(tmp_path):
    assert gpu_report.module_hash(gpu_exact._module._name) == gpu_exact.source_hash()
    assert len(gpu_exact.source_hash()) == 64
    other = tmp_path / "other.so"
    other.write_text("no module")
    assert gpu_report.module_hash(str(other)) == "unknown"


def test_hash_is_printed(tree, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", "--hash", "--source", str(tree)])
    assert gpu_report.main() == 0
    assert capsys.readouterr().out == gpu_report.source_hash(tree) + "\n"


def test_runs_at_the_same_sources_add_up(tmp_path, capsys):
    file, facts = tmp_path / "report.json", {"source_hash": "now", "device": "a GPU"}
    assert gpu_report.begin(file, facts)["rings"] == {}
    file.write_text(json.dumps(GOOD))
    report = gpu_report.begin(file, facts)
    assert (report["rings"], report["sanitizers"]) == (GOOD["rings"], GOOD["sanitizers"])
    assert capsys.readouterr().out == ""
    for changed in ({"source_hash": "later"}, {"device": "another GPU"}):
        report = gpu_report.begin(file, facts | changed)
        assert (report["rings"], report["sanitizers"]) == ({}, {})
        assert f"begins anew: {next(iter(changed))} changed" in capsys.readouterr().out


def test_a_complete_report_proves():
    assert gpu_report.problems(GOOD, "now") == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["source_hash"], "before", "stale"),
        (["device"], None, "No NVIDIA GPU"),
        (["rings", "device"], None, "`device` was not run"),
        (["rings", "r"], None, "`r` was not run"),
        (["rings", "e2e xgboost 1.2.3"], None, "`e2e` was not run with the wheel `xgboost`,"),
        (["rings", "device", "passed"], 0, "device: no test passed"),
        (["rings", "device", "sizes"], [], "device: tests of sizes were skipped: all."),
        (["rings", "device", "skips"], ["SortedSizes.A"], "sizes were skipped: SortedSizes.A."),
        (["benchmarks", "bench_builder", "built_of"], [], "bench_builder: a binary is of other"),
        (["rings", "e2e xgboost-cpu 1.2.3", "failed"], 2, "2 failed"),
        (["rings", "e2e xgboost 1.2.3", "left"], ["test_a.py"], "1 parts were not run: test_a.py"),
        (["sanitizers", "racecheck", "left"], ["a", "b"], "racecheck: 2 parts were not run: a, b"),
        (["sanitizers", "racecheck"], None, "`racecheck` was not run"),
        (["sanitizers", "memcheck", "errors"], 1, "memcheck: 1 errors"),
        (["sanitizers", "memcheck", "errors"], None, "memcheck: None errors"),
        (["sanitizers", "synccheck", "exit"], 86, "exit 86"),
        (["sanitizers", "initcheck", "passed"], 0, "0 tests passed"),
        (["sanitizers", "racecheck", "failed"], 3, "3 failed"),
        (["rings", "device", "built_of"], ["then"], "device: a binary is of other sources (then)"),
        (["rings", "device", "built_of"], ["now", "then"], "other sources (then)"),
        (["rings", "host", "built_of"], [], "other sources (unknown)"),
        (["sanitizers", "memcheck", "built_of"], ["then"], "sanitizer memcheck: a binary"),
        (["rings", "host", "skipped"], 1, "host: 1 tests skipped, more than 0%"),
        (["rings", "e2e xgboost-cpu 1.2.3", "skipped"], 25, "25 tests skipped, more than 40%"),
        (["sanitizers", "memcheck", "skipped"], 9, "9 tests skipped, more than 12%"),
        (["environment", "GPU_EXACT_SEEDS"], "2", "GPU_EXACT_SEEDS=2 was set"),
        (["environment", "GPU_EXACT_FUZZ"], "10", "GPU_EXACT_FUZZ=10 was set"),
        (["environment", "GPU_EXACT_SANITIZER"], "1", "GPU_EXACT_SANITIZER=1 was set"),
        (["environment", "GTEST_FILTER"], "A.*", "GTEST_FILTER=A.* was set: tests may have been"),
        (["environment", "PYTEST_ADDOPTS"], "-k a", "PYTEST_ADDOPTS=-k a was set: tests may have"),
    ],
)
def test_what_does_not_prove_is_said(path, value, message):
    report = copy.deepcopy(GOOD)
    place = report
    for key in path[:-1]:
        place = place[key]
    if value is None and len(path) == 2:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert any(message in problem for problem in gpu_report.problems(report, "now"))


SELECTING = ("GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "PYTEST_ADDOPTS")


@pytest.mark.parametrize("name", SELECTING)
def test_variables_that_leave_tests_out_are_recorded(monkeypatch, name):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    assert gpu_report.tried_less(gpu_report.recorded_environment()) == []
    monkeypatch.setenv(name, "2")
    said = f"{name}=2 was set: tests may have been left out."
    assert gpu_report.tried_less(gpu_report.recorded_environment()) == [said]


def test_benchmarks_of_other_sources_are_said(tmp_path):
    """The module takes the place of a program that has these sources' hash in it."""
    now = gpu_exact.source_hash()
    assert gpu_report.benchmarks(tmp_path, now) == gpu_report.benchmarks(None, now) == {}
    (tmp_path / "bench_builder").symlink_to(Path(gpu_exact._module._name).resolve())
    for current, said in ((now, False), (now[::-1], True)):
        report = GOOD | {"benchmarks": gpu_report.benchmarks(tmp_path, current)}
        found = gpu_report.problems(report, current)
        assert any(text.startswith("bench_builder: a binary is of other") for text in found) == said


def test_printed_results_are_counted():
    output = "[  PASSED  ] 7 tests.\n[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.B\n"
    output += "3 passed, 1 skipped in 0.10s\nit passed 5 tests\n1 failed, 20 passed in 61.2s\n"
    assert gpu_report.printed_counts(output) == {"passed": 30, "skipped": 3}


def test_gtest_results_are_counted(tmp_path):
    binary = program(
        tmp_path,
        """
import json, sys
case = {"status": "RUN", "result": "COMPLETED"}
tests = [case | {"name": "A"}, case | {"name": "B", "result": "SKIPPED"},
         case | {"name": "D", "status": "NOTRUN"}, case | {"name": "C", "failures": [{"failure": "x"}]}]
out = sys.argv[1].removeprefix("--gtest_output=json:")
suites = [{"name": "ManySizes", "testsuite": tests}]
json.dump({"source_hash": "then", "testsuites": suites}, open(out, "w"))
sys.exit(1)
""",
    )
    counts, status, _ = gpu_report.run_gtest([binary], {}, 60)
    assert (counts["passed"], counts["skipped"], counts["failed"], status) == (1, 2, 1, 1)
    assert (counts["failures"], counts["sizes"]) == (["ManySizes.C"], ["ManySizes.A"])
    assert counts["skips"] == ["ManySizes.B", "ManySizes.D"]
    assert counts["built_of"] == ["then"]


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "import os; os.abort()"])
def test_a_binary_that_ends_early_has_failed(tmp_path, text):
    counts, _, _ = gpu_report.run_gtest([program(tmp_path, text)], {}, 60)
    assert (counts["passed"], counts["failed"]) == (0, 1)


def sanitizing(program, shards):
    return argparse.Namespace(
        sanitizer=program,
        shards=shards,
        device_tests="binary",
        module=gpu_exact._module._name,
        python=[sys.executable],
        source=_FILE.parents[1],
        timeout=60,
    )


def test_a_missing_sanitizer_is_no_pass(tmp_path):
    run = gpu_report.run_sanitizer("memcheck", {}, sanitizing(str(tmp_path / "none"), 2))
    assert run["errors"] is None and run["exit"] != 0


def test_shards_of_a_sanitizer_add_up(tmp_path):
    text = """import os, sys
print('========= ERROR SUMMARY: 1 errors')
sys.exit(int(os.environ.get('GTEST_SHARD_INDEX', 0)))"""
    sanitizer = program(tmp_path, text)
    run = gpu_report.run_sanitizer("memcheck", {}, sanitizing(sanitizer, 3))
    n_parts = 3 + len(gpu_report.SANITIZED_E2E)  # in which this one runs no test
    assert (run["errors"], run["exit"], run["failed"]) == (n_parts, 1, n_parts)


def test_parts_that_passed_are_not_run_again(tmp_path):
    saved = []
    passed = gpu_report.empty_counts(1.0) | {"passed": 2, "exit": 0, "errors": 0}
    parts = gpu_report.Parts(["a", "b", "c"], None, saved.append)
    parts.add("a", passed)
    parts.add("b", passed | {"exit": 124, "errors": None})
    assert saved[-1]["left"] == ["c"]  # where it was cut
    again = gpu_report.Parts(["a", "b", "c"], saved[-1], saved.append)
    assert again.left() == ["b", "c"]
    again.add("b", passed)
    again.add("c", passed)
    assert (again.result()["passed"], again.left()) == (6, [])
    assert gpu_report.Parts(["a of 2"], saved[-1], saved.append).left() == ["a of 2"]  # other parts


def test_pytest_results_are_counted(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('no GPU')\n"
        "def test_c(): assert False\n"
    )
    counts, status, _ = gpu_report.run_pytest([sys.executable], tmp_path, {}, 120)
    assert status == 1
    assert (counts["passed"], counts["skipped"], counts["failed"]) == (1, 1, 1)
    # Names begin with the folders below the one that pytest takes for its root.
    (skipped,), (failed,) = counts["skips"], counts["failures"]
    assert skipped.endswith("test_it.test_b: no GPU")
    assert failed.endswith("test_it.test_c: assert False")


@pytest.mark.parametrize("jobs", [1, 3])
def test_files_of_a_ring_add_up(tmp_path, monkeypatch, jobs):
    (tmp_path / "tests/e2e").mkdir(parents=True)
    for name, text in {"a": "pass", "b": "assert False", "c": "pass"}.items():
        (tmp_path / f"tests/e2e/test_{name}.py").write_text(f"def test_{name}():\n    {text}\n")
    passed = gpu_report.empty_counts(1.0) | {"passed": 5}
    monkeypatch.setattr(gpu_report, "run_gtest", lambda *_: (dict(passed), 0, ""))
    module = gpu_exact._module._name
    options = argparse.Namespace(
        source=tmp_path, e2e_tests="none", module=module, jobs=jobs, timeout=120
    )
    rings: dict = {}
    name, counts = gpu_report.run_e2e(options, sys.executable, dict(os.environ), rings)
    assert name.startswith("e2e xgboost") and rings == {name: counts}
    assert (counts["passed"], counts["failed"], len(counts["failures"])) == (7, 1, 1)
    assert counts["built_of"][-1] == gpu_exact.source_hash()
    (tmp_path / "tests/e2e/test_a.py").unlink()  # has passed, and counts no more where it is gone
    (tmp_path / "tests/e2e/test_b.py").write_text("def test_b(): pass\n")
    _, counts = gpu_report.run_e2e(options, sys.executable, dict(os.environ), rings)
    assert (counts["passed"], counts["failed"]) == (7, 0)
    assert sorted(counts["parts"]) == ["test_b.py", "test_c.py", gpu_report.CPP_E2E]


SKIP_OF_R = "• needs caret (1): test-a.R:3:1"


@pytest.mark.parametrize(
    ("printed", "status", "counts", "failures"),
    [
        (f"{SKIP_OF_R}\n[ FAIL 0 | WARN 1 | SKIP 1 | PASS 30 ]", 0, (30, 1, 0), []),
        ("-- Failure (a.R:3:1): b\n[ FAIL 1 | WARN 0 | SKIP 0 | PASS 3 ]", 1, (3, 0, 1), ["a.R:3:1"]),
        ("[ FAIL 0 | WARN 0 | SKIP 0 | PASS 3 ]", 1, (3, 0, 1), ["tests_binary ended with 1"]),
        ("R is missing", 77, (0, 0, 1), ["tests_binary ended with 77"]),
    ],
)
def test_results_of_r_are_counted(tmp_path, printed, status, counts, failures):
    text = f"import sys\nprint('module built of now')\nprint({printed!r})\nsys.exit({status})"
    run, _ = gpu_report.run_r([program(tmp_path, text)], {}, 60)
    assert (run["passed"], run["skipped"], run["failed"]) == counts
    assert run["failures"] == failures
    assert run["skips"] == [SKIP_OF_R[2:]] * run["skipped"]
    report = copy.deepcopy(GOOD)
    report["rings"]["r"] = run
    assert bool(gpu_report.problems(report, "now")) == bool(run["failed"])


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        ("========= ERROR SUMMARY: 0 errors", 0),
        ("========= ERROR SUMMARY: 12 errors\n", 12),
        ("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)", 2),
        ("Segmentation fault", None),
    ],
)
def test_sanitizer_summary(output, errors):
    assert gpu_report.sanitizer_errors(output) == errors
