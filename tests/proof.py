#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Run suites of tests for the record, and judge whether a record proves a commit: see README.md.

    python tests/proof.py run device e2e --jobs 8 --out proof.jsonl
    python tests/proof.py check proof.jsonl --sum tests/proofs/v1.2.3.jsonl
    python tests/proof.py files e2e        # those that pytest runs, for CMake

Each process that ends adds a line: what it ran, and of each file the tests that passed and were skipped.
No line is ever replaced: a failed attempt stays.
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
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = "plugin/python/xgboost_gpu_exact/versions.py"
GPU, FAULTS = "libxgboost_gpu_exact.so", "libxgboost_gpu_exact_faults.so"
REFERENCE = "libxgboost_gpu_exact_reference.so"
TOOLS, RACECHECK, ALONE = 1, 2, 3  # stages; in the last nothing else uses the GPU


@dataclass(frozen=True)
class Suite:
    """A row of the table of suites. Several rows of one name are one suite."""

    name: str
    files: str  # patterns below tests/
    but: str = ""  # patterns of files that this row leaves out
    by: str = "pytest"  # what runs them: pytest, r, or GoogleTest: gpu_exact_<by>_tests
    pieces: int = 1  # processes that share the tests: with pytest of a file, else of all files
    module: str = GPU
    gpus: int = 1  # that it needs
    stage: int = 0  # what is in a stage runs together; tools slow kernels down, which holds others up
    tests: str = ""  # options of pytest, or GoogleTest's filter
    tool: str = ""  # of compute-sanitizer
    env: dict[str, str] = field(default_factory=dict)


def end_to_end(names: str) -> str:
    return " ".join(f"e2e/test_{name}.py" for name in names.split())


# Not with a GPU: tests of tools and of texts say the same with any module.
ONCE = end_to_end("accuracy benchmarks fetch guides parity proof scale sources versions")
APART = end_to_end("faults nccl_faults neighbours inputs soak")
WITH_GPU = end_to_end("fuzz_on_cuda nccl_faults soak")  # wholly
LOADING = end_to_end("import")  # of the module that users have, with a GPU and without
# Files of the device suite, and GoogleTest's filter for each.
DEVICE = "device/**/test_*.cu"
SIZES, OF_SIZES = "device/level/test_sizes.cu", "*Sizes.*:CheckGrid.*"  # take 130 GiB of the GPU
PLANS, OF_PLANS = "device/level/test_device_builder.cu", "DeviceBuilder.*"  # read what is free of it
WORKERS, OF_TWO = "device/workers/test_workers.cu", "WorkersOnTwoDevices.*:WorkersByNccl.*"
THREADS, OF_THREADS = "device/workers/*.cu", "Workers*:Mailbox*:SplitExchange*:ColumnPartition*"
# Random problems of a test; `check` draws fewer.
MANY = {"GPU_EXACT_FUZZ": "1000", "GPU_EXACT_DISTRIBUTED": "80", "GPU_EXACT_RANGES": "100"}


def sanitizer(tool: str, stage: int, seeds: int, pieces: int, but: str, tests: str) -> list[Suite]:
    """The device suite and some end-to-end files, with few random problems: the tool is slow."""
    name = tool.split()[0]
    how = {"stage": stage, "tool": tool, "env": {"GPU_EXACT_SANITIZER": name, "GPU_EXACT_SEEDS": f"{seeds}"}}
    # Short: every strategy, XGBoost's own kernels between, threads, odd trees.
    short = "-k 'quirks or same_model_on_a_cuda_context or between_iterations or share_a_dmatrix'"
    return [
        Suite(name, end_to_end("quirks strategy"), tests=short, **how),
        Suite(name, DEVICE, f"{SIZES} {but}", "device", pieces, tests=f"-{OF_SIZES}:{tests}", **how),
    ]


