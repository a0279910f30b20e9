#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Change the sources a little at a time, and see whether the tests notice.

    python tests/mutants.py --count 200 --jobs 8
    python tests/mutants.py --summary tests/mutants_host.jsonl
    python tests/mutants.py --pack FOLDER --count 40   # of kernels: one device ring each, then
    python tests/mutants.py --run FOLDER --jobs 4      # on a machine with a GPU

A mutant is one small change: a statement removed, a comparison, a constant, a condition negated. Each
is built in a copy of the tree and given to the host tests and to the end-to-end tests of the reference
module, until one fails: then it is killed. One that survives wants a test, or a line in
tests/mutants_explained.json that says why nobody could notice it. `--build` names a configured build
folder, from which the copy has its Python environment and XGBoost's sources. Each of several `--jobs`
has a copy of its own. Mutants of kernels are built as whole device rings, and run where there is a GPU.

One line a mutant is written to --out as it is done, and those that are there are not run again: a run
may be cut short and go on. The same --seed gives the same mutants. A line tells the hash of the file
that was changed: once the file is another one the mutant is run again, or forgotten if its line is gone.
So the results, which lie beside this script unless --out says otherwise, outlive changes of other files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread

from gpu_report import device_facts, printed_counts, visible_gpus

HOST_FILES = ("src/*.cc", "src/*.h", "plugin/*.cc", "plugin/*.h")
DEVICE_FILES = ("src/device/*.cu", "src/device/*/*.cu")
DEVICE_RING = "gpu_exact_device_tests"
# What has host code in it. The other ring has none, but is built with the GPU's module, kernels too.
MUTATED = ("gpu_exact_host_tests", "gpu_exact_fakes", "xgboost_gpu_exact_reference")
E2E_RING = "gpu_exact_e2e_tests"
# It watches memory that others take, too; and what takes nearly all of it.
ALONE = "DeviceBuilder.NeverTakesMoreThanPlanned:*Sizes.*"
FEW_SEEDS = "4"  # random problems of a test: a mutant that only rare ones notice has survived
EXPLAINED = "tests/mutants_explained.json"
HOST_RESULTS, KERNEL_RESULTS = "tests/mutants_host.jsonl", "tests/mutants_kernels.jsonl"
# Nothing in them is tested without a GPU or a second process image, or they are for old systems only.
LEFT_OUT = ("src/source_hash.cc", "plugin/older_libstdcxx.cc", "src/platform.h")
# End-to-end tests that run what is mutated, the quickest and most telling first. The others test
# scripts and packages. What is about loading and devices is tested by processes of their own, slowly.
E2E = (
    "quirks refusals training tables sampling objectives strategy exact_on_cuda inputs fuzz last_run "
    "persistence devices external_memory faults"
).split()
OF_PROCESSES = ["import", "fallback", "runner", *E2E]
OF_CORE = ["tables", "sampling", "strategy", "last_run"]  # kernels' arithmetic is not in that module
OF_WORKERS = ["distributed", "worker_failures"]
WORKERS = re.compile(r"plugin/(xgboost_peers|handshake|tell_all)")
ALSO_PROCESSES = re.compile(r"plugin/(row_sampler|run_log|table_cache|updater)")  # workers, and forked ones
LOADING = re.compile(
    r"plugin/(binding|booster|elf_symbols|c_api|register|device_status|default_device)"
)
LIMIT_S = 200  # of a test program; the slowest takes a third of that on an idle machine
TOO_LATE = 124  # the status of what is not done in time
RING_LIMIT_S = 200  # of the device suite with few random problems; the unchanged one must keep to it
SHARDS = 6  # of the device suite, side by side: a few tests take most of its time
OF_SEVERAL_GPUS = re.compile(r"device_peers|devices_builder|split_exchange|table_share|mailbox")
FEW = {"GPU_EXACT_FUZZ": "100", "GPU_EXACT_INPUTS": "200"}  # random problems of a test

# What stands between spaces is an operator, not a template's bracket: the sources are formatted.
SWAPPED = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " += ": " -= ",
    "++": "--",
    "true": "false",
    "false": "true",
}
STATEMENT = re.compile(r"^\s+(?:\+\+)?[\w.>\-\[\]()*]+(?:\(.*\)| [-+*/|&^%]?= [^{]*|\+\+)?;$")
CONDITION = re.compile(r"\b(if|while) \((.+)\) \{$")
NUMBER = re.compile(r"(?<![\w.])(\d+)(?:\.(\d+))?(f?)(?![\w.])")
NO_CODE = re.compile(r'^\s*(//|/?\*|#|static_assert|using|namespace|template|return;|break;|DMLC_|\.|")')


