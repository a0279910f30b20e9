#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Run every test ring and four sanitizers on a GPU machine and write down what came out.

    python tests/gpu_report.py --build build       # on the machine with the GPU
    python tests/gpu_report.py --check             # anywhere: is it fresh and without a failure
    python tests/gpu_report.py --hash              # of these sources, as the report has it

The binaries are run themselves, not through ctest: a build tree copied to another machine keeps
absolute paths in its ctest files. The report is written after every step, so a run that is cut
short leaves a report that `--check` calls incomplete. The rest may be done in another run
(`--rings`, `--sanitizers`): at the same sources and on the same kind of machine it adds to the
report that lies at --out. Of the end-to-end ring and of a sanitizer (with the same `--shards`) that
run leaves out the parts that have passed. A complete report has R's tests (`--r`) and those of sizes, which take a GPU
with 130 GiB. Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

RINGS = ("host", "device", "e2e")
R = "r"  # a ring too, run by a command of its own
WITH_CUDA = "e2e xgboost "  # how the ring with a wheel that has CUDA begins
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
# What is written by kernels that run at a time is noted wrongly by initcheck: workers that share the
# GPU of a test then "read uninitialised memory" in every second run, each time somewhere else.
SANITIZER_OPTIONS = {"initcheck": ["--force-blocking-launches"]}
SANITIZED_E2E = (  # short: every strategy, XGBoost's own kernels between, threads, odd trees
    "test_quirks.py",
    "test_strategy.py::test_same_model_on_a_cuda_context",
    "test_strategy.py::test_changes_between_iterations",
    "test_strategy.py::test_boosters_of_several_strategies_share_a_dmatrix",
)
ALONE = "test_neighbours.py"  # fills the GPU
CPP_E2E = "test_updater.cc"
# Files that say which worker or thread has which GPU; of the others each takes another one first.
DEALS_OUT_GPUS = re.compile("test_(clusters|devices|distributed|nccl_faults|neighbours|worker_failures)")
SIZES = "Sizes."  # in the names of tests of the device ring that no complete report is without
# Random problems a test: the tools slow kernels down 10 to 100 times, and racecheck takes 6 ms a launch.
SANITIZER_SEEDS = {"memcheck": "2", "racecheck": "1", "initcheck": "2", "synccheck": "2"}
HASHED = ("plugin", "src", "include", "tests", "CMakeLists.txt")
REPORT = "tests/gpu_report.json"
# Made of the sources, or said of what was found in them.
REPORTS = (
    REPORT,
    "tests/ways_in.json",
    "tests/xgboost_suite.json",
    "tests/trust_report.json",
    "tests/mutants_explained.json",
    "tests/mutants_host.jsonl",
    "tests/mutants_kernels.jsonl",
    "tests/README.md",
)
# Part of a ring's tests that may be skipped, by the words that its name begins with.
MAY_SKIP = {
    "host": 0.0,
    "device": 0.05,  # tests of two GPUs
    "e2e xgboost-cpu": 0.4,
    "e2e": 0.06,  # LightGBM and the like; workers that take the reference module, which needs no GPU
    R: 0.05,
    "sanitizer racecheck": 0.2,  # workers that are threads, too
    "sanitizer": 0.12,  # these, and those that watch, exhaust or fill memory
}
# Environment variables that change what the tests try; a lower number tries less than by default.
LEAST = {
    "GPU_EXACT_SEEDS": 1000,
    "GPU_EXACT_FUZZ": 1000,
    "GPU_EXACT_INPUTS": 1000,
    "GPU_EXACT_DISTRIBUTED": 80,
}
SELECTING = ("GTEST_", "PYTEST_")  # variables by which a test program may leave tests out
RECORDED = ("GPU_EXACT_", "XGBOOST_GPU_EXACT_", "CUDA_VISIBLE_DEVICES", *SELECTING)