SUITES = [
    # Anywhere, without a GPU.
    Suite("host", "core/test_*.cc plan/test_*.cc host/test_*.cc plugin/test_*.cc", "", "host", 8, gpus=0),
    Suite("reference", "e2e/test_*.py", f"{WITH_GPU} {LOADING}", module=REFERENCE, gpus=0, env=MANY),
    Suite("reference", "e2e/test_updater.cc", by="e2e", module=REFERENCE, gpus=0),
    # The module that users have, where there is no GPU.
    Suite("nogpu", f"e2e/test_fallback.py {LOADING}", gpus=0, env={"CUDA_VISIBLE_DEVICES": ""}),
    Suite("package", "package/test_package.py", gpus=0),  # and a package index
    # With a GPU; what takes longest begins first.
    Suite("faults", "e2e/test_faults.py", module=FAULTS, pieces=40),
    Suite("nccl", "e2e/test_nccl_faults.py", module=FAULTS, gpus=2),
    Suite("inputs", "e2e/test_inputs.py", env={"GPU_EXACT_INPUTS": "50000"}, pieces=8),
    Suite("device", DEVICE, f"{SIZES} {PLANS}", "device", 32, tests=f"-{OF_SIZES}:{OF_PLANS}:{OF_TWO}"),
    Suite("device", PLANS, by="device", tests=OF_PLANS, stage=ALONE),
    Suite("sizes", SIZES, by="device", tests=OF_SIZES, stage=ALONE),
    Suite("peers", WORKERS, by="device", tests=OF_TWO, gpus=2),
    Suite("e2e", "e2e/test_*.py", f"{ONCE} {APART}", env=MANY),
    Suite("e2e", "e2e/test_updater.cc", by="e2e"),
    Suite("neighbours", "e2e/test_neighbours.py", module=FAULTS, gpus=2, stage=ALONE),
    Suite("soak", "e2e/test_soak.py", tests="-m soak", stage=ALONE),
    *sanitizer("memcheck", TOOLS, 2, 40, "", OF_TWO),
    *sanitizer("initcheck --force-blocking-launches", TOOLS, 2, 40, "", OF_TWO),  # else its notes are wrong
    *sanitizer("synccheck", TOOLS, 2, 40, "", OF_TWO),
    # Not of CUB's own kernels, which take most of its time, nor of workers that are threads: it can not.
    *sanitizer("racecheck --kernel-name-exclude kns=_ZN3cub", RACECHECK, 1, 100, THREADS, OF_THREADS),
    Suite("r", "r/run_tests.sh", by="r"),
    Suite("upstream", "upstream/selection.txt", tests="--hypothesis-seed=0"),
    Suite("parity", "parity.py", pieces=13),
]
NAMES = list(dict.fromkeys(suite.name for suite in SUITES))
# These say which worker or thread has which GPU. Of the others each process begins with another one.
DEALS_OUT_GPUS = re.compile("test_(clusters|devices|distributed|nccl_faults|neighbours|worker_failures)")
KEPT = re.compile(  # of the environment; anything else could make tests try less
    "PATH|HOME|LANG|TMPDIR|(LD_LIBRARY_|PYTHON)PATH|CUDA_VISIBLE_DEVICES|PIP_.*|GPU_EXACT_NCCL|"
    "GPU_EXACT_R_ROOT|.*(_NVLS|_MULTICAST).*"
)
RACECHECKS = 6  # that run at a time on a GPU: with more, all of them take longer
BROKEN = "compute-sanitizer told an error of its own"  # it does now and then, where threads use a GPU
ALL = "all"  # the part of a line that sums up a suite
COMPILED = "src include plugin/cmake plugin/load plugin/hooks plugin/train plugin/workers".split()
COMPILED_FILE = re.compile(r"(CMakeLists\.txt|/versions\.py|/[^./][^/]*\.(cc|h|cu|cuh|in|map|cmake))$")


def source_hash(root: Path | None = None) -> str:
    """SHA-256 of all that is compiled: of its lines, each a path and the SHA-256 of a file.

    plugin/cmake/WriteSourceHash.cmake computes the same for binaries: keep both alike.
    """
    root = root or ROOT
    files = [file for folder in COMPILED for file in (root / folder).rglob("*")]
    files += [*(root / "plugin").glob("*"), root / "CMakeLists.txt", root / VERSIONS]
    names = sorted(file.relative_to(root).as_posix() for file in files if file.is_file())
    texts = ((name, (root / name).read_bytes()) for name in names if COMPILED_FILE.search(name))
    lines = [f"{name} {hashlib.sha256(text).hexdigest()}\n" for name, text in texts]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def may_skip(suite: str, test: str, reason: str) -> bool:
    """Whether a line of skips.txt lets a suite skip a test for this reason."""
    lines = re.findall(r"^[^#\n].*", (ROOT / "tests/skips.txt").read_text(), re.MULTILINE)
    listed = (re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in lines)
    return any(
        suite in suites.split(",") and fnmatch.fnmatchcase(test, f"*{name}") and fnmatch.fnmatchcase(reason, why)
        for suites, name, why in listed
    )


