#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""What shows that the plugin can be trusted: faults, bad inputs, fuzzing, soaking, tools, mutants.

    python tests/trust_report.py --build build --kernels FILE                 # all on a GPU
    python tests/trust_report.py --build build --steps soak,crowd             # some of them
    python tests/trust_report.py --build build --steps evidence,files,tools,mutants --mutants FILE
    python tests/trust_report.py --check      # anywhere: is it fresh, complete, without a failure
    python tests/trust_report.py --table      # writes the table in tests/README.md

Steps: `faults_cpu`, `faults_cuda` (where gradients are), `faults_nccl` (which takes two GPUs),
`neighbours` and `inputs` are end-to-end tests, by a module whose calls can be made to fail and, the
last, by the one that users have; `soak` trains for long, `crowd` by many processes that share the GPU;
`kernels` counts what tests/mutants.py --run wrote of mutants of kernels. They need a GPU. `evidence`
runs the tests that plant a fault and see a report refuse it, `files` gives the reader of symbols
damaged files, `tools` runs .ci/tools, `mutants` counts what tests/mutants.py wrote of host code. They
need none, but `tools` a compiler. Steps at the same sources add up in the report that lies at --out, which
is written after each: the file may travel between machines. Only the standard library is needed here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_report import (
    device_facts,
    module_hash,
    read_report,
    report_parser,
    run,
    run_gtest,
    source_hash,
)
from mutants import explanations, read_results, summary

REPORT = "tests/trust_report.json"
ON_GPU = ("faults_cpu", "faults_cuda", "faults_nccl", "neighbours", "inputs")
ON_GPU += ("soak", "crowd", "kernels")
ON_HOST = ("evidence", "files", "tools", "mutants")
INPUTS = 100_000  # of each kind
SOAK_TREES, CROWD = 20_000, 24
MUTANTS, KERNEL_MUTANTS = 200, 40
FAULTS = {
    "test_device_calls": "CUDA calls",
    "test_host_allocations": "allocations",
    "test_error_that_sticks": "CUDA calls, which stay broken",
}
NCCL_FAULTS = {"test_nccl_calls": "NCCL calls"}
TOOLS = ("ruff", "headers", "tidy", "address", "thread", "coverage")
LEAST_KILLED = 0.9
# What could be claimed wrongly, the fault that a test plants, and the test that sees it refused.
PARITY, GPU_REPORT = "e2e/test_parity.py::", "e2e/test_gpu_report.py::"
EVIDENCE = [
    (
        "Trees compared grew on the GPU",
        "no GPU is visible",
        PARITY + "test_without_a_gpu_every_problem_fails",
    ),
    (
        "Trees compared grew on the GPU",
        "XGBoost's own builder grows them",
        PARITY + "test_trees_that_grew_elsewhere_are_no_proof",
    ),
    (
        "The judge is XGBoost",
        "`take_over(False)` does nothing",
        PARITY + "test_a_judge_that_is_the_plugin_is_none",
    ),
    (
        "Compared is a module of these sources",
        "it is of others",
        PARITY + "test_a_module_of_other_sources_is_not_compared",
    ),
    ("Parity ran", "no GPU took part", PARITY + "test_no_gpu_is_no_success"),
    (
        "Reports are of these sources, without failures, with few skips",
        "each entry of a good one is spoilt in turn",
        GPU_REPORT + "test_what_does_not_prove_is_said",
    ),
    (
        "All tests ran to their end",
        "a test program ends early",
        GPU_REPORT + "test_a_binary_that_ends_early_has_failed",
    ),
    (
        "Sanitizers ran",
        "there is none",
        GPU_REPORT + "test_a_missing_sanitizer_is_no_pass",
    ),
    (
        "Times are of these sources",
        "the module is of others",
        "e2e/test_benchmarks.py::test_a_module_of_other_sources_is_not_timed",
    ),
    (
        "A time is a median",
        "it is of one tree",
        "e2e/test_benchmarks.py::test_tables_of_results",
    ),
    (
        "This report is complete",
        "each entry of a good one is spoilt in turn",
        "e2e/test_trust_report.py::test_what_does_not_prove_is_said",
    ),
]


