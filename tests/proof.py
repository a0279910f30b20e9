#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Run suites of tests for the record, and judge whether a record proves a commit.

    python tests/proof.py run device e2e --build build --jobs 8 --out proof.jsonl
    python tests/proof.py check proof.jsonl --sum tests/proofs/v1.2.3.jsonl
    python tests/proof.py files e2e        # what a suite consists of

`run` takes a clean tree and binaries of these sources. It adds a line to --out as each part of a suite
ends, and leaves out parts that have passed before: a run that is cut short goes on. No line is ever
replaced: a failed attempt stays. Where there is no git, as in a build folder that was carried to a
machine with a GPU, --commit says what the tree is of. Records of several machines are joined by `cat`.

`check` wants, of one commit, every file of every suite: with a test that has passed, none that has
failed in any attempt, and none skipped but by a line of skips.txt. --sum writes the totals of such a
record, a line a suite: the record of a release. `check` takes that too. Only the standard library is
needed.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = "plugin/python/xgboost_gpu_exact/versions.py"
GPU, FAULTS = "libxgboost_gpu_exact.so", "libxgboost_gpu_exact_faults.so"
REFERENCE = "libxgboost_gpu_exact_reference.so"
TWO_GPUS = "*WorkersOnTwoDevices*:*WorkersByNccl*"
DEVICE = {"by": "device", "tests": f"-{TWO_GPUS}"}
PLANS = "device/level/test_device_builder.cu"  # reads what is free of the GPU's memory
# Not with a GPU: tests of tools and of texts say the same with any module.
ONCE = " ".join(
    f"e2e/test_{name}.py"
    for name in "accuracy benchmarks fetch guides parity proof scale sources versions".split()
)
APART = " ".join(
    f"e2e/test_{name}.py" for name in "faults nccl_faults neighbours inputs soak".split()
)
HOST = "core/test_*.cc plan/test_*.cc host/test_*.cc plugin/test_*.cc"
WITH_GPU = "e2e/test_fuzz_on_cuda.py e2e/test_nccl_faults.py e2e/test_soak.py"  # wholly
LOADING = "e2e/test_import.py"  # of the module that users have, with a GPU and without
# Random problems of a test; `check` draws fewer.
MANY = {"GPU_EXACT_FUZZ": "1000", "GPU_EXACT_DISTRIBUTED": "80", "GPU_EXACT_RANGES": "100"}
E2E = {"needs": "xgboost dask distributed joblib pandas pyarrow scipy sklearn", "env": MANY}
SIZES, WORKERS = "device/level/test_sizes.cu", "device/workers/test_workers.cu"
# Short: every strategy, XGBoost's own kernels between, threads, odd trees.
SANITIZED = "e2e/test_quirks.py e2e/test_strategy.py"
TABLES = (
    "a9a adult agaricus california covtype_20k diamonds elec2 flights200k hep_atlas higgs_lgbm letter "
    "rank_lgbm skin"
)


@dataclass(frozen=True)
class Suite:
    """A row of the table of suites. Several rows of one name are one suite."""

    name: str
    files: str  # patterns below tests/
    but: str = ""  # patterns of files that this row leaves out
    by: str = "pytest"  # what runs them: pytest, or gpu_exact_<by>_tests, or see COMMANDS
    module: str = GPU
    gpus: int = 1  # that it needs
    needs: str = ""  # packages that are installed: tests start processes without PYTHONPATH
    alone: bool = False  # nothing else may use the GPU meanwhile
    tests: str = ""  # options of pytest, or GoogleTest's filter
    tool: str = ""  # of compute-sanitizer
    piece: int = 1000  # tests of a file that run in one process, with GoogleTest
    pieces: int = 1  # processes that share the tests of a file, with pytest
    env: dict[str, str] = field(default_factory=dict)


def sanitizer(tool: str, seeds: int, piece: int) -> list[Suite]:
    """The device suite and some end-to-end files, with few random problems: the tool is slow."""
    env = {"GPU_EXACT_SANITIZER": tool, "GPU_EXACT_SEEDS": f"{seeds}"}
    but = SIZES
    if tool == "racecheck":  # it cannot follow workers that are threads
        but += " device/workers/test_*.cu"
    short = "-k 'quirks or same_model_on_a_cuda_context or between_iterations or share_a_dmatrix'"
    return [
        Suite(tool, SANITIZED, tool=tool, env=env, tests=short),
        Suite(tool, "device/**/test_*.cu", but, tool=tool, env=env, piece=piece, **DEVICE),
    ]