def files_of(suite: Suite, root: Path | None = None) -> list[str]:
    """Paths below tests/."""
    tests = (root or ROOT) / "tests"
    found, left_out = (
        {file.relative_to(tests).as_posix() for pattern in patterns.split() for file in tests.glob(pattern)}
        for patterns in (suite.files, suite.but)
    )
    return sorted(found - left_out)


def parts_of(suite: Suite, root: Path | None = None) -> list[str]:
    """What a process runs each."""
    files = files_of(suite, root) if suite.by == "pytest" else [suite.by]
    return [f"{file} {i}/{suite.pieces}" for file in files for i in range(1, suite.pieces + 1)]


def call(*command: object, seconds: float = 60, **options: object) -> tuple[int, str]:
    """Status and output."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    words = ["timeout", "-k", "9", str(seconds), *map(str, command)]  # ends what the command starts, too
    done = subprocess.run(words, check=False, **pipes, **options)
    return done.returncode, done.stdout


def git(*words: str) -> str | None:
    """What it says; None where there is no git or no repository."""
    status, told = call("git", *words, cwd=ROOT)
    return None if status else told.strip()


def commit_of_tree(named: str | None) -> str:
    """Of a clean tree; ends the program where there is none."""
    head = git("rev-parse", "HEAD")
    if head is None:
        return named[:12] if named else sys.exit("Here is no git: say by --commit what the tree is of.")
    if changed := git("status", "--porcelain"):
        sys.exit(f"The tree is not clean, so nothing is proved of a commit:\n{changed}")
    return head[:12]


def visible_gpus() -> tuple[list[str], str, str]:
    """What CUDA_VISIBLE_DEVICES names, or the numbers of all; the first one's name, its driver."""
    status, told = call("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if status:
        return [], "", ""
    lines = told.strip().splitlines()
    named = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(len(lines)))))
    return list(filter(None, named.split(","))), *lines[0].split(", ")