def source_hash(root: Path) -> str:
    """SHA-256 of what the tests depend on: of its lines, each a path and the SHA-256 of a file.

    plugin/cmake/WriteSourceHash.cmake computes the same for binaries: keep both alike.
    """
    files = [file for name in HASHED for file in ([root / name] + sorted((root / name).rglob("*")))]
    paths = {file.relative_to(root).as_posix() for file in files if file.is_file()}
    lines = [
        f"{path} {hashlib.sha256((root / path).read_bytes()).hexdigest()}\n"
        for path in sorted(paths)
        if not made(Path(path))
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def made(path: Path) -> bool:
    """Whether a file is no source."""
    return (
        path.as_posix() in REPORTS
        or path.suffix in (".pyc", ".so", ".o")
        or any(
            p.startswith((".", "__pycache__", "_skbuild")) or p.endswith(".egg-info")
            for p in path.parts
        )
        or "dist" in path.parts[:-1]
    )


def of_other_sources(report: dict, current_hash: str) -> list[str]:
    """Why any report proves nothing of these sources on a GPU."""
    found = []
    if report.get("source_hash") != current_hash:
        found.append("The report is stale: the sources have changed since it was made.")
    if not report.get("device"):
        found.append("No NVIDIA GPU took part.")
    return found


def problems(report: dict, current_hash: str) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where it proves that all passed."""
    found = of_other_sources(report, current_hash)
    rings = report.get("rings", {})
    for ring in (*RINGS, R):
        if ring not in {name.split()[0] for name in rings}:
            found.append(f"The ring `{ring}` was not run.")
    if not any(name.startswith(WITH_CUDA) for name in rings):
        found.append("The ring `e2e` was not run with the wheel `xgboost`, which has CUDA.")
    for name, run in rings.items():
        if run["failed"]:
            found.append(f"{name}: {run['failed']} failed: {', '.join(run['failures'][:10])}.")
        if run["passed"] == 0:
            found.append(f"{name}: no test passed ({run['skipped']} skipped).")
        found += doubts(name, run, current_hash)
    if "device" in rings:
        skipped = [test for test in rings["device"]["skips"] if SIZES in test]
        if skipped or not rings["device"].get("sizes"):
            found.append(f"device: tests of sizes were skipped: {', '.join(skipped) or 'all'}.")
    for name, run in report.get("benchmarks", {}).items():
        found += of_others(name, run, current_hash)
    for tool in SANITIZERS:
        run = report.get("sanitizers", {}).get(tool)
        if run is None:
            found.append(f"The sanitizer `{tool}` was not run.")
            continue
        if run["exit"] != 0 or run["errors"] != 0 or run["failed"] or run["passed"] == 0:
            found.append(
                f"{tool}: {run['errors']} errors, exit {run['exit']}, {run['passed']} tests passed, "
                f"{run['failed']} failed."
            )
        found += doubts(f"sanitizer {tool}", run, current_hash)
    return found + tried_less(report.get("environment", {}))


def recorded_environment() -> dict[str, str]:
    """Variables that change what is tested, as they are set."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(RECORDED) and name != "GPU_EXACT_MODULE"  # whose hash is in `built_of`
    }


def tried_less(environment: dict[str, str]) -> list[str]:
    """Recorded variables by which tests try less than by default, a sentence each."""
    found = []
    for name, value in environment.items():
        few = name in LEAST and not (value.isdigit() and int(value) >= LEAST[name])
        if few or name == "GPU_EXACT_SANITIZER":
            found.append(f"{name}={value} was set: the tests tried less than by default.")
        if name.startswith(SELECTING):
            found.append(f"{name}={value} was set: tests may have been left out.")
    return found


def of_others(name: str, run: dict, current_hash: str) -> list[str]:
    """Says so where a binary is of other sources."""
    built_of = run.get("built_of", [])
    if set(built_of) == {current_hash}:
        return []
    others = ", ".join(h[:12] for h in built_of if h != current_hash)
    return [f"{name}: a binary is of other sources ({others or 'unknown'}): build again."]


def doubts(name: str, run: dict, current_hash: str) -> list[str]:
    """Why a run that passed does not show what it should."""
    found = of_others(name, run, current_hash)
    if run.get("left"):
        found.append(f"{name}: {len(run['left'])} parts were not run: {', '.join(run['left'][:10])}.")
    share = next(part for words, part in MAY_SKIP.items() if name.startswith(words))
    if run["skipped"] > share * (run["passed"] + run["skipped"]):
        found.append(
            f"{name}: {run['skipped']} tests skipped, more than {share:.0%}: "
            f"{', '.join(run.get('skips', [])[:10])}."
        )
    return found