@dataclass(frozen=True)
class Mutant:
    """A line of a file, and what becomes of it."""

    file: str
    line: int  # from 1
    text: str
    becomes: str

    def key(self) -> tuple[str, str, str]:
        """What it is called in the list of explanations: lines move."""
        return self.file, self.text.strip(), self.becomes.strip()

    def is_of(self, result: dict) -> bool:
        """Whether a result is this mutant's, on whatever line it was then."""
        return self.key() == key_of(result)


def key_of(result: dict) -> tuple[str, str, str]:
    """Mutant.key() of its mutant."""
    return result["file"], result["text"].strip(), result["becomes"].strip()


def changes(text: str, before: str) -> list[str]:
    """What may become of a line.

    Args:
        text: The line.
        before: The line before it.
    """
    if NO_CODE.match(text) or not text.strip():
        return []
    code = re.sub(r'"(?:\\.|[^"\\])*"', lambda found: "\0" * len(found[0]), text)
    code = code.split("  //")[0]
    out = []
    for old, new in SWAPPED.items():
        for found in re.finditer(re.escape(old), code):
            around = code[: found.start()][-1:] + code[found.end() :][:1]
            if old.isalpha() and re.search(r"\w", around):
                continue
            out.append(text[: found.start()] + new + text[found.end() :])
    for found in NUMBER.finditer(code):
        whole, part, single = found.groups()
        number = f"{int(whole) + 1}" + (f".{part}" if part is not None else "") + single
        out.append(text[: found.start()] + number + text[found.end() :])
    condition = CONDITION.search(code)
    if condition and " = " not in condition[2] and ";" not in condition[2]:
        begin, end = condition.span(2)
        out.append(f"{text[:begin]}!({text[begin:end]}){text[end:]}")
    # A statement that begins on this line: the one before has ended.
    if STATEMENT.match(code) and before.rstrip().endswith((";", "{", "}", ":")):
        out.append("")
    return out


def all_mutants(root: Path, patterns: tuple[str, ...]) -> list[Mutant]:
    found = []
    for file in sorted(file for pattern in patterns for file in root.glob(pattern)):
        name = file.relative_to(root).as_posix()
        if name in LEFT_OUT:
            continue
        lines = file.read_text().splitlines()
        for i, text in enumerate(lines):
            before = lines[i - 1] if i else ""
            found += [Mutant(name, i + 1, text, becomes) for becomes in changes(text, before)]
    return found


def file_hash(root: Path, name: str) -> str:
    """SHA-256 of a file as it is without any mutant; empty where there is none."""
    file = root / name
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def of_today(results: list[dict], root: Path) -> tuple[list[dict], list[dict]]:
    """Results of files as they are now, and those to be had again as the file has changed since.

    Of neither are those whose mutant is no more, or was none.
    """
    now = {name: file_hash(root, name) for name in {r["file"] for r in results}}
    keys = {mutant.key() for mutant in all_mutants(root, tuple(now))}
    there = [r for r in results if key_of(r) in keys]
    today = [r for r in there if r.get("file_hash") == now[r["file"]]]
    again = [r for r in there if r not in today and r.get("result") != "no mutant"]
    return today, again