class Runner:
    """Runs parts with what was built in a folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        import xgboost as xgb

        self.options, (self.gpus, device, driver) = options, visible_gpus()
        version = f"{xgb.__version__} {'with' if xgb.build_info()['USE_CUDA'] else 'without'} CUDA"
        self.facts = {"commit": commit_of_tree(options.commit), "sources": source_hash()[:12]}
        self.facts |= {"gpus": len(self.gpus), "device": device, "driver": driver, "xgboost": version}
        self.env = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        self.env |= {"GPU_EXACT_STRICT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.env |= {"OMP_NUM_THREADS": f"{max(1, len(os.sched_getaffinity(0)) // options.jobs)}"}
        self.env["PYTHONPATH"] = f"{ROOT}/plugin/python:{self.env.get('PYTHONPATH', '')}".rstrip(":")
        self.env |= {"GPU_EXACT_TABLES": str(options.tables), "GPU_EXACT_XGBOOST_TESTS": str(options.xgboost)}
        self.library = xgb.libpath.find_lib_path()[0]

    @functools.cache
    def built(self, name: str) -> Path:
        """A file of the build folder, which must be of these sources."""
        file = next((f for f in sorted(self.options.build.rglob(name)) if f.is_file()), None)
        if file is None:
            sys.exit(f"{self.options.build} has no {name}: build gpu_exact_tests.")
        if source_hash().encode() not in file.read_bytes():
            sys.exit(f"{name} is of other sources: build gpu_exact_tests.")
        return file.resolve()

    def command(self, suite: Suite) -> list[object]:
        """What runs a row, but for the file; ends the program where that cannot be."""
        if len(self.gpus) < suite.gpus:
            sys.exit(f"{suite.name} needs {suite.gpus} GPUs; there are {len(self.gpus)}.")
        self.built(suite.module)
        if suite.by == "r":
            return [ROOT / "tests/r/run_tests.sh", self.built(suite.module)]
        if suite.by == "pytest":
            through = ["-m", "xgboost_gpu_exact"] if suite.name == "upstream" else []
            command = [sys.executable, *through, "-m", "pytest", "-q", *shlex.split(suite.tests)]
        else:
            command = [self.built(f"gpu_exact_{suite.by}_tests"), f"--gtest_filter={suite.tests or '*'}"]
            if suite.by == "e2e":  # XGBoost's library, under the name that the program asks for
                command = ["env", f"LD_PRELOAD={self.library}", *command]
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        options = ["--target-processes", "all", "--error-exitcode", "86", "--tool", *suite.tool.split()]
        return [tool, *options, *command] if suite.tool else command

    def run(self, suite: Suite, part: str, turn: int) -> dict:
        """What a line of the record says of an attempt."""
        begin, command, (file, piece) = time.monotonic(), self.command(suite), part.rsplit(" ", 1)
        env = self.env | {"GPU_EXACT_RUN": suite.name, "GPU_EXACT_MODULE": str(self.built(suite.module))}
        number, of = map(int, piece.split("/"))
        env |= {"GPU_EXACT_PIECE": piece, "GTEST_SHARD_INDEX": f"{number - 1}", "GTEST_TOTAL_SHARDS": f"{of}"}
        env |= suite.env
        gpus = self.gpus[turn % max(len(self.gpus), 1) :] + self.gpus
        if suite.tool and gpus:  # it reports calls that try what only several GPUs have
            env["CUDA_VISIBLE_DEVICES"] = gpus[0]
        elif len(self.gpus) > 1 and suite.gpus == 1 and not DEALS_OUT_GPUS.search(file):
            env["CUDA_VISIBLE_DEVICES"] = ",".join(dict.fromkeys(gpus))
        with tempfile.TemporaryDirectory() as folder:
            xml = Path(folder, "result.xml")
            junit = {"pytest": [f"--junitxml={xml}", file], "r": []}
            command += junit.get(suite.by, [f"--gtest_output=xml:{xml}"])
            for broken in range(3):
                status, output = call(*command, seconds=self.options.timeout, env=env, cwd=ROOT / "tests")
                told = what_tool_tells(output) if suite.tool else ""
                if told != BROKEN:
                    break
            counts, failed = of_r(output) if suite.by == "r" else of_junit(xml, suite.name, file)
        failed += [f"ended with {status}"] * bool(status and not (failed and counts)) + [told] * bool(told)
        if failed:
            output = re.sub("^Extension modules: .*$", "", output, flags=re.MULTILINE)  # where Python ends
            print(f"{suite.name} {part}: {failed}\n{output[-4000:]}", flush=True)
        line = {"files": counts, "failed": [name[:80] for name in failed[:3]]}
        line |= {"broken": broken} if broken else {}  # runs that the tool broke, before this one
        return line | {"seconds": round(time.monotonic() - begin, 1)}


def what_tool_tells(output: str) -> str:
    """Nothing if compute-sanitizer found no error; BROKEN if none but its own, which are none of the program's."""
    told = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ", output)
    own = len(re.findall(r"^========= .*Internal error", output, re.MULTILINE))
    if not told or sum(map(int, told)) != own:
        return "compute-sanitizer told errors, or nothing"
    return BROKEN if own or "========= Error in printing record" in output else ""


def of_junit(xml: Path, suite: str, file: str) -> tuple[dict[str, list[int]], list[str]]:
    """By file, the numbers of tests that passed and were skipped; what failed, or may not be skipped."""
    counts, failed = {}, []
    for case in ElementTree.parse(xml).iter("testcase") if xml.is_file() else []:
        name, kinds = f"{case.get('classname')}.{case.get('name')}", {child.tag: child for child in case}
        count = counts.setdefault(case.get("file", file).rpartition("tests/")[2], [0, 0])
        count[0] += not kinds.keys() & {"failure", "error", "skipped"} and case.get("status") != "notrun"
        count[1] += "skipped" in kinds
        if kinds.keys() & {"failure", "error"}:
            failed.append(name)
        elif "skipped" in kinds:
            # GoogleTest's message begins with the place.
            reason = kinds["skipped"].get("message", "").strip().split("\n")[-1]
            failed += [] if may_skip(suite, name, reason) else [f"{name} was skipped: {reason}"]
    return counts, failed if xml.is_file() else ["wrote no results"]