def run_gtest(command: list[str], env: dict, timeout: float) -> tuple[dict, int, str]:
    """Run a GoogleTest binary; gives its counts, exit status and output."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        status, output, seconds = run(command + [f"--gtest_output=json:{out}"], env, timeout)
        counts = empty_counts(seconds)
        if out.is_file():
            result = json.loads(out.read_text())
            counts["built_of"].append(result.get("source_hash", "unknown"))
            for suite in result["testsuites"]:
                for test in suite["testsuite"]:
                    result = "skipped" if test["result"] == "SKIPPED" else "passed"
                    if test["status"] == "NOTRUN":
                        result = "skipped"
                    add(
                        counts,
                        "failed" if test.get("failures") else result,
                        f"{suite['name']}.{test['name']}",
                    )
                    counts["tried"] += int(test.get("tried", 0))
    if status != 0 and not counts["failed"]:
        add(counts, "failed", f"{Path(command[-1]).name} ended with {status}")
    return counts, status, output


def run_pytest(
    python: list[str], tests: Path, env: dict, timeout: float
) -> tuple[dict, int, str]:
    """Run the Python tests of a folder or file; gives their counts, exit status and output."""
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "result.xml"
        command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={out}"]
        status, output, seconds = run(command + [str(tests)], env, timeout)
        counts = empty_counts(seconds)
        has_result = out.is_file()
        for case in ElementTree.parse(out).iter("testcase") if has_result else ():
            results = {"failure": "failed", "error": "failed", "skipped": "skipped"}
            name = f"{case.get('classname')}.{case.get('name')}"
            why = next((child for child in case if child.tag in results), None)
            if why is None:
                add(counts, "passed", name)
            else:
                message = (why.get("message") or "no message").splitlines()[0]
                add(counts, results[why.tag], f"{name}: {message[:200]}")
    if (status != 0 or not has_result) and not counts["failed"]:
        add(counts, "failed", f"{tests.name}: pytest ended with {status}")
    return counts, status, output


def run_r(command: list[str], env: dict, timeout: float) -> tuple[dict, str]:
    """Run the tests of R's package; gives the counts, of expectations, that testthat prints."""
    status, output, seconds = run(command, env, timeout)
    counts = empty_counts(seconds)
    counts["built_of"] += re.findall(r"^module built of (\w+)", output, re.MULTILINE)
    line = r"\[ FAIL (\d+) \| WARN \d+ \| SKIP (\d+) \| PASS (\d+) \]"
    printed = re.findall(line, output)
    if printed:
        counts["failed"], counts["skipped"], counts["passed"] = map(int, printed[-1])
        counts["skips"] = re.findall(r"^[•*] (.+)$", output, re.MULTILINE)
        counts["failures"] = re.findall(r"^\S\S (?:Failure|Error) \((.*?)\)", output, re.MULTILINE)
    if status != 0 and not counts["failed"]:
        add(counts, "failed", f"{Path(command[0]).name} ended with {status}")
    return counts, output


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES names, or the ordinals of all."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name]
    status, text, _ = run(["nvidia-smi", "-L"], dict(os.environ), 60)
    n = sum(line.startswith("GPU ") for line in text.splitlines()) if status == 0 else 0
    return [str(i) for i in range(n)]


def another_gpu_first(gpus: list[str], turn: int) -> dict[str, str]:
    """All of them are visible, another one first in each turn: programs take the first."""
    turn %= max(len(gpus), 1)
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus[turn:] + gpus[:turn])} if len(gpus) > 1 else {}


def share_of_cores(n_jobs: int) -> dict[str, str]:
    """OpenMP's threads of one of several programs at a time, unless it is set: a thread for each core in
    every one of them spins while it waits, and keeps the others waiting."""
    n_cores = len(os.sched_getaffinity(0))
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, n_cores // n_jobs)))}