class Running:
    """Programs that run, each with a process group of its own; they do not outlive this script."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.starting = Lock()

    def run(self, *command: object, limit_s: float, **options: object) -> tuple[int, str]:
        """Status and output; TOO_LATE where it was not done in time."""
        with self.starting:
            process = subprocess.Popen(
                list(map(str, command)),
                text=True,
                errors="replace",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
            self.groups.add(process.pid)
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what it started, too
            process.communicate()
            return TOO_LATE, f"not done after {limit_s} s"
        finally:
            self.groups.discard(process.pid)
        return process.returncode, output

    def end_with_this_script(self) -> None:
        """A thread hears of signals: the main one may be about to wait, and then does not."""
        heard, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        Thread(target=lambda: self.end(os.read(heard, 1)[0]), daemon=True).start()

    def end(self, number: int) -> None:
        """By a signal of this number."""
        with self.starting:
            for group in list(self.groups):
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
            os._exit(128 + number)  # nothing is begun any more; a workshop is mended by the next run


RUNNING = Running()


class Workshop:
    """A copy of the tree in which mutants are built and tested."""

    def __init__(self, root: Path, build: Path, folder: Path) -> None:
        self.root, self.tree, self.build = root, folder / "tree", folder / "build"
        self.python = build / "venv/bin/python"
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\n")
        names = [name for name in files if name and (root / name).is_file()]
        for name in names:
            self._copy(name)
        for file in filter(Path.is_file, self.tree.rglob("*")):
            if file.relative_to(self.tree).as_posix() not in names:
                file.unlink()  # since a run before: CMake would compile it
        sources = ";".join(map(str, build.glob("_deps/xgboost-*/cpp_src")))
        self.run(
            *("cmake", "-S", self.tree, "-B", self.build, "-DCMAKE_BUILD_TYPE=None"),
            *("-DCMAKE_CXX_FLAGS=-O1", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF"),
            *("-DCMAKE_CUDA_ARCHITECTURES=90", "-DGPU_EXACT_PYTHON_ENV=current"),
            *(f"-DGPU_EXACT_PYTHON={self.python}", f"-DXGBOOST_SOURCE_DIR={sources}"),
        )

    def _copy(self, name: str) -> None:
        """Only where the content differs: what is built stays so."""
        to = self.tree / name
        if not to.is_file() or to.read_bytes() != (self.root / name).read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / name, to)
            shutil.copymode(self.root / name, to)

    def run(self, *command: object, limit_s: float = 1800, env: dict | None = None) -> str | None:
        """The output of a command that fails, None of one that does not."""
        status, output = RUNNING.run(
            *command, limit_s=limit_s, cwd=self.tree / "tests", env=os.environ | (env or {})
        )
        return output if status else None

    def make(self, *targets: str) -> str | None:
        """Those that have what is mutated in them, or other targets."""
        return self.run("cmake", "--build", self.build, "--target", *(targets or MUTATED))

    def first_failure(self, file: str = "") -> str:
        """The test that notices a change in a file, or an empty text."""
        module = {"GPU_EXACT_MODULE": f"{self.build}/tests/libxgboost_gpu_exact_reference.so"}
        env = {"PYTHONPATH": f"{self.build}/python", "PYTHONDONTWRITEBYTECODE": "1", **module, **FEW}
        names = OF_CORE if file.startswith("src/") else E2E
        names = OF_PROCESSES if not file or LOADING.match(file) else names
        names = OF_WORKERS if WORKERS.match(file) else names
        names = [*names, "fallback", *OF_WORKERS] if ALSO_PROCESSES.match(file) else names
        steps = [(f"{self.build}/tests/gpu_exact_{ring}_tests",) for ring in ("host", "e2e")]
        steps = [(*step, "--gtest_fail_fast", "--gtest_brief=1") for step in steps]
        steps += [
            (self.python, "-m", "pytest", "-xq", "-p", "no:cacheprovider", f"e2e/test_{name}.py")
            + ("-k", "not interrupt")  # waits for a signal: no judge on a busy machine
            for name in names
            if (self.tree / f"tests/e2e/test_{name}.py").is_file()
        ]
        for step in steps:
            output = self.run(*step, limit_s=LIMIT_S, env=env)
            if output is not None:
                told = re.findall(r"^(?:\[  FAILED  \]|FAILED|ERROR) (\S+)", output, re.MULTILINE)
                last = output.strip().splitlines()[-1:] or ["no output"]
                return told[0] if told else f"{Path(str(step[0])).name}: {last[0][:200]}"
        return ""

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        file = self.tree / mutant.file
        whole = file.read_text()
        lines = whole.splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.becomes + "\n"
        file.write_text("".join(lines))
        try:
            yield
        finally:
            file.write_text(whole)

    def judge(self, mutant: Mutant) -> dict:
        """killed, survived or no mutant, as it does not compile; and by which test."""
        begin = time.monotonic()
        by = ""
        of = {"file_hash": file_hash(self.tree, mutant.file)}
        with self.mutated(mutant):
            result = "no mutant" if self.make() is not None else "survived"
            if result == "survived":
                by = self.first_failure(mutant.file)
                result = "killed" if by else result
        seconds = round(time.monotonic() - begin, 1)
        return {**vars(mutant), **of, "result": result, "by": by, "seconds": seconds}


def explanations(root: Path) -> dict[tuple[str, str, str], str]:
    """Why a mutant that survives cannot be told from the original, by Mutant.key()."""
    listed = json.loads((root / EXPLAINED).read_text())
    return {(entry["file"], entry["text"], entry["becomes"]): entry["why"] for entry in listed}


def summary(results: list[dict], explained: dict[tuple[str, str, str], str]) -> dict:
    """Counts, and who survived without an explanation."""
    counts: Counter[str] = Counter()
    survivors = []
    for result in results:
        mutant = Mutant(*(result[name] for name in ("file", "line", "text", "becomes")))
        what = result["result"]
        if what == "survived":
            what = "explained" if mutant.key() in explained else "survived"
        if what == "survived":
            becomes = mutant.becomes.strip() or "(removed)"
            survivors.append(f"{mutant.file}:{mutant.line}: {mutant.text.strip()} -> {becomes}")
        counts[what] += 1
    return {name: counts[name] for name in ("killed", "explained", "survived")} | {
        "survivors": sorted(survivors)
    }


def same_mutant(one: dict, other: dict) -> bool:
    """Of the same file, too."""
    return key_of(one) == key_of(other) and one.get("file_hash") == other.get("file_hash")


def read_results(file: Path) -> list[dict]:
    """The last result of each mutant, on whatever line it was."""
    lines = file.read_text().splitlines() if file.is_file() else []
    results = map(json.loads, lines)
    return list({key_of(r): r for r in results}.values())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--source", type=Path, default=root)
    parser.add_argument("--build", type=Path, default=root / "build", help="a configured build")
    parser.add_argument("--work", type=Path, default=Path("/tmp/gpu_exact_mutants"))
    parser.add_argument("--out", type=Path, help=f"default: {HOST_RESULTS} or {KERNEL_RESULTS}")
    parser.add_argument("--count", type=int, default=200, help="mutants that compile (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", help="patterns of files to mutate")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no mutant after so long")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--summary", type=Path, metavar="JSONL", help="only say what came out")
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="build device rings of mutants")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="run what --pack has built")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    options = parser.parse_args()
    of_kernels = options.pack or options.run
    options.out = options.out or options.source / (KERNEL_RESULTS if of_kernels else HOST_RESULTS)
    return options


def main() -> int:
    options = parse()
    RUNNING.end_with_this_script()
    if options.pack:
        pack_mutants(options)
        return 0
    if options.run:
        run_packed(options)
    elif not options.summary:
        run_mutants(options)
    today, again = of_today(read_results(options.summary or options.out), options.source)
    told = summary(today, explanations(options.source))
    for file, n in Counter(result["file"] for result in again).items():
        print(f"{file} has changed: {n} of its mutants are to be run again")
    for survivor in told.pop("survivors"):
        print("survived:", survivor)
    print(", ".join(f"{count} {what}" for what, count in told.items()))
    return 1 if told["survived"] or again else 0


def in_turn(mutants: list[Mutant], again: list[dict], seed: int) -> list[Mutant]:
    """By chance, but first those to be had again."""
    random.Random(seed).shuffle(mutants)
    return sorted(mutants, key=lambda mutant: not any(mutant.is_of(r) for r in again))


def run_mutants(options: argparse.Namespace) -> None:
    """Judge mutants until enough have compiled, each job in a workshop of its own."""
    end = time.monotonic() + 60 * options.minutes
    done, again = of_today(read_results(options.out), options.source)
    if options.again:
        again += [r for r in done if r["result"] == "survived"]
        done = [r for r in done if r["result"] != "survived"]
    count = max(0 if options.again else options.count, compiled(done) + len(again))
    mutants = all_mutants(options.source, tuple(options.files or HOST_FILES))
    left = {mutant.key(): mutant for mutant in in_turn(mutants, again, options.seed)}
    for result in done:
        left.pop(key_of(result), None)
    in_line = iter(left.values())
    lock = Lock()

    def work(job: int) -> None:
        workshop = Workshop(options.source, options.build.resolve(), options.work / str(job))
        unchanged = workshop.make(*MUTATED, E2E_RING)
        unchanged = workshop.first_failure() if unchanged is None else unchanged
        if unchanged:
            raise SystemExit(f"The tests fail without any mutant: {unchanged[-2000:]}")
        while time.monotonic() < end:
            with lock:
                mutant = next(in_line, None) if compiled(done) < count else None
            if mutant is None:
                return
            result = workshop.judge(mutant)
            with lock, options.out.open("a") as out:
                done.append(result)
                out.write(json.dumps(result) + "\n")
            what = f"{result['result']} {mutant.file}:{mutant.line} {result['by']}"
            print(f"{compiled(done)}: {what}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(work, i) for i in range(options.jobs)]:
            job.result()


def compiled(results: list[dict]) -> int:
    """How many were mutants."""
    return sum(r["result"] != "no mutant" for r in results)


def pack_mutants(options: argparse.Namespace) -> None:
    """The device ring, unchanged first, then of each mutant; what they are stands beside them.

    Those with a result at --out are among the count, and need none.
    """
    end = time.monotonic() + 60 * options.minutes
    workshop = Workshop(options.source, options.build.resolve(), options.work)
    options.pack.mkdir(parents=True, exist_ok=True)
    listed = options.pack / "mutants.jsonl"
    earlier = read_results(listed)
    last = max((mutant["number"] for mutant in earlier), default=0)
    there, again = of_today([*read_results(options.out), *earlier], workshop.tree)
    packed = {key_of(mutant) for mutant in there}
    again = [mutant for mutant in again if key_of(mutant) not in packed]
    count = max(options.count, len(packed | {key_of(mutant) for mutant in again}))

    def pack(number: int) -> bool:
        if workshop.make(DEVICE_RING) is not None:
            return False
        ring = workshop.build / "tests" / DEVICE_RING
        subprocess.run(["strip", "-o", options.pack / f"{number}", ring], check=True)
        return True

    if not pack(0):
        sys.exit("The device ring does not build without any mutant.")
    mutants = all_mutants(workshop.tree, tuple(options.files or DEVICE_FILES))
    for mutant in in_turn(mutants, again, options.seed):
        if len(packed) >= count or time.monotonic() > end:
            return
        if mutant.key() in packed:
            continue
        with workshop.mutated(mutant):
            is_packed = pack(last + 1)
        if is_packed:
            last += 1
            of = {"file_hash": file_hash(workshop.tree, mutant.file), "number": last}
            packed.add(mutant.key())
            with listed.open("a") as out:
                out.write(json.dumps({**vars(mutant), **of}) + "\n")
            print(f"{len(packed)}: {mutant.file}:{mutant.line}", flush=True)


def run_packed(options: argparse.Namespace) -> None:
    """Give each mutant of a folder to its tests, several at a time, on the GPUs in turn."""
    gpus = visible_gpus()

    def judge(number: int, turn: int, file: str = "") -> tuple[str, str]:
        """What became of it and why, on one of the GPUs, or on all where it is about several."""
        command = [options.run / f"{number}", "--gtest_fail_fast", f"--gtest_filter=-{ALONE}"]
        env = os.environ | {"GPU_EXACT_SEEDS": FEW_SEEDS, "GTEST_TOTAL_SHARDS": str(SHARDS)}
        if gpus and not OF_SEVERAL_GPUS.search(file):
            env |= {"CUDA_VISIBLE_DEVICES": gpus[turn]}

        def run_part(part: int) -> tuple[int, str]:
            return RUNNING.run(
                *command, limit_s=RING_LIMIT_S, env=env | {"GTEST_SHARD_INDEX": str(part)}
            )

        with ThreadPoolExecutor(SHARDS) as parts:
            results = list(parts.map(run_part, range(SHARDS)))
        counts = printed_counts("".join(output for _, output in results))
        status, output = next((result for result in results if result[0] != 0), (0, ""))
        told = re.findall(r"^\[  FAILED  \] ([^\s,]+)", output, re.MULTILINE)
        if status == 0:
            ran = counts["passed"] > counts["skipped"]
            return "survived", "" if ran else "most were skipped: no GPU?"
        if status == TOO_LATE:
            return "killed", output
        return "killed", told[0] if told else f"it ended with {status}"

    packed = read_results(options.run / "mutants.jsonl")
    done = read_results(options.out)
    packed = [m for m in packed if not any(same_mutant(m, r) for r in done)]
    device = device_facts(None)["device"]
    with ThreadPoolExecutor(options.jobs) as pool, options.out.open("a") as out:
        turns = range(max(len(gpus), 1))
        unchanged = pool.map(judge, [0 for _ in turns], turns)
        runs = {
            pool.submit(judge, mutant["number"], mutant["number"] % len(turns), mutant["file"]): mutant
            for mutant in packed
        }
        for result, why in unchanged:
            if result == "killed" or why:
                pool.shutdown(wait=False, cancel_futures=True)
                sys.exit(f"The tests fail without any mutant: {why}")
        for run in as_completed(runs):
            mutant, (result, by) = runs[run], run.result()
            out.write(json.dumps({**mutant, "device": device, "result": result, "by": by}) + "\n")
            out.flush()
            print(f"{result} {mutant['file']}:{mutant['line']} {by}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
