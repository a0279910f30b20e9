#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Change the host's sources a little at a time, and see whether the tests notice.

    python tests/mutants.py --since HEAD~10 --count 50 --jobs 2

A mutant is one small change of a line that is new since a commit: a statement removed, a comparison, a
constant, a condition negated. Each is built in a copy of the tree and given to the host tests and to the
end-to-end tests of the reference module, until one fails: then it is killed. One that survives wants a
test, or a reason why nobody could notice it. `--build` names a configured build folder, from which the
copies have their Python environment and XGBoost's sources; each of several `--jobs` has its own copy.
Nothing is stored; the same --seed gives the same mutants. It ends with 1 where one has survived.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]
HOST_FILES = ("src/*.cc", "src/*.h", "plugin/*.cc", "plugin/*.h")
MUTATED = "gpu_exact_host_tests gpu_exact_fakes gpu_exact_e2e_tests xgboost_gpu_exact_reference".split()
# Nothing in them is tested without a GPU or a second process image, or they are for old systems only.
LEFT_OUT = ("src/host/source_hash.cc", "plugin/load/older_libstdcxx.cc", "src/core/platform.h")
# End-to-end tests that run what is mutated, the quickest and most telling first; what is about loading,
# devices and workers has processes of its own, slowly. Kernels' arithmetic is not in that module.
OF_CORE = ["tables", "sampling", "strategy", "last_run"]
OF_PLUGIN = (
    "quirks refusals training tables sampling objectives strategy exact_on_cuda inputs fuzz last_run "
    "persistence devices external_memory faults import fallback runner distributed worker_failures"
).split()
LIMIT_S = 200  # of a test program; the slowest takes a third of that on an idle machine
FEW = {"GPU_EXACT_FUZZ": "100", "GPU_EXACT_INPUTS": "200"}  # random problems of a test

# What stands between spaces is an operator, not a template's bracket: the sources are formatted.
OPPOSITES = [(" < ", " <= "), (" > ", " >= "), (" == ", " != "), (" && ", " || "), (" + ", " - ")]
OPPOSITES += [(" * ", " / "), (" += ", " -= "), ("++", "--"), ("true", "false")]
SWAPPED = dict(OPPOSITES) | {b: a for a, b in OPPOSITES}
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

    def __str__(self) -> str:
        becomes = self.becomes.strip() or "(removed)"
        return f"{self.file}:{self.line}: {self.text.strip()} -> {becomes}"


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


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def changed_lines(since: str) -> dict[str, set[int]]:
    """Numbers of the lines that are new since a commit, by file."""
    found: dict[str, set[int]] = {}
    file = ""
    for line in git("diff", "-U0", since, "--", *HOST_FILES):
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif place := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(place[1]), int(place[2] or 1)
            found.setdefault(file, set()).update(range(first, first + count))
    return found


def all_mutants(since: str) -> list[Mutant]:
    found = []
    for name, numbers in sorted(changed_lines(since).items()):
        if name in LEFT_OUT or not (ROOT / name).is_file():
            continue
        lines = (ROOT / name).read_text().splitlines()
        for i, text in enumerate(lines):
            before = lines[i - 1] if i else ""
            if i + 1 in numbers:
                found += [Mutant(name, i + 1, text, becomes) for becomes in changes(text, before)]
    return found


class Workshop:
    """A copy of the tree in which mutants are built and tested."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.tree, self.build = folder / "tree", folder / "build"
        self.python = build / "venv/bin/python"
        shutil.rmtree(self.tree, ignore_errors=True)
        for name in git("ls-files", "-co", "--exclude-standard"):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        sources = ";".join(map(str, build.glob("_deps/xgboost-*/cpp_src")))
        made = self.run(
            *("cmake", "-S", self.tree, "-B", self.build, "-DCMAKE_BUILD_TYPE=None"),
            *("-DCMAKE_CXX_FLAGS=-O1", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF"),
            *("-DCMAKE_CUDA_ARCHITECTURES=90", "-DGPU_EXACT_PYTHON_ENV=current"),
            *(f"-DGPU_EXACT_PYTHON={self.python}", f"-DXGBOOST_SOURCE_DIR={sources}"),
        )
        unchanged = made or self.make(*MUTATED) or self.first_failure()
        if unchanged:
            raise SystemExit(f"The tests fail without any mutant: {unchanged[-2000:]}")

    def run(self, *command: object, limit_s: float = 1800, env: dict | None = None) -> str:
        """What a command that fails has said, empty where it does not fail."""
        done = subprocess.run(
            ["timeout", "-k", "1", str(limit_s), *map(str, command)],
            cwd=self.tree / "tests",
            env=os.environ | (env or {}),
            check=False,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return (done.stdout.strip() or "no output") if done.returncode else ""

    def make(self, *targets: str) -> str:
        return self.run("cmake", "--build", self.build, "--target", *targets)

    def first_failure(self, file: str = "") -> str:
        """The test that notices a change in a file, or an empty text."""
        module = {"GPU_EXACT_MODULE": f"{self.build}/tests/libxgboost_gpu_exact_reference.so"}
        env = {"PYTHONPATH": f"{self.build}/python", "PYTHONDONTWRITEBYTECODE": "1", **module, **FEW}
        names = OF_CORE if file.startswith("src/") else OF_PLUGIN
        steps = [(f"{self.build}/tests/gpu_exact_{which}_tests",) for which in ("host", "e2e")]
        steps = [(*step, "--gtest_fail_fast", "--gtest_brief=1") for step in steps]
        steps += [
            # A test that waits for a signal is no judge on a busy machine.
            (self.python, "-m", "pytest", "-xq", f"e2e/test_{name}.py", "-k", "not interrupt")
            for name in names
        ]
        for step in steps:
            if output := self.run(*step, limit_s=LIMIT_S, env=env):
                told = re.findall(r"^(?:\[  FAILED  \]|FAILED|ERROR) (\S+)", output, re.MULTILINE)
                return told[0] if told else f"{Path(str(step[0])).name}: {output.splitlines()[-1][:200]}"
        return ""

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """killed, survived or no mutant, as it does not compile; and by which test."""
        file = self.tree / mutant.file
        whole = file.read_text()
        lines = whole.splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.becomes + "\n"
        file.write_text("".join(lines))
        try:
            if self.make(*MUTATED):
                return "no mutant", ""
            by = self.first_failure(mutant.file)
            return ("killed" if by else "survived"), by
        finally:
            file.write_text(whole)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--since", required=True, metavar="COMMIT", help="mutate lines changed since")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="a configured build")
    parser.add_argument("--work", type=Path, default=Path("/tmp/gpu_exact_mutants"))
    parser.add_argument("--count", type=int, default=50, help="mutants that compile (default 50)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    options = parser.parse_args()
    mutants = all_mutants(options.since)
    random.Random(options.seed).shuffle(mutants)
    left, counts, survivors, lock = iter(mutants), Counter(), [], Lock()

    def work(job: int) -> None:
        workshop = Workshop(options.build.resolve(), options.work / str(job))
        while True:
            with lock:
                done = counts["killed"] + counts["survived"]
                mutant = next(left, None) if done < options.count else None
            if mutant is None:
                return
            result, by = workshop.judge(mutant)
            with lock:
                counts[result] += 1
                survivors.extend([mutant] * (result == "survived"))
            print(f"{result}: {mutant} {by}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    print(*(f"survived: {mutant}" for mutant in survivors), sep="\n")
    print(f"{counts['killed']} of {counts['killed'] + counts['survived']} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