class Parts:
    """Results of a step's parts, which are saved one by one.

    Those that passed in an earlier run of the same parts are not run again: what is cut short goes on.
    """

    def __init__(self, names: list[str], earlier: dict | None, save: Callable[[dict], None]) -> None:
        self.names = names
        self.done = {
            name: part
            for name, part in (earlier or {}).get("parts", {}).items()
            if name in names and not part["failed"] and not part.get("exit")
        }
        self.save = save
        self.lock = Lock()

    def left(self) -> list[str]:
        return [name for name in self.names if name not in self.done]

    def add(self, name: str, part: dict) -> None:
        with self.lock:
            self.done[name] = part
            self.save(self.result())

    def result(self) -> dict:
        parts = {name: self.done[name] for name in self.names if name in self.done}
        return added_up(parts.values()) | {"parts": parts, "left": self.left()}


def run_sanitizer(
    tool: str,
    env: dict,
    options: argparse.Namespace,
    earlier: dict | None = None,
    save: Callable[[dict], None] = lambda _: None,
) -> dict:
    """Run the device ring, in shards, and a short end-to-end set under one tool.

    All side by side, on the GPUs in turn: each part keeps one core busy, and GPUs that are shared by
    many take long. `errors` is None where the tool gave no summary.
    """
    program = options.sanitizer or shutil.which("compute-sanitizer")
    program = program or "/usr/local/cuda/bin/compute-sanitizer"
    command = [program, "--target-processes", "all", "--tool", tool, "--error-exitcode", "86"]
    command += SANITIZER_OPTIONS.get(tool, [])
    env = env | {"GPU_EXACT_SEEDS": SANITIZER_SEEDS[tool], "GPU_EXACT_SANITIZER": tool}
    gpus = visible_gpus()
    names = [f"shard {i} of {options.shards}" for i in range(options.shards)] + list(SANITIZED_E2E)

    def with_errors(result: dict) -> dict:
        errors = [part["errors"] for part in result["parts"].values()]
        return result | {
            "errors": None if None in errors else sum(errors),
            "exit": next((p["exit"] for p in result["parts"].values() if p["exit"] != 0), 0),
        }

    def run_part(name: str) -> None:
        part = names.index(name)
        of = {"CUDA_VISIBLE_DEVICES": gpus[part % len(gpus)]} if gpus else {}
        if part < options.shards:
            of |= {"GTEST_TOTAL_SHARDS": str(options.shards), "GTEST_SHARD_INDEX": str(part)}
            binary = options.device_tests
            counts, status, output = run_gtest([*command, binary], env | of, options.timeout)
        else:
            tests = options.source / "tests/e2e" / name
            python = [*command, options.python[0]]
            counts, status, output = run_pytest(python, tests, env | of, options.timeout)
            counts["built_of"].append(module_hash(options.module))
        if counts["passed"] == 0 and not counts["failed"]:
            add(counts, "failed", f"{name}: no test passed")
        if status != 0:
            print(output[-4000:])
        parts.add(name, {"errors": sanitizer_errors(output), "exit": status, **counts})

    parts = Parts(names, earlier, lambda result: save(with_errors(result)))
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(run_part, parts.left()))
    return with_errors(parts.result())


def sanitizer_errors(output: str) -> int | None:
    summary = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+) (?:error|hazard)", output)
    return sum(map(int, summary)) if summary else None


def run(
    command: list[str], env: dict, timeout: float, cwd: Path | None = None
) -> tuple[int, str, float]:
    print("$", " ".join(command), flush=True)
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command,
            env=env,
            cwd=cwd,
            timeout=timeout,
            check=False,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, output = 124, f"not done after {timeout} s"
    except OSError as error:
        status, output = 127, str(error)
    return status, output, round(time.monotonic() - begin, 1)


def empty_counts(seconds: float) -> dict:
    """Of no test; `built_of` are the hashes of the sources of what was run, `sizes` passed.

    `tried` is how many inputs GoogleTest's tests say that they have tried.
    """
    numbers = {"passed": 0, "failed": 0, "skipped": 0, "tried": 0, "seconds": seconds}
    return numbers | {"failures": [], "skips": [], "sizes": [], "built_of": []}


def added_up(parts: Iterable[dict]) -> dict:
    """Counts of all parts together."""
    counts = empty_counts(0)
    for part in parts:
        counts = {key: counts[key] + part[key] for key in counts}
    return counts | {"built_of": sorted(set(counts["built_of"]))}