def of_r(output: str) -> tuple[dict[str, list[int]], list[str]]:
    """Likewise, of what testthat prints last."""
    told = re.findall(r"\[ FAIL (\d+) \| WARN \d+ \| SKIP (\d+) \| PASS (\d+) \]", output)
    n_failed, skipped, passed = map(int, told[-1] if told else (1, 0, 0))
    skips = re.findall(r"^[•*] (.+) \(\d+\): '?(.*)$", output, re.MULTILINE)
    failed = [f"{name} was skipped: {reason}" for reason, name in skips if not may_skip("r", name, reason)]
    return {"r/run_tests.sh": [passed, skipped]}, failed + ["one failed, or no result"] * bool(n_failed)


def read_record(file: Path) -> list[dict]:
    """Its lines; ends the program where one is cut short."""
    text = file.read_text() if file.is_file() else ""
    try:
        if not f"\n{text}".endswith("\n"):
            raise ValueError(text)
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        sys.exit(f"{file} has a line that is cut short: remove it.")


def total_of(lines: list[dict]) -> dict:
    """One line for those of a suite, of each part the last one; it may be such a line already."""
    lines = list({line["part"]: line for line in lines}.values())
    files, sums = {}, Counter()
    for line in lines:
        sums.update({"runs": line.get("runs", 1), "broken": line.get("broken", 0), "seconds": line["seconds"]})
        for file, counts in line["files"].items():
            files[file] = [a + b for a, b in zip(files.get(file, (0, 0)), counts, strict=True)]
    machine = ("device", "driver", "xgboost")
    facts = {key: " or ".join(sorted({line[key] for line in lines} - {""})) for key in machine}
    least = {key: min(line[key] for line in lines) for key in ("when", "gpus")}
    return lines[0] | facts | least | sums | {"part": ALL, "files": files, "seconds": round(sums["seconds"], 1)}


def problems_of(lines: list[dict], tree: Path, wanted: list[str]) -> Iterator[str]:
    """Why lines do not prove the commit whose tree this is, a sentence each."""
    if len(commits := {line["commit"] for line in lines}) != 1:
        yield f"One commit is proved at a time, here are {', '.join(sorted(commits)) or 'none'}."
    sources = source_hash(tree)[:12]
    for line in lines:
        what = f"{line['suite']}, {line['part']}"
        if line["sources"] != sources:
            yield f"{what}: ran binaries of other sources."
        if line["failed"]:
            yield f"{what}: attempt {line['attempt']} failed: {', '.join(line['failed'])}."
        needs = max((suite.gpus for suite in SUITES if suite.name == line["suite"]), default=0)
        if line["gpus"] < needs:
            yield f"{what}: needs {needs} GPUs and had {line['gpus']}."
    for name in wanted:
        rows = [suite for suite in SUITES if suite.name == name]
        some = [line for line in lines if line["suite"] == name]
        parts = {part for suite in rows for part in parts_of(suite, tree)}
        ran = [line["part"] for line in some]
        if ran != [ALL] and parts ^ {*ran}:
            yield f"{name}: lacks these parts, or has them and should not: {', '.join(sorted(parts ^ {*ran}))}."
        files = dict.fromkeys((file for suite in rows for file in files_of(suite, tree)), [0, 0])
        counted = total_of(some)["files"] if some else {}
        yield from (f"{name}, {file}: is no file of that suite." for file in counted.keys() - files.keys())
        yield from (f"{name}, {file}: no test has passed." for file, n in (files | counted).items() if not n[0])