SUITES = [
    # Anywhere, without a GPU.
    Suite("host", HOST, by="host", gpus=0),
    Suite("reference", "e2e/test_*.py", f"{WITH_GPU} {LOADING}", module=REFERENCE, gpus=0, **E2E),
    Suite("reference", "e2e/test_updater.cc", by="e2e", module=REFERENCE, gpus=0),
    # The module that users have, where there is no GPU.
    Suite("nogpu", f"e2e/test_fallback.py {LOADING}", gpus=0, env={"CUDA_VISIBLE_DEVICES": ""}),
    Suite("package", "package/test_package.py", gpus=0),  # and a package index
    # With a GPU; what takes longest begins first.
    Suite("faults", "e2e/test_faults.py", module=FAULTS, pieces=40),
    Suite("nccl", "e2e/test_nccl_faults.py", module=FAULTS, gpus=2),
    Suite("inputs", "e2e/test_inputs.py", env={"GPU_EXACT_INPUTS": "50000"}, pieces=8),
    Suite("device", "device/**/test_*.cu", f"{SIZES} {PLANS}", **DEVICE),
    Suite("device", PLANS, alone=True, **DEVICE),
    Suite("sizes", SIZES, by="device", alone=True),  # 130 GiB of the GPU
    Suite("peers", WORKERS, by="device", tests=TWO_GPUS, gpus=2),
    Suite("e2e", "e2e/test_*.py", f"{ONCE} {APART}", **E2E),
    Suite("e2e", "e2e/test_updater.cc", by="e2e"),
    Suite("neighbours", "e2e/test_neighbours.py", module=FAULTS, gpus=2, needs="cupy torch", alone=True),
    Suite("soak", "e2e/test_soak.py", tests="-m soak", alone=True),
    *sanitizer("memcheck", seeds=2, piece=8),
    *sanitizer("racecheck", seeds=1, piece=2),
    *sanitizer("initcheck", seeds=2, piece=8),
    *sanitizer("synccheck", seeds=2, piece=8),
    Suite("r", "r/run_tests.sh", by="r"),
    Suite("upstream", "upstream/selection.txt", by="upstream", needs="hypothesis"),
    Suite("parity", TABLES, by="parity"),
]
NAMES = list(dict.fromkeys(suite.name for suite in SUITES))
# These say which worker or thread has which GPU. Of the others each file begins with another one.
DEALS_OUT_GPUS = re.compile("test_(clusters|devices|distributed|nccl_faults|neighbours|worker_failures)")
KEPT = (  # of the environment; anything else could make tests try less
    "PATH HOME LANG TMPDIR LD_LIBRARY_PATH PYTHONPATH CUDA_VISIBLE_DEVICES PIP_* GPU_EXACT_NCCL "
    "GPU_EXACT_R_ROOT *_NVLS* *_MULTICAST"
).split()
TOOL_OPTIONS = {
    # What it notes of kernels that run at a time is wrong.
    "initcheck": ["--force-blocking-launches"],
    # Sorts and scans of CUB are most of its time, and not ours to check.
    "racecheck": ["--kernel-name-exclude", "kns=_ZN3cub"],
}
# compute-sanitizer's own failures, now and then, where threads use a GPU. They say nothing of the program.
INTERNAL = re.compile(r"^========= .*Internal error", re.MULTILINE)  # counted as an error
UNPRINTED = "========= Error in printing record"  # not counted
RACECHECKS = 6  # that run at a time on a GPU: with more, all of them take longer
LONGEST = 400  # characters of a line
ALL = "all"  # the file of a line that sums up a suite
SHOWN = 4000  # characters of what fails

COMPILED_FOLDERS = "src include plugin/cmake plugin/load plugin/hooks plugin/train plugin/workers".split()
COMPILED = re.compile(r"(CMakeLists\.txt|/versions\.py|/[^./][^/]*\.(cc|h|cu|cuh|in|map|cmake))$")