def add(counts: dict, result: str, name: str) -> None:
    counts[result] += 1
    if result != "passed":
        counts["failures" if result == "failed" else "skips"].append(name)
    elif SIZES in name:
        counts["sizes"].append(name)


def printed_counts(output: str) -> Counter[str]:
    """How many tests have `passed` and were `skipped`, as GoogleTest and pytest print at their end."""
    printed = re.findall(r"^\[  (PASSED|SKIPPED) +\] (\d+) test", output, re.MULTILINE)
    for line in re.findall(r"^\d+ \w+.* in [\d.]+s", output, re.MULTILINE):
        printed += [(what, n) for n, what in re.findall(r"(\d+) (passed|skipped)", line)]
    counts: Counter[str] = Counter()
    for what, n in printed:
        counts[what.lower()] += int(n)
    return counts


def device_facts(build: Path | None) -> dict:
    """Device and versions; None for what the machine does not tell."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    status, text, _ = run(query, dict(os.environ), 60)
    first = text.strip().splitlines()[0].split(", ") if status == 0 and text.strip() else []
    name, driver, capability = first if len(first) == 3 else (None, None, None)
    _, header, _ = run(["nvidia-smi"], dict(os.environ), 60)
    supported = re.search(r"CUDA Version: ([\d.]+)", header)
    toolkit = None
    for file in build.rglob("CMakeCUDACompiler.cmake") if build else ():
        found = re.search(r'CMAKE_CUDA_COMPILER_VERSION "([\d.]+)"', file.read_text())
        toolkit = found and found[1]
    cuda = {"driver_supports": supported and supported[1], "built_with": toolkit}
    return {"device": name, "compute_capability": capability, "driver": driver, "cuda": cuda}


def xgboost_facts(python: str, env: dict) -> tuple[str, Path]:
    """Which wheel an interpreter has, and its libxgboost."""
    code = (
        "import importlib.metadata as m, xgboost.libpath as p\n"
        "names = {d.metadata['Name'].replace('_', '-') for d in m.distributions()}\n"
        "name = next((n for n in ('xgboost-cpu', 'xgboost') if n in names), 'unpackaged xgboost')\n"
        "import xgboost; print(name, xgboost.__version__, p.find_lib_path()[0], sep=';')"
    )
    status, text, _ = run([python, "-c", code], env, 300)
    if status != 0:
        sys.exit(f"{python} has no usable XGBoost: {text.strip()[-300:]}")
    name, version, library = text.strip().splitlines()[-1].split(";")
    return f"{name} {version}", Path(library)


def module_hash(module: str) -> str:
    """The sources that a module was built of, as it says itself."""
    code = (
        "import ctypes, sys\nfunction = ctypes.CDLL(sys.argv[1]).GpuExactSourceHash\n"
        "function.restype = ctypes.c_char_p\nprint(function().decode())"
    )
    status, text, _ = run([sys.executable, "-c", code, module], dict(os.environ), 60)
    return text.strip() if status == 0 else "unknown"


def link_libxgboost(library: Path, folder: Path) -> Path:
    """Links by which a C++ test finds the wheel's library by SONAME, its OpenMP beside it."""
    (folder / "xgboost/lib").mkdir(parents=True)
    for name in ("libxgboost.so", "libxgboost.so.3"):
        (folder / "xgboost/lib" / name).symlink_to(library)
    for bundled in library.parents[2].glob("xgboost*.libs"):
        (folder / bundled.name).symlink_to(bundled)
    return folder / "xgboost/lib"


def longest_first(file: Path) -> tuple[bool, str]:
    """By name, but random problems take minutes: begun last they would be waited for."""
    return not file.name.startswith("test_fuzz"), file.name