def problems(report: dict, current_hash: str) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where it proves all that it should."""
    found = []
    if report.get("source_hash") != current_hash:
        found.append("The report is stale: the sources have changed since it was made.")
    steps = report.get("steps", {})
    for name in ON_GPU + ON_HOST:
        step = steps.get(name)
        if step is None:
            found.append(f"The step `{name}` was not run.")
            continue
        if name in ON_GPU and not step.get("device"):
            found.append(f"{name}: no NVIDIA GPU took part.")
        if step.get("built_of", current_hash) != current_hash:
            found.append(f"{name}: a binary is of other sources: build again.")
        if step.get("failed"):
            found.append(f"{name}: {step['failed']} failed: {', '.join(step['failures'][:10])}.")
        found += [f"{name}: {problem}" for problem in JUDGES[name](step)]
    return found


def judge_faults(step: dict, kinds: dict[str, str] = FAULTS) -> list[str]:
    return [
        f"no fault was injected into {kind}."
        for kind in kinds.values()
        if not step["injected"].get(kind, {}).get("faults")
    ]


def judge_inputs(step: dict) -> list[str]:
    few = step["inputs"] < INPUTS or step["passed"] == 0
    return [f"{step['inputs']} inputs of {INPUTS} were tried, {step['passed']} passed."] * few


def judge_neighbours(step: dict) -> list[str]:
    few = step["passed"] < 2 * max(step["skipped"], 1)
    return [f"{step['skipped']} tests were skipped, {step['passed']} passed."] * few


def judge_soak(step: dict, processes: int = 1) -> list[str]:
    found = list(step["problems"])
    if step["trees"] < SOAK_TREES or step["gpu_trees"] != step["trees"]:
        found.append(f"{step['gpu_trees']} trees of {SOAK_TREES} grew on the GPU.")
    if step["processes"] < processes:
        found.append(f"{step['processes']} processes took part, not {processes}.")
    return found


def judge_evidence(step: dict) -> list[str]:
    return [f"{test} has not passed." for *_, test in EVIDENCE if test not in step["tests"]]


def judge_tools(step: dict) -> list[str]:
    return [f"{tool} failed, or was not run." for tool in TOOLS if step["exit"].get(tool) != 0]


def judge_mutants(step: dict, least: int = MUTANTS) -> list[str]:
    n = step["killed"] + step["survived"]
    found = [f"survived: {survivor}" for survivor in step["survivors"]]
    if n + step["explained"] < least or step["killed"] < LEAST_KILLED * n:
        found.append(f"{step['killed']} of {n} killed: fewer than {LEAST_KILLED:.0%}, or of {least}.")
    return found


JUDGES: dict[str, Callable[[dict], list[str]]] = {
    "faults_cpu": judge_faults,
    "faults_cuda": judge_faults,
    "faults_nccl": lambda step: judge_faults(step, NCCL_FAULTS),
    "neighbours": judge_neighbours,
    "inputs": judge_inputs,
    "soak": judge_soak,
    "crowd": lambda step: judge_soak(step, CROWD),
    "kernels": lambda step: judge_mutants(step, KERNEL_MUTANTS),
    "evidence": judge_evidence,
    "files": judge_inputs,
    "tools": judge_tools,
    "mutants": judge_mutants,
}


def run_tests(
    options: argparse.Namespace,
    tests: list[str],
    module: str,
    select: str = "",
    jobs: int | None = None,
    **env: str,
) -> dict:
    """Counts of end-to-end tests and, by the test, of what it recorded; several at a time."""
    env = environment(options, module) | env
    jobs = jobs or options.jobs
    begin = time.monotonic()
    pytest = [options.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command = [*pytest, "--collect-only", *(["-k", select] if select else [])]
    command += [str(options.source / "tests" / test) for test in tests]
    _, output, _ = run(command, env, options.timeout, cwd=options.source)
    collected = [line for line in output.splitlines() if "::" in line]

    def run_some(some: list[str]) -> dict:
        step: dict = {"passed": 0, "failed": 0, "skipped": 0, "failures": [], "recorded": {}}
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.xml"
            command = [*pytest, f"--junitxml={out}", "-o", "junit_family=xunit1", *some]
            status, output, _ = run(command, env, options.timeout, cwd=options.source)
            for case in ElementTree.parse(out).iter("testcase") if out.is_file() else ():
                add_case(step, case)
        if status != 0 and step["failed"] == 0:
            step["failed"], step["failures"] = 1, [f"pytest ended with {status}"]
        if status != 0:
            print(output[-8000:])
        return step

    shares = [share for i in range(jobs) if (share := collected[i::jobs])]
    with ThreadPoolExecutor(jobs) as pool:
        first, *others = pool.map(run_some, shares or [command[-len(tests) :]])
    for other in others:
        for name in ("passed", "failed", "skipped", "failures"):
            first[name] += other[name]
        first["recorded"] |= other["recorded"]
    return first | {"seconds": round(time.monotonic() - begin, 1)}


def add_case(step: dict, case: ElementTree.Element) -> None:
    result = next((c.tag for c in case if c.tag in ("failure", "error", "skipped")), "passed")
    result = {"failure": "failed", "error": "failed"}.get(result, result)
    step[result] += 1
    name = f"{case.get('classname', '').split('.')[-1]}.{case.get('name')}"
    if result == "failed":
        step["failures"].append(name)
    if result == "passed":
        values = {p.get("name"): int(p.get("value", 0)) for p in case.iter("property")}
        step["recorded"][name] = values


def environment(options: argparse.Namespace, module: str) -> dict:
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(options.source / "plugin/python"), os.environ.get("PYTHONPATH")])
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GPU_EXACT_MODULE": module,
    }


def faults(options: argparse.Namespace, file: str, select: str = "") -> dict:
    module = find(options, "libxgboost_gpu_exact_faults.so")
    step = run_tests(options, [f"e2e/{file}.py"], module, select=select)
    injected: dict[str, Counter[str]] = {}
    for name, values in step.pop("recorded").items():
        kind = (FAULTS | NCCL_FAULTS).get(name.split(".")[1].split("[")[0])
        if kind is not None:
            injected.setdefault(kind, Counter()).update(values)
    return {**step, "injected": injected, "built_of": module_hash(module)}


def neighbours(options: argparse.Namespace) -> dict:
    module = find(options, "libxgboost_gpu_exact_faults.so")
    step = run_tests(options, ["e2e/test_neighbours.py"], module, jobs=1)  # one fills the GPU
    step.pop("recorded")
    return {**step, "built_of": module_hash(module)}


def inputs(options: argparse.Namespace) -> dict:
    module = find(options, "libxgboost_gpu_exact.so")
    step = run_tests(options, ["e2e/test_inputs.py"], module, GPU_EXACT_INPUTS=str(INPUTS))
    step.pop("recorded")
    return {**step, "inputs": INPUTS, "built_of": module_hash(module)}


def soak(options: argparse.Namespace, processes: int = 1) -> dict:
    module = find(options, "libxgboost_gpu_exact.so")
    command = [options.python, str(options.source / "tests/soak.py")]
    command += [f"--trees={SOAK_TREES}", f"--processes={processes}"]
    _, output, _ = run(command, environment(options, module), options.timeout)
    lines = output.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        failure = lines[-1] if lines else "no output"
        told = {"trees": 0, "gpu_trees": 0, "processes": 0, "problems": [failure]}
    else:
        told = json.loads(lines[-1])
    return {**told, "built_of": module_hash(module)}


def evidence(options: argparse.Namespace) -> dict:
    tests = sorted({test for *_, test in EVIDENCE})
    # Some need the module with the GPU's builder, others a builder: of a test any pass counts.
    passed: set[str] = set()
    failures: list[str] = []
    for name in ("libxgboost_gpu_exact.so", "libxgboost_gpu_exact_reference.so"):
        step = run_tests(options, tests, find(options, name))
        failures += step["failures"]
        for test in tests:
            file, function = Path(test.split("::")[0]).stem, test.split("::")[1]
            if any(re.match(rf"{file}\.{function}(\[|$)", case) for case in step["recorded"]):
                passed.add(test)
    return {"tests": sorted(passed), "failed": len(failures), "failures": failures}


def files(options: argparse.Namespace) -> dict:
    env = os.environ | {"GPU_EXACT_INPUTS": str(INPUTS)}
    command = [find(options, "gpu_exact_host_tests"), "--gtest_filter=ElfSymbols.Damaged*"]
    counts, _, output = run_gtest(command, env, options.timeout)
    if counts["failed"]:
        print(output[-4000:])
    built_of = counts.pop("built_of")[0] if counts["built_of"] else "unknown"
    counts["skipped"] = 0  # those that were not asked for
    counts.pop("skips")
    return {**counts, "inputs": INPUTS, "built_of": built_of}


def tools(options: argparse.Namespace) -> dict:
    step: dict = {"exit": {}, "seconds": {}}
    for tool in TOOLS:
        command = [str(options.source / ".ci/tools"), tool]
        status, output, seconds = run(command, dict(os.environ), options.timeout)
        step["exit"][tool], step["seconds"][tool] = status, seconds
        if status != 0:
            print(output[-4000:])
        if tool == "coverage" and status == 0:
            step["coverage"] = json.loads(output.strip().splitlines()[-1])
    return step


def mutants(options: argparse.Namespace, file: str = "mutants") -> dict:
    return summary(read_results(getattr(options, file)), explanations(options.source))


STEPS: dict[str, Callable[[argparse.Namespace], dict]] = {
    "faults_cpu": lambda options: faults(options, "test_faults", "cpu"),
    "faults_cuda": lambda options: faults(options, "test_faults", "cuda"),
    "faults_nccl": lambda options: faults(options, "test_nccl_faults"),
    "neighbours": neighbours,
    "inputs": inputs,
    "soak": soak,
    "crowd": lambda options: soak(options, CROWD),
    "kernels": lambda options: mutants(options, "kernels"),
    "evidence": evidence,
    "files": files,
    "tools": tools,
    "mutants": mutants,
}


def find(options: argparse.Namespace, name: str) -> str:
    found = sorted(f for f in options.build.rglob(name) if f.is_file()) if options.build else []
    if not found:
        sys.exit(f"found no {name}: build the tests and give --build")
    return str(found[0].resolve())


def make_report(options: argparse.Namespace) -> dict:
    report = {"source_hash": source_hash(options.source), "steps": {}}
    if options.out.is_file():
        earlier = json.loads(options.out.read_text())
        if earlier.get("source_hash") == report["source_hash"]:
            report = earlier
    facts = device_facts(None)
    for name in options.steps:
        step = STEPS[name](options)
        made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        report["steps"][name] = {**step, "made": made}
        if name in ON_GPU:
            report["steps"][name]["device"] = facts["device"]
        options.out.write_text(json.dumps(report, indent=2) + "\n")
    return report


def table(report: dict) -> str:
    """What was tried and what came out, for tests/README.md; of a report without problems."""
    steps = report["steps"]
    rows = [
        (
            f"faults of {kind}" + (f"; gradients: {route}" if route != "nccl" else ""),
            f"{counts['faults']} failed in turn, {counts['errors']} gave an error, the others the "
            "right model; nothing was lost",
        )
        for route in ("cpu", "cuda", "nccl")
        for kind, counts in steps[f"faults_{route}"]["injected"].items()
    ]
    n = steps["inputs"]["inputs"]
    rows += [
        ("tables, parameters, configurations at random", f"{n:,} of each: a model or a clean error"),
        (
            "threads, other libraries, GPUs that are full or refuse",
            f"{steps['neighbours']['passed']} tests passed",
        ),
        ("values, lengths, labels at the ends", f"{steps['inputs']['passed']} tests passed"),
        ("damaged ELF files", f"{steps['files']['inputs']:,}: addresses or a clean error"),
    ]
    for name in ("soak", "crowd"):
        soaked = steps[name]
        first, last = soaked["memory"]
        held = ", ".join(
            f"{memory.removesuffix('_mib')} {first[memory]:,.0f} then {last[memory]:,.0f} MiB"
            for memory in ("host_mib", "device_mib")
            if memory in first
        )
        rows.append(
            (
                f"{name}: {soaked['trees']:,} trees, {soaked['processes']} processes",
                f"{soaked['kinds']} kinds, each model as the first; {held}",
            )
        )
    coverage = steps["tools"]["coverage"]
    rows += [
        ("AddressSanitizer, UndefinedBehaviorSanitizer, ThreadSanitizer", "no finding"),
        ("clang-tidy, ruff, headers alone", "no finding"),
        ("lines of host code that its tests run", f"{coverage['percent']}% of {coverage['lines']:,}"),
    ]
    rows += [
        (
            f"mutants of {what}",
            f"{counts['killed']} killed, {counts['survived']} survived without a reason, "
            f"{counts['explained']} with one",
        )
        for what, counts in (("host code", steps["mutants"]), ("kernels", steps["kernels"]))
    ]
    rows += [(f"{claim}; planted: {fault}", f"refused: `{test}`") for claim, fault, test in EVIDENCE]
    lines = ["| tried | came out |", "| --- | --- |"]
    return "\n".join(lines + [f"| {what} | {result} |" for what, result in rows]) + "\n"


def write_table(readme: Path, text: str) -> None:
    """Between the two marks."""
    before, rest = readme.read_text().split("<!-- trust -->\n")
    _, after = rest.split("<!-- end of trust -->\n")
    readme.write_text(f"{before}<!-- trust -->\n{text}<!-- end of trust -->\n{after}")


def parse() -> argparse.Namespace:
    parser = report_parser(__doc__, REPORT)
    parser.add_argument("--table", action="store_true", help="write the table in tests/README.md")
    parser.add_argument("--build", type=Path, help="folder with the binaries")
    parser.add_argument("--python", default=sys.executable, help="interpreter with a stock XGBoost")
    parser.add_argument(
        "--steps",
        type=lambda text: text.split(","),
        default=list(ON_GPU),
        help=f"some of {','.join(ON_GPU + ON_HOST)} (default {','.join(ON_GPU)})",
    )
    parser.add_argument("--mutants", type=Path, help="what tests/mutants.py wrote")
    parser.add_argument("--kernels", type=Path, help="what tests/mutants.py --run wrote")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a step")
    options = parser.parse_args()
    options.out = options.out or options.source / REPORT
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    for name in ("mutants", "kernels"):
        if name in options.steps and not (options.check or options.table or getattr(options, name)):
            parser.error(f"--{name} names what tests/mutants.py wrote")
    return options


def main() -> int:
    options = parse()
    judged = options.check or options.table
    report = read_report(options.out) if judged else make_report(options)
    if report is None:
        return 1
    found = problems(report, source_hash(options.source))
    if options.table and not found:
        write_table(options.source / "tests/README.md", table(report))
    print("\n".join(found) if found else "All that was tried came out right.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