def run(options: argparse.Namespace) -> int:
    runner, writing = Runner(options), threading.Lock()
    same = {key: runner.facts[key] for key in ("commit", "sources")}
    before = [line for line in read_record(options.out) if same.items() <= line.items()]

    def run_part(turn: int, suite: Suite, part: str) -> bool:
        attempts = [line for line in before if (line["suite"], line["part"]) == (suite.name, part)]
        if any(not line["failed"] for line in attempts):
            return True
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")
        line = {"suite": suite.name, "part": part, "attempt": len(attempts) + 1, "when": when, **runner.facts}
        line |= runner.run(suite, part, turn)
        with writing, options.out.open("a") as out:
            print(json.dumps(line), file=out)
        passed, skipped = (sum(counts) for counts in zip((0, 0), *line["files"].values(), strict=True))
        told = f"{suite.name} {part}: {passed} passed, {skipped} skipped, {line['seconds']} s"
        print(told, "FAILED" if line["failed"] else "", flush=True)
        return not line["failed"]

    rows = [suite for suite in SUITES if suite.name in options.suites and runner.command(suite)]
    good = []
    for stage in sorted({suite.stage for suite in rows}):
        parts = [(suite, part) for suite in rows if suite.stage == stage for part in parts_of(suite)]
        most = {RACECHECK: RACECHECKS * len(runner.gpus), ALONE: 1}.get(stage, options.jobs)
        with ThreadPoolExecutor(min(options.jobs, most)) as pool:
            good += pool.map(run_part, range(len(parts)), *zip(*parts, strict=True))
    return 0 if all(good) else 1


def check(options: argparse.Namespace) -> int:
    lines = read_record(options.record)
    wanted = [name for name in NAMES if name in (options.suites or NAMES)]
    commit = lines[0]["commit"] if lines else "HEAD"
    with tempfile.TemporaryDirectory() as folder:
        archive = f"{folder}/commit.tar"
        if git("archive", "-o", archive, commit) is None:
            sys.exit(f"Here is no git, or the repository has no commit {commit}.")
        shutil.unpack_archive(archive, folder, filter="data")
        problems = list(problems_of(lines, Path(folder), wanted))
        for file in (options.record, options.sum or options.record):
            named = re.fullmatch(r"v([\d.]+)", file.stem)
            if named and f'__version__ = "{named[1]}"' not in Path(folder, VERSIONS).read_text():
                problems.append(f"{file}: {commit} is not of version {named[1]}.")
    devices = {f"{line['gpus']} x {line['device']}" for line in lines if line["gpus"]}
    n_runs = sum(line.get("runs", 1) for line in lines)
    told = f"{commit} is proved by {n_runs} runs, with {', '.join(sorted(devices)) or 'no GPU'}."
    print("\n".join(problems) or told)
    if options.sum and not problems:
        totals = [total_of([line for line in lines if line["suite"] == name]) for name in wanted]
        options.sum.write_text("".join(f"{json.dumps(line)}\n" for line in totals))
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run suites, and add to a record")
    running.add_argument("suites", nargs="+", choices=NAMES, metavar="SUITE", help=", ".join(NAMES))
    running.add_argument("--out", type=Path, default=Path("proof.jsonl"), help="the record")
    running.add_argument("--build", type=Path, default=ROOT / "build", help="what was built")
    running.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    running.add_argument("--commit", help="what the tree is of, where there is no git")
    running.add_argument("--tables", type=os.path.abspath, help="for parity: folder of NAME/data.npz")
    running.add_argument("--xgboost", type=os.path.abspath, help="for upstream: a checkout of XGBoost")
    running.add_argument("--timeout", type=float, default=3600, help="seconds a process (default 3600)")
    checking = commands.add_parser("check", help="judge a record")
    checking.add_argument("record", type=Path)
    checking.add_argument("--suites", nargs="+", choices=NAMES, help="only these (default: all)")
    checking.add_argument("--sum", type=Path, help="where to write a line a suite, if all is proved")
    listing = commands.add_parser("files", help="print the files that pytest runs of suites")
    listing.add_argument("suites", nargs="+", choices=NAMES)
    options = parser.parse_args(arguments)
    if options.command == "files":
        rows = [suite for suite in SUITES if suite.name in options.suites and suite.by == "pytest"]
        print(";".join(sorted({file for suite in rows for file in files_of(suite)})))
        return 0
    return (run if options.command == "run" else check)(options)


if __name__ == "__main__":
    sys.exit(main())