def run_e2e(
    options: argparse.Namespace,
    python: str,
    env: dict,
    rings: dict[str, dict] | None = None,
    save: Callable[[], None] = lambda: None,
) -> tuple[str, dict]:
    """The end-to-end ring with the XGBoost of one interpreter; goes on with what `rings` has of it."""
    rings = {} if rings is None else rings
    wheel, library = xgboost_facts(python, env)
    files = sorted((options.source / "tests/e2e").glob("test_*.py"), key=longest_first)
    env = env | share_of_cores(options.jobs)
    gpus = visible_gpus()
    built_of = module_hash(options.module)

    def save_result(result: dict) -> None:
        rings[f"e2e {wheel}"] = result | {"seconds": round(result["seconds"], 1)}
        save()

    def run_file(turn: int, file: Path) -> None:
        first = {} if DEALS_OUT_GPUS.match(file.name) else another_gpu_first(gpus, turn)
        counts, _, output = run_pytest([python], file, env | first, options.timeout)
        counts["built_of"].append(built_of)
        if counts["failed"]:
            print(output[-8000:])
        parts.add(file.name, counts)

    names = [CPP_E2E, *(file.name for file in files)]
    parts = Parts(names, rings.get(f"e2e {wheel}"), save_result)
    if CPP_E2E in parts.left():
        with tempfile.TemporaryDirectory() as folder:
            libraries = link_libxgboost(library, Path(folder))
            counts, _, output = run_gtest(
                [options.e2e_tests], env | {"LD_LIBRARY_PATH": str(libraries)}, options.timeout
            )
        if counts["failed"]:
            print(output[-8000:])
        parts.add(CPP_E2E, counts)
    left = [file for file in files if file.name in parts.left()]
    for some in ([f for f in left if f.name != ALONE], [f for f in left if f.name == ALONE]):
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run_file, range(len(some)), some))
    save_result(parts.result())
    return f"e2e {wheel}", rings[f"e2e {wheel}"]


def begin(out: Path, facts: dict) -> dict:
    """A report with what earlier runs found, if of the same sources, device and versions."""
    report = {"rings": {}, "benchmarks": {}, "sanitizers": {}}
    if out.is_file():
        earlier = json.loads(out.read_text())
        others = [key for key, value in facts.items() if earlier.get(key) != value]
        if others:
            print(f"The report begins anew: {', '.join(others)} changed since {out.name} was made.")
        else:
            report = {key: earlier.get(key, {}) for key in report}
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**facts, "made": made, **report}


def benchmarks(build: Path | None, current_hash: str) -> dict:
    """The programs whose times are published, where they are built: a text in them is the hash."""
    found = [f for f in build.rglob("bench_builder") if f.is_file()] if build else []
    is_current = all(current_hash.encode() in file.read_bytes() for file in found)
    return {file.name: {"built_of": [current_hash] * is_current} for file in found}


def python_path(source: Path) -> str:
    """The package of these sources, then what was there."""
    paths = [str(source / "plugin/python"), os.environ.get("PYTHONPATH")]
    return os.pathsep.join(filter(None, paths))