def source_hash(root: Path | None = None) -> str:
    """SHA-256 of all that is compiled: of its lines, each a path and the SHA-256 of a file.

    plugin/cmake/WriteSourceHash.cmake computes the same for binaries: keep both alike.
    """
    root = root or ROOT
    files = [f for folder in COMPILED_FOLDERS for f in (root / folder).rglob("*")]
    files += (root / "plugin").glob("*")
    files += [root / "CMakeLists.txt", root / VERSIONS]
    paths = sorted(file.relative_to(root).as_posix() for file in files if file.is_file())
    lines = [
        f"{path} {hashlib.sha256((root / path).read_bytes()).hexdigest()}\n"
        for path in paths
        if COMPILED.search(path)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def may_skip(suite: str, test: str, reason: str) -> bool:
    """Whether a line of skips.txt lets a suite skip a test for this reason."""
    for line in (ROOT / "tests/skips.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            suites, pattern, why = re.split(r"\s{2,}", line.strip(), maxsplit=2)
            if suite in suites.split(","):
                if fnmatch.fnmatchcase(test, f"*{pattern}") and fnmatch.fnmatchcase(reason, why):
                    return True
    return False


def files_of(suite: Suite, root: Path | None = None) -> list[str]:
    """Paths below tests/, or what else a suite is made of."""
    if suite.by == "parity":
        return suite.files.split()
    tests = (root or ROOT) / "tests"

    def find(patterns: str) -> set[str]:
        return {f.relative_to(tests).as_posix() for p in patterns.split() for f in tests.glob(p)}

    return sorted(find(suite.files) - find(suite.but))


@dataclass(frozen=True)
class Part:
    """What one process runs."""

    suite: Suite
    file: str
    piece: str
    names: str = ""  # of GoogleTest's tests

    def key(self) -> tuple[str, str, str]:
        return self.suite.name, self.file, self.piece

    def stage(self) -> tuple[bool, bool, bool]:
        """Parts of a stage run together: long kernels of a tool hold up tests that wait often."""
        return self.suite.alone, bool(self.suite.tool), self.suite.tool == "racecheck"


class Runner:
    """Runs parts with what was built in a folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.gpus, self.device, self.driver = visible_gpus()
        cores = len(os.sched_getaffinity(0))
        self.env = {n: v for n, v in os.environ.items() if any(fnmatch.fnmatch(n, k) for k in KEPT)}
        self.env |= {"OMP_NUM_THREADS": f"{max(1, cores // options.jobs)}", "GPU_EXACT_STRICT": "1"}
        self.env |= {"PYTHONDONTWRITEBYTECODE": "1"}
        packages = [str(ROOT / "plugin/python"), self.env.get("PYTHONPATH", "")]
        self.env["PYTHONPATH"] = os.pathsep.join(filter(None, packages))
        self.xgboost, self.library = self._xgboost()

    @functools.cache
    def built(self, name: str) -> Path:
        """A file of the build folder, which must be of these sources."""
        file = next((f for f in sorted(self.options.build.rglob(name)) if f.is_file()), None)
        if file is None:
            sys.exit(f"{self.options.build} has no {name}: build gpu_exact_tests.")
        if source_hash().encode() not in file.read_bytes():
            sys.exit(f"{name} is of other sources: build gpu_exact_tests.")
        return file.resolve()

    def parts(self, suite: Suite) -> list[Part]:
        if len(self.gpus) < suite.gpus:
            sys.exit(f"{suite.name} needs {suite.gpus} GPUs; there are {len(self.gpus)}.")
        if suite.needs and (lacking := self._lacking(suite.needs)):
            sys.exit(f"{suite.name} needs {lacking}: install that for {self.options.python}.")
        files = files_of(suite)
        if suite.by in ("r", "upstream", "parity", "pytest"):
            self.built(suite.module)
            pieces = [f"{i}/{suite.pieces}" for i in range(1, suite.pieces + 1)]
            return [Part(suite, file, piece) for file in files for piece in pieces]
        tests = defaultdict(list)  # by file
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/tests.json"
            command = [self.built(f"gpu_exact_{suite.by}_tests"), "--gtest_list_tests"]
            command += [f"--gtest_output=json:{out}", f"--gtest_filter={suite.tests or '*'}"]
            self._run(command, self._links(folder))
            listed = json.loads(Path(out).read_text())["testsuites"]
        for group in listed:
            for test in group["testsuite"]:
                tests[Path(test["file"]).name].append(f"{group['name']}.{test['name']}")
        parts = []
        for file in files:
            names, size = tests[Path(file).name], suite.piece
            pieces = [names[i : i + size] for i in range(0, len(names), size)] or [[]]
            for i, some in enumerate(pieces, 1):
                parts.append(Part(suite, file, f"{i}/{len(pieces)}", ":".join(some)))
        return parts

    def run(self, part: Part, turn: int) -> dict:
        """A line of the record."""
        suite, begin = part.suite, time.monotonic()
        env = self.env | {"GPU_EXACT_RUN": suite.name}
        if suite.by not in ("host", "device"):
            env["GPU_EXACT_MODULE"] = str(self.built(suite.module))
        env |= {"GPU_EXACT_PIECE": part.piece} | suite.env
        if self.options.xgboost:
            env["GPU_EXACT_XGBOOST_TESTS"] = str(self.options.xgboost)
        gpus = self.gpus[turn % max(len(self.gpus), 1) :] + self.gpus
        if suite.tool and gpus:  # it reports calls that try what only several GPUs have
            env["CUDA_VISIBLE_DEVICES"] = gpus[0]
        elif len(self.gpus) > 1 and suite.gpus == 1 and not DEALS_OUT_GPUS.search(part.file):
            env["CUDA_VISIBLE_DEVICES"] = ",".join(dict.fromkeys(gpus))
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "result.xml")
            command = self._command(part, out)
            if suite.tool:
                command = [*self._tool(suite.tool), *command]
            for broken in range(3):
                status, output = self._run(command, env | self._links(folder))
                if not (suite.tool and is_broken(output)):
                    break
            if suite.by == "r":
                passed, skipped, failed = of_r(output)
            elif suite.by == "parity":  # it prints a line a table
                passed, skipped, failed = len(re.findall('^{"table"', output, re.MULTILINE)), 0, []
            else:
                passed, skipped, failed = of_junit(out, suite.name)
        if status and not failed:
            failed.append(f"ended with {status}")
        if suite.tool and (errors_of(output) != 0 or is_broken(output)):
            failed.append(f"{suite.tool} told errors, or nothing")
        if failed:
            told = re.sub("^Extension modules: .*$", "", output, flags=re.MULTILINE)  # where Python ends
            print(f"{' '.join(part.key())}: {failed}\n{told[-SHOWN:]}", flush=True)
        counts = {"passed": passed, "skipped": skipped, "failed": failed}
        counts |= {"broken": broken} if broken else {}  # runs that the tool broke, before this one
        return counts | {"seconds": round(time.monotonic() - begin, 1)}

    def facts(self) -> dict:
        """What a line says of the machine, and of what is run."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")
        facts = {"commit": self.options.commit, "sources": source_hash()[:12], "when": now}
        machine = {"gpus": len(self.gpus), "device": self.device, "driver": self.driver}
        return facts | machine | {"xgboost": self.xgboost}

    def _command(self, part: Part, out: Path) -> list[object]:
        suite, python = part.suite, self.options.python
        pytest = ["-m", "pytest", "-q", f"--junitxml={out}"]
        if suite.by == "r":
            return [ROOT / "tests" / part.file, self.built(suite.module)]
        if suite.by == "parity":
            script = [python, ROOT / "tests/parity.py", "--tables", self.options.tables]
            return [*script, "--only", part.file]
        if suite.by == "upstream":
            pytest += ["--hypothesis-seed=0", ROOT / "tests" / part.file]
            return [python, "-m", "xgboost_gpu_exact", *pytest]
        if suite.by == "pytest":
            return [python, *pytest, ROOT / "tests" / part.file, *shlex.split(suite.tests)]
        binary = self.built(f"gpu_exact_{suite.by}_tests")
        return [binary, f"--gtest_output=xml:{out}", f"--gtest_filter={part.names}"]

    def _tool(self, tool: str) -> list[object]:
        found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        options = ["--target-processes", "all", "--error-exitcode", "86"]
        return [found, "--tool", tool, *options, *TOOL_OPTIONS.get(tool, [])]

    def _links(self, folder: str) -> dict[str, str]:
        """By which a program finds the wheel's library by its SONAME, its OpenMP beside it."""
        place = Path(folder, "xgboost/lib")
        if self.library and not place.exists():
            place.mkdir(parents=True)
            (place / "libxgboost.so.3").symlink_to(self.library)
            for bundled in self.library.parents[2].glob("xgboost*.libs"):
                Path(folder, bundled.name).symlink_to(bundled)
        path = [str(place), self.env.get("LD_LIBRARY_PATH", "")]
        return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, path))} if self.library else {}

    def _lacking(self, packages: str) -> str:
        code = "import importlib.util as u, sys; print(*(p for p in sys.argv[1:] if not u.find_spec(p)))"
        return self._run([self.options.python, "-I", "-c", code, *packages.split()], {})[1].strip()

    def _xgboost(self) -> tuple[str, Path | None]:
        code = "import xgboost as x, xgboost.libpath as p; print('XGBoost', x.__version__, "
        code += "'with CUDA' if x.build_info()['USE_CUDA'] else 'without CUDA', p.find_lib_path()[0], sep=';')"
        status, output = self._run([self.options.python, "-c", code], self.env)
        if status:
            sys.exit(f"{self.options.python} has no XGBoost: {output[-300:]}")
        _, version, cuda, library = output.strip().splitlines()[-1].split(";")
        return f"{version} {cuda}", Path(library)

    def _run(self, command: list[object], env: dict[str, str]) -> tuple[int, str]:
        """Status and output."""
        try:
            done = subprocess.run(
                [str(word) for word in command],
                env=self.env | env,
                timeout=self.options.timeout,
                check=False,
                text=True,
                errors="replace",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired:
            return 124, f"not done after {self.options.timeout} s"
        except OSError as error:
            return 127, str(error)
        return done.returncode, done.stdout


def visible_gpus() -> tuple[list[str], str, str]:
    """What CUDA_VISIBLE_DEVICES names, or the numbers of all; the first one's name, its driver."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, check=True, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return [], "", ""
    lines = told.strip().splitlines()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = [str(i) for i in range(len(lines))] if named is None else list(filter(None, named.split(",")))
    name, _, driver = lines[0].partition(", ")
    return gpus, name, driver


def errors_of(output: str) -> int | None:
    """What compute-sanitizer counted; None where it did not come to that."""
    told = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ", output)
    return sum(map(int, told)) if told else None


def is_broken(output: str) -> bool:
    """Whether compute-sanitizer tells failures of its own and no other errors."""
    own = len(INTERNAL.findall(output))
    return errors_of(output) == own and (own > 0 or UNPRINTED in output)


def of_junit(file: Path, suite: str) -> tuple[int, int, list[str]]:
    """Tests that passed, that were skipped, and names of those that failed or may not be skipped."""
    passed, skipped, failed = 0, 0, []
    if not file.is_file():
        return 0, 0, ["wrote no results"]
    for case in ElementTree.parse(file).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        kinds = {child.tag: child for child in case}
        if kinds.keys() & {"failure", "error"}:
            failed.append(name)
        elif "skipped" in kinds:
            # GoogleTest's message begins with the place.
            reason = (kinds["skipped"].get("message") or "").strip().split("\n")[-1]
            skipped += 1
            if not may_skip(suite, name, reason):
                failed.append(f"{name} was skipped: {reason}")
        elif case.get("status") != "notrun":
            passed += 1
    return passed, skipped, failed


def of_r(output: str) -> tuple[int, int, list[str]]:
    """Likewise, of what testthat prints last."""
    told = re.findall(r"\[ FAIL (\d+) \| WARN \d+ \| SKIP (\d+) \| PASS (\d+) \]", output)
    n_failed, skipped, passed = map(int, told[-1]) if told else (0, 0, 0)
    failed = [f"{n_failed} failed"] * (n_failed > 0) + ["no result"] * (not told)
    for reason, name in re.findall(r"^[•*] (.+) \(\d+\): '?(.*)$", output, re.MULTILINE):
        failed += [f"{name} was skipped: {reason}"] * (not may_skip("r", name, reason))
    return passed, skipped, failed


def read_record(file: Path) -> list[dict]:
    """Its lines; ends the program where one is cut short."""
    text = file.read_text() if file.is_file() else ""
    try:
        if text[-1:] not in ("", "\n"):
            raise ValueError(text[-1])
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        sys.exit(f"{file} has a line that is cut short: remove it.")


def shortened(line: dict) -> str:
    """As JSON, and names of failed tests left out until it is no longer than it may be."""
    names = [name[:80] for name in line["failed"]]
    while len(text := json.dumps(line | {"failed": names})) > LONGEST:
        names = [*names[:-2], "..."] if len(names) > 2 else [name[:-10] for name in names]
    return text


def problems_of(lines: list[dict], tree: Path, wanted: list[str]) -> list[str]:
    """Why lines do not prove the commit whose tree this is, a sentence each."""
    found = []
    if len(commits := {line["commit"] for line in lines}) != 1:
        found.append(f"One commit is proved at a time, here are {', '.join(sorted(commits)) or 'none'}.")
    sources = source_hash(tree)[:12]
    for line in lines:
        what = f"{line['suite']}, {line['file']} {line['piece']}"
        if line["sources"] != sources:
            found.append(f"{what}: ran binaries of other sources.")
        if line["failed"]:
            found.append(f"{what}: attempt {line['attempt']} failed: {', '.join(line['failed'])}.")
        needs = max((s.gpus for s in SUITES if s.name == line["suite"]), default=0)
        if line["gpus"] < needs:
            found.append(f"{what}: needs {needs} GPUs and had {line['gpus']}.")
    for name in wanted:
        files = [file for suite in SUITES if suite.name == name for file in files_of(suite, tree)]
        of_suite = [line for line in lines if line["suite"] == name]
        present = {line["file"] for line in of_suite}
        if ALL in present:
            total = of_suite[0]
            if len(of_suite) > 1:
                found.append(f"{name}: there are lines beside the one that sums it up.")
            elif total.get("files") != len(files):
                found.append(f"{name}: the sum is of {total.get('files')} files, not of {len(files)}.")
            elif not total.get("fewest_passed"):
                found.append(f"{name}: in a file no test has passed.")
            continue
        found += [f"{name}, {file}: is no file of that suite." for file in sorted(present - {*files})]
        for file in files:
            of_file = [line for line in of_suite if line["file"] == file]
            pieces = {line["piece"] for line in of_file}
            n_pieces = int(of_file[0]["piece"].split("/")[1]) if of_file else 1
            if pieces != {f"{i}/{n_pieces}" for i in range(1, n_pieces + 1)}:
                found.append(f"{name}, {file}: was not run to its end.")
            elif not any(line["passed"] for line in of_file):
                found.append(f"{name}, {file}: no test has passed.")
    return found


def sum_of(lines: list[dict]) -> dict:
    """A line for all runs of a suite, none of which has failed; it may be one already."""
    if lines[0]["file"] == ALL:
        return lines[0]
    lines = list({(line["file"], line["piece"]): line for line in lines}.values())
    passed: dict[str, int] = defaultdict(int)
    for line in lines:
        passed[line["file"]] += line["passed"]
    first = min(lines, key=lambda line: line["when"])
    machine = {
        key: " or ".join(sorted({line[key] for line in lines} - {""}))
        for key in ("device", "driver", "xgboost")
    }
    counts = {
        key: round(sum(line.get(key, 0) for line in lines), 1)
        for key in ("passed", "skipped", "broken", "seconds")
    }
    files = {"file": ALL, "files": len(passed), "fewest_passed": min(passed.values()), "piece": "1/1"}
    least = {"gpus": min(line["gpus"] for line in lines), "failed": [], "runs": len(lines)}
    return first | machine | files | counts | least


def git(*words: str) -> str | None:
    """What it says; None where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit_of_tree(named: str | None) -> str:
    """Of a clean tree; ends the program where there is none."""
    head = git("rev-parse", "HEAD")
    if head is None:
        return named[:12] if named else sys.exit("Here is no git: say by --commit what the tree is of.")
    if changed := git("status", "--porcelain"):
        sys.exit(f"The tree is not clean, so nothing is proved of a commit:\n{changed}")
    return head[:12]


def run(options: argparse.Namespace) -> int:
    options.commit = commit_of_tree(options.commit)
    runner = Runner(options)
    facts, writing = runner.facts(), Lock()
    same = [line for line in read_record(options.out) if all(line[k] == facts[k] for k in ("commit", "sources"))]

    def run_part(number: int, part: Part) -> bool:
        key = dict(zip(("suite", "file", "piece"), part.key(), strict=True))
        attempts = [line for line in same if key.items() <= line.items()]
        if any(not line["failed"] for line in attempts):
            return True
        line = facts | key | {"attempt": len(attempts) + 1} | runner.run(part, number)
        with writing, options.out.open("a") as out:
            out.write(shortened(line) + "\n")
        told = {name: line[name] for name in ("passed", "skipped", "seconds")}
        print(" ".join(part.key()), told, "FAILED" if line["failed"] else "", flush=True)
        return not line["failed"]

    suites = [suite for suite in SUITES if suite.name in options.suites]
    parts = [part for suite in suites for part in runner.parts(suite)]
    good = True
    for stage in sorted({part.stage() for part in parts}):
        some = [part for part in parts if part.stage() == stage]
        alone, _, racecheck = stage
        jobs = min(options.jobs, RACECHECKS * len(runner.gpus)) if racecheck else options.jobs
        with ThreadPoolExecutor(1 if alone else jobs) as pool:
            good &= all(list(pool.map(run_part, range(len(some)), some)))
    return 0 if good else 1


def check(options: argparse.Namespace) -> int:
    lines = read_record(options.record)
    wanted = [name for name in NAMES if name in (options.suites or NAMES)]
    commit = lines[0]["commit"] if lines else "HEAD"
    with tempfile.TemporaryDirectory() as folder:
        tree = ROOT
        if git("rev-parse", "HEAD"):
            tree, archive = Path(folder), f"{folder}/commit.tar"
            if git("archive", "-o", archive, commit) is None:
                sys.exit(f"The repository has no commit {commit}.")
            shutil.unpack_archive(archive, folder, filter="data")
        problems = problems_of(lines, tree, wanted)
        for file in (options.record, options.sum or options.record):
            named = re.fullmatch(r"v([\d.]+)", file.stem)
            if named and f'__version__ = "{named[1]}"' not in (tree / VERSIONS).read_text():
                problems.append(f"{file}: {commit} is not of version {named[1]}.")
    devices = {f"{line['gpus']} x {line['device']}" for line in lines if line["gpus"]}
    n_runs = sum(line.get("runs", 1) for line in lines)
    told = f"{commit} is proved by {n_runs} runs, with {', '.join(sorted(devices)) or 'no GPU'}."
    print("\n".join(problems) or told)
    if options.sum and not problems:
        suites = ([line for line in lines if line["suite"] == name] for name in wanted)
        options.sum.write_text("".join(f"{json.dumps(sum_of(some))}\n" for some in suites if some))
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run suites, and add to a record")
    running.add_argument("suites", nargs="+", choices=NAMES, metavar="SUITE", help=", ".join(NAMES))
    running.add_argument("--out", type=Path, default=Path("proof.jsonl"), help="the record")
    running.add_argument("--build", type=Path, default=ROOT / "build", help="what was built")
    running.add_argument("--python", default=sys.executable, help="interpreter with XGBoost and pytest")
    running.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    running.add_argument("--commit", help="what the tree is of, where there is no git")
    running.add_argument("--tables", type=Path, help="for parity: folder of NAME/data.npz")
    running.add_argument("--xgboost", type=Path, help="for upstream: a checkout of XGBoost")
    running.add_argument("--timeout", type=float, default=3600, help="seconds a process (default 3600)")
    checking = commands.add_parser("check", help="judge a record")
    checking.add_argument("record", type=Path)
    checking.add_argument("--suites", nargs="+", choices=NAMES, help="only these (default: all)")
    checking.add_argument("--sum", type=Path, help="where to write a line a suite, if all is proved")
    listing = commands.add_parser("files", help="print the files that pytest runs of suites")
    listing.add_argument("suites", nargs="+", choices=NAMES)
    options = parser.parse_args(arguments)
    if options.command == "files":
        rows = [s for s in SUITES if s.name in options.suites and s.by == "pytest"]
        print(";".join(sorted({file for suite in rows for file in files_of(suite)})))
        return 0
    return (run if options.command == "run" else check)(options)


if __name__ == "__main__":
    sys.exit(main())