def make_report(options: argparse.Namespace) -> dict:
    env = os.environ | {
        "PYTHONPATH": python_path(options.source),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if options.module:
        env["GPU_EXACT_MODULE"] = options.module
    facts = {"source_hash": source_hash(options.source), **device_facts(options.build)}
    facts["environment"] = recorded_environment()
    report = begin(options.out, facts)
    report["benchmarks"] |= benchmarks(options.build, facts["source_hash"])

    def save() -> None:
        options.out.write_text(json.dumps(report, indent=2) + "\n")

    save()
    for ring in ("host", "device"):
        if ring in options.rings:
            binary = options.host_tests if ring == "host" else options.device_tests
            report["rings"][ring], _, output = run_gtest([binary], env, options.timeout)
            if report["rings"][ring]["failed"]:
                print(output[-8000:])
            save()
    for python in options.python if "e2e" in options.rings else ():
        run_e2e(options, python, env, report["rings"], save)
    if options.r:
        report["rings"][R], output = run_r(options.r, env, options.timeout)
        if report["rings"][R]["failed"]:
            print(output[-8000:])
        save()
    if options.sanitizers:
        sanitizers, saving = report["sanitizers"], Lock()

        def sanitize(tool: str) -> None:
            def save_result(result: dict) -> None:
                with saving:
                    sanitizers[tool] = result
                    save()

            save_result(run_sanitizer(tool, env, options, sanitizers.get(tool), save_result))

        with ThreadPoolExecutor(len(options.sanitizers)) as pool:
            list(pool.map(sanitize, options.sanitizers))
    return report


def report_parser(text: str, report: str) -> argparse.ArgumentParser:
    """Of a script that makes or checks a report; the first line of its text says what it does."""
    parser = argparse.ArgumentParser(description=text.split("\n")[0])
    parser.add_argument(
        "--check",
        action="store_true",
        help="judge the report at --out; ends with 1 and says why if it proves nothing",
    )
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--out", type=Path, help=f"the report (default {report} of --source)")
    return parser


def read_report(file: Path) -> dict | None:
    """The report; says so where there is none."""
    if not file.is_file():
        print(f"There is no report {file.name}; make one on a machine with a GPU.")
        return None
    return json.loads(file.read_text())


def parse() -> argparse.Namespace:
    parser = report_parser(__doc__, REPORT)
    parser.add_argument("--hash", action="store_true", help="print the hash of the sources")
    parser.add_argument("--build", type=Path, help="build folder; the options below override it")
    parser.add_argument("--host-tests", metavar="BINARY")
    parser.add_argument("--device-tests", metavar="BINARY")
    parser.add_argument("--e2e-tests", metavar="BINARY")
    parser.add_argument("--module", help="libxgboost_gpu_exact.so")
    parser.add_argument(
        "--python",
        action="append",
        help="interpreter with a stock XGBoost; again for another wheel",
    )
    parser.add_argument(
        "--r",
        nargs="+",
        metavar=("COMMAND", "ARGUMENT"),
        help="runs R's tests too: tests/r/run_tests.sh MODULE, or what tests/r/pack_r.sh says",
    )
    parser.add_argument(
        "--rings",
        type=lambda text: text.split(",") if text else [],
        default=list(RINGS),
        help=f"some of {','.join(RINGS)}; --rings= for none",
    )
    parser.add_argument(
        "--sanitizers",
        type=lambda text: text.split(",") if text else [],
        default=list(SANITIZERS),
        help=f"some of {','.join(SANITIZERS)}; --sanitizers= for none",
    )
    parser.add_argument("--shards", type=int, default=1, help="of a sanitizer's run (default 1)")
    parser.add_argument("--sanitizer", help="compute-sanitizer, where it is not in PATH")
    parser.add_argument(
        "--jobs", type=int, default=1, help="files of Python tests at a time (default 1)"
    )
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a step")
    options = parser.parse_args()
    options.out = options.out or options.source / REPORT
    if not (options.check or options.hash):
        fill_from_build(options, parser)
    return options


def fill_from_build(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """What was not named is looked for in the build folder; what is needed and missing is named."""
    wanted = {
        "host_tests": "gpu_exact_host_tests",
        "device_tests": "gpu_exact_device_tests",
        "e2e_tests": "gpu_exact_e2e_tests",
        "module": "libxgboost_gpu_exact.so",
    }
    for option, name in wanted.items():
        if getattr(options, option) is None and options.build:
            found = sorted(f for f in options.build.rglob(name) if f.is_file())
            setattr(options, option, str(found[0].resolve()) if found else None)
    venv = options.build / "venv/bin/python" if options.build else None
    if not options.python:
        options.python = [str(venv.absolute())] if venv and venv.exists() else [sys.executable]
    needed = {f"{ring}_tests" for ring in options.rings}
    needed |= {"device_tests"} if options.sanitizers else set()
    needed |= {"module"} if "e2e" in options.rings or options.sanitizers else set()
    for option in sorted(needed):
        if getattr(options, option, None) is None:
            parser.error(
                f"found no {wanted[option]}: build the tests and give --build, or name it "
                f"with --{option.replace('_', '-')}"
            )


def main() -> int:
    options = parse()
    if options.hash:
        print(source_hash(options.source))
        return 0
    report = read_report(options.out) if options.check else make_report(options)
    if report is None:
        return 1
    found = problems(report, source_hash(options.source))
    for ring, counts in report.get("rings", {}).items():
        print(
            f"{ring}: {counts['passed']} passed, {counts['failed']} failed, "
            f"{counts['skipped']} skipped"
        )
        for name in counts.get("skips", []):
            print(f"  skipped: {name}")
    for tool, counts in report.get("sanitizers", {}).items():
        print(f"{tool}: {counts['errors']} errors")
    print("\n".join(found) if found else f"All passed on {report['device']}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
