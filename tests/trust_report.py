#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""What shows that the plugin can be trusted: faults, bad inputs, fuzzing, soaking, tools, mutants.

    python tests/trust_report.py --build build                                # all on a GPU
    python tests/trust_report.py --build build --steps soak,crowd             # some of them
    python tests/trust_report.py --build build --steps evidence,files,tools,mutants
    python tests/trust_report.py --check      # anywhere: is it fresh, complete, without a failure
    python tests/trust_report.py --table      # writes the table in tests/README.md

Steps: `faults_cpu`, `faults_cuda` (where gradients are), `faults_nccl`, `neighbours` and `inputs` are
end-to-end tests, by a module whose calls can be made to fail and, the last, by the one that users have;
none may be skipped, which takes two GPUs, PyTorch and CuPy. `soak` trains for long, `crowd` by many
processes that share the GPU; `kernels` counts what tests/mutants.py --run wrote of mutants of kernels.
They need a GPU. `evidence` runs the tests that plant a fault and see a report refuse it, `files` gives
the reader of symbols damaged files, `tools` runs .ci/tools, `mutants` counts what tests/mutants.py wrote
of host code. They need none, but `tools` a compiler. Steps at the same sources add up in the report that
lies at --out, which is written after each: the file may travel between machines. Only the standard
library is needed here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_report import REPORT as BESIDE
from gpu_report import (
    SANITIZERS,
    another_gpu_first,
    device_facts,
    module_hash,
    printed_counts,
    python_path,
    read_report,
    recorded_environment,
    report_parser,
    run,
    run_gtest,
    source_hash,
    tried_less,
    visible_gpus,
)
from mutants import HOST_RESULTS, KERNEL_RESULTS, explanations, file_hash
from mutants import of_today, read_results, summary

ROOT = Path(__file__).resolve().parents[1]
REPORT = "tests/trust_report.json"
ON_GPU = ("faults_cpu", "faults_cuda", "faults_nccl", "neighbours", "inputs")
ON_GPU += ("soak", "crowd", "kernels")
ON_HOST = ("evidence", "files", "tools", "mutants")
NOT_BUILT = ("kernels", "tools", "mutants")  # no binary of the build folder: theirs are told otherwise
BUILT = tuple(step for step in ON_GPU + ON_HOST if step not in NOT_BUILT)
# Tests that may be skipped, as a step names them, and why.
MAY_SKIP: dict[str, str] = {}
INPUTS = 100_000  # of each kind
RANDOM = {
    "test_random_tables": "tables",
    "test_random_parameters": "parameters",
    "test_random_configurations": "configurations",
}
DAMAGED, FILES = "ElfSymbols.Damaged", "damaged ELF files"
SOAK_TREES, CROWD = 20_000, 24
SOAK_KINDS = 72  # of both contexts
MUTANTS, KERNEL_MUTANTS = 200, 40
FAULTS = {
    "test_device_calls": "CUDA calls",
    "test_host_allocations": "allocations",
    "test_error_that_sticks": "CUDA calls, which stay broken",
}
NCCL_FAULTS = {
    "test_nccl_calls": "NCCL calls",
    "test_calls_of_one_worker": "CUDA calls and allocations of one worker",
}
OF_ONE_WORKER = ("CUDA-set-up", "CUDA-tree", "host-set-up", "host-tree")
FAULT_TABLES = (  # of e2e/test_faults.py, into whose trainings faults of each kind must be injected
    "sort",
    "histogram",
    "histogram, few rows",
    "little memory",
    "external memory",
    "one GPU twice",
    "two GPUs",
    "two GPUs, sort",
)
TOOLS_SCRIPT = ".ci/tools"
TOOLS = ("ruff", "headers", "tidy", "address", "thread", "coverage")
TESTING = ("address", "thread", "coverage")  # those that run tests
LEAST_KILLED = 0.9
# What could be claimed wrongly, the fault that a test plants, and the test that sees it refused.
PARITY, GPU_REPORT = "e2e/test_parity.py::", "e2e/test_gpu_report.py::"
TRUST_REPORT, SUITE = "e2e/test_trust_report.py::", "e2e/test_xgboost_suite.py::"
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
        "Every route and tables were compared",
        "a route was not run, and there are no tables",
        PARITY + "test_what_is_not_run_is_said",
    ),
    (
        "Lambda, alpha, min_child_weight and max_delta_step take part in tables",
        "the plugin's side lacks one of them",
        PARITY + "test_regularisation_takes_part_in_tables",
    ),
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
        "`bench_builder` is of these sources",
        "it is of others",
        GPU_REPORT + "test_benchmarks_of_other_sources_are_said",
    ),
    (
        "This report is complete",
        "each entry of a good one is spoilt in turn",
        TRUST_REPORT + "test_what_does_not_prove_is_said",
    ),
    (
        "All inputs were tried",
        "some of them are skipped",
        TRUST_REPORT + "test_what_is_skipped_was_not_tried",
    ),
    (
        "Tests tried as much as by default",
        "a variable says less",
        TRUST_REPORT + "test_variables_that_try_less_are_recorded",
    ),
    (
        "No test was left out",
        "a variable filters them",
        GPU_REPORT + "test_variables_that_leave_tests_out_are_recorded",
    ),
    (
        "All damaged files were read",
        "the test counts fewer",
        TRUST_REPORT + "test_files_are_those_that_the_test_has_counted",
    ),
    (
        "Every case of these tests passed",
        "one is skipped",
        TRUST_REPORT + "test_every_case_of_planted_faults_must_pass",
    ),
    (
        "So many processes soaked",
        "one trained the share of another, one trained nothing",
        TRUST_REPORT + "test_a_process_that_trains_twice_is_one",
    ),
    (
        "Mutants are of these sources",
        "a file has changed since",
        TRUST_REPORT + "test_mutants_of_other_files_do_not_count",
    ),
    (
        "XGBoost's own tests ran on the GPU",
        "XGBoost has no CUDA",
        SUITE + "test_an_xgboost_without_cuda_proves_nothing",
    ),
    (
        "Each report is of these sources",
        "it is of others",
        TRUST_REPORT + "test_a_stale_report_ends_its_check",
    ),
    (
        "A release has all reports",
        "one proves nothing",
        TRUST_REPORT + "test_a_release_needs_every_report",
    ),
    (
        "A release has the table of its reports",
        "it is of older ones",
        TRUST_REPORT + "test_a_release_needs_the_table_of_its_reports",
    ),
]


def problems(report: dict, current_hash: str, source: Path = ROOT) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where it proves all that it should.

    Args:
        report: What was written.
        current_hash: Of the sources.
        source: Where they are.
    """
    if report.get("source_hash") != current_hash:
        return ["The report is stale: the sources have changed since it was made."]
    found = []
    steps = report.get("steps", {})
    for name in ON_GPU + ON_HOST:
        step = steps.get(name)
        if step is None:
            found.append(f"The step `{name}` was not run.")
            continue
        device = step.get("device") or "reference builder"
        if name in ON_GPU and device.startswith("reference builder"):
            found.append(f"{name}: no NVIDIA GPU took part.")
        built_of = step.get("built_of", [])
        built_of = [built_of] if isinstance(built_of, str) else built_of
        if (name in BUILT and not built_of) or set(built_of) - {current_hash}:
            found.append(f"{name}: a binary is of other sources: build again.")
        if name == "tools" and step.get("script_hash") != file_hash(source, TOOLS_SCRIPT):
            found.append(f"tools: {TOOLS_SCRIPT} has changed since they ran.")
        if step.get("failed"):
            found.append(f"{name}: {step['failed']} failed: {', '.join(step['failures'][:10])}.")
        found += [f"{name}: {problem}" for problem in judge(name, step)]
    return found


def judge(name: str, step: dict) -> list[str]:
    skips = {test: why for test, why in step.get("skips", {}).items() if test not in MAY_SKIP}
    found = [f"{test} was skipped: {why}." for test, why in skips.items()]
    return found + tried_less(step["environment"]) + JUDGES[name](step)


def judge_faults(step: dict, wanted: list[str]) -> list[str]:
    missing = [case for case in wanted if case not in step["cases"]]
    none = [case for case, counts in step["cases"].items() if not counts.get("faults")]
    return [f"no fault was injected into {case}." for case in missing + none]


def wanted_faults(route: str) -> list[str]:
    """Cases without which the step proves nothing."""
    return [f"{test}[{table}-{route}]" for test in FAULTS for table in FAULT_TABLES]


def wanted_of_workers() -> list[str]:
    return ["test_nccl_calls", *(f"test_calls_of_one_worker[{case}]" for case in OF_ONE_WORKER)]


def cases_of(test: str, names: Iterable[str]) -> list[str]:
    """Those of a test with parameters."""
    return [name for name in names if name.split("[")[0] == test]


def judge_tried(step: dict, kinds: Iterable[str]) -> list[str]:
    return [
        f"{step['tried'].get(kind, 0)} {kind} of {INPUTS} were tried."
        for kind in kinds
        if step["tried"].get(kind, 0) < INPUTS
    ]


def judge_neighbours(step: dict) -> list[str]:
    return ["no test passed."] * (step["passed"] == 0)


def judge_soak(step: dict, processes: int = 1) -> list[str]:
    found = list(step["problems"])
    if step["trees"] < SOAK_TREES or step["gpu_trees"] != step["trees"]:
        found.append(f"{step['gpu_trees']} trees of {SOAK_TREES} grew on the GPU.")
    if step["processes"] < processes:
        found.append(f"{step['processes']} processes took part, not {processes}.")
    if step["kinds"] != SOAK_KINDS:
        found.append(f"{step['kinds']} kinds were trained, not {SOAK_KINDS}.")
    for memory in ("host_mib", "device_mib")[: 2 if processes == 1 else 1]:  # a GPU is everybody's
        n = sum(memory in sample for sample in step["memory"])
        if n < max(len(step["memory"]), 2):
            found.append(f"{memory} was measured {n} times.")
    return found


def judge_evidence(step: dict) -> list[str]:
    found = [f"{test} has not passed." for *_, test in EVIDENCE if test not in step["tests"]]
    return found + [f"{case} has passed with no module." for case in step["lacking"]]


def judge_tools(step: dict) -> list[str]:
    found = [f"{tool} failed, or was not run." for tool in TOOLS if step["exit"].get(tool) != 0]
    idle = [tool for tool in TESTING if not step["tests"].get(tool, {}).get("passed")]
    return found + [f"{tool}: no test passed." for tool in idle]


def judge_mutants(step: dict, least: int = MUTANTS, killed: float = LEAST_KILLED) -> list[str]:
    n, share = share_killed(step)
    found = [f"survived: {survivor}" for survivor in step["survivors"]]
    found += [
        f"{file} has changed: its {count} mutants want another run of tests/mutants.py."
        for file, count in step["changed"].items()
    ]
    if n < least:
        found.append(f"{n} mutants were tried, not {least}.")
    if share < killed:
        found.append(f"{step['killed']} of {n} mutants were killed, less than {killed:.0%}.")
    return found


def share_killed(step: dict) -> tuple[int, float]:
    """How many mutants there were, and the part that was killed: a reason kills none."""
    n = step["killed"] + step["survived"] + step["explained"]
    return n, step["killed"] / max(n, 1)


JUDGES: dict[str, Callable[[dict], list[str]]] = {
    "faults_cpu": lambda step: judge_faults(step, wanted_faults("cpu")),
    "faults_cuda": lambda step: judge_faults(step, wanted_faults("cuda")),
    "faults_nccl": lambda step: judge_faults(step, wanted_of_workers()),
    "neighbours": judge_neighbours,
    "inputs": lambda step: judge_tried(step, RANDOM.values()),
    "soak": judge_soak,
    "crowd": lambda step: judge_soak(step, CROWD),
    "kernels": lambda step: judge_mutants(step, KERNEL_MUTANTS, 0.0),
    "evidence": judge_evidence,
    "files": lambda step: judge_tried(step, [FILES]),
    "tools": judge_tools,
    "mutants": judge_mutants,
}


def run_tests(
    options: argparse.Namespace,
    tests: list[str],
    module: str,
    select: str = "",
    jobs: int | None = None,
    gpus: list[str] | None = None,
    **env: str,
) -> dict:
    """Counts of end-to-end tests and, by the test, of what it recorded; several at a time.

    Each time another one of `gpus` comes first, if there are some.
    """
    env = environment(options, module) | env
    jobs = jobs or options.jobs
    begin = time.monotonic()
    pytest = [options.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command = [*pytest, "--collect-only", *(["-k", select] if select else [])]
    command += [str(options.source / "tests" / test) for test in tests]
    _, output, _ = run(command, env, options.timeout, cwd=options.source)
    collected = [line for line in output.splitlines() if "::" in line]

    def run_some(turn: int, some: list[str]) -> dict:
        first = another_gpu_first(gpus or [], turn)
        step: dict = {"passed": 0, "failed": 0, "failures": [], "skips": {}, "recorded": {}}
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.xml"
            command = [*pytest, f"--junitxml={out}", "-o", "junit_family=xunit1", *some]
            status, output, _ = run(command, env | first, options.timeout, cwd=options.source)
            for case in ElementTree.parse(out).iter("testcase") if out.is_file() else ():
                add_case(step, case)
        if status != 0 and step["failed"] == 0:
            step["failed"], step["failures"] = 1, [f"pytest ended with {status}"]
        if status != 0:
            print(output[-8000:])
        return step

    shares = [share for i in range(jobs) if (share := collected[i::jobs])]
    with ThreadPoolExecutor(jobs) as pool:
        shares = shares or [command[-len(tests) :]]
        total, *others = pool.map(run_some, range(len(shares)), shares)
    for other in others:
        for name in ("passed", "failed", "failures"):
            total[name] += other[name]
        total["skips"] |= other["skips"]
        total["recorded"] |= other["recorded"]
    return total | {"seconds": round(time.monotonic() - begin, 1)}


def add_case(step: dict, case: ElementTree.Element) -> None:
    results = {c.tag: c for c in case if c.tag in ("failure", "error", "skipped")}
    name = f"{case.get('classname', '').split('.')[-1]}.{case.get('name')}"
    if results.keys() & {"failure", "error"}:
        step["failed"] += 1
        step["failures"].append(name)
    elif results:
        step["skips"][name] = results["skipped"].get("message", "")
    else:
        step["passed"] += 1
        values = {p.get("name"): int(p.get("value", 0)) for p in case.iter("property")}
        step["recorded"][name] = values


def environment(options: argparse.Namespace, module: str) -> dict:
    return os.environ | {
        "PYTHONPATH": python_path(options.source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GPU_EXACT_MODULE": module,
    }


def faults(options: argparse.Namespace, file: str, select: str = "") -> dict:
    module = find(options, "libxgboost_gpu_exact_faults.so")
    gpus = visible_gpus() if select else None  # NCCL's workers have theirs
    step = run_tests(options, [f"e2e/{file}.py"], module, select, gpus=gpus)
    recorded = {name.split(".", 1)[1]: values for name, values in step.pop("recorded").items()}
    tests = [case for test in FAULTS | NCCL_FAULTS for case in cases_of(test, recorded)]
    return {**step, "cases": {c: recorded[c] for c in tests}, "built_of": module_hash(module)}


def neighbours(options: argparse.Namespace) -> dict:
    module = find(options, "libxgboost_gpu_exact_faults.so")
    step = run_tests(options, ["e2e/test_neighbours.py"], module, jobs=1)  # one fills the GPU
    step.pop("recorded")
    return {**step, "built_of": module_hash(module)}


def inputs(options: argparse.Namespace) -> dict:
    module = find(options, "libxgboost_gpu_exact.so")
    n = str(INPUTS)
    step = run_tests(options, ["e2e/test_inputs.py"], module, gpus=visible_gpus(), GPU_EXACT_INPUTS=n)
    recorded = step.pop("recorded")  # of cases that passed; each says how many it has tried
    tried = {
        kind: sum(recorded[case].get("tried", 0) for case in cases_of(f"test_inputs.{test}", recorded))
        for test, kind in RANDOM.items()
    }
    return {**step, "tried": tried, "built_of": module_hash(module)}


def soak(options: argparse.Namespace, processes: int = 1) -> dict:
    module = find(options, "libxgboost_gpu_exact.so")
    command = [options.python, str(options.source / "tests/soak.py")]
    command += [f"--trees={SOAK_TREES}", f"--processes={processes}"]
    _, output, _ = run(command, environment(options, module), options.timeout)
    lines = output.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        failure = lines[-1] if lines else "no output"
        told = {"trees": 0, "gpu_trees": 0, "processes": 0, "kinds": 0, "memory": []}
        told |= {"device": None, "problems": [failure]}
    else:
        told = json.loads(lines[-1])
    return {**told, "built_of": module_hash(module)}


def evidence(options: argparse.Namespace) -> dict:
    tests = sorted({test for *_, test in EVIDENCE})
    modules = ("libxgboost_gpu_exact.so", "libxgboost_gpu_exact_reference.so")
    # Some need the module with the GPU's builder, others a builder: of a case any pass counts.
    passed: set[str] = set()
    seen: set[str] = set()
    failures: list[str] = []
    for name in modules:
        step = run_tests(options, tests, find(options, name))
        failures += step["failures"]
        passed |= step["recorded"].keys()
        seen |= {*step["recorded"], *step["failures"], *step["skips"]}
    names = {test: f"{Path(test.split('::')[0]).stem}.{test.split('::')[1]}" for test in tests}
    cases = {test: set(cases_of(name, seen)) for test, name in names.items()}
    return {
        "tests": [test for test in tests if cases[test] and cases[test] <= passed],
        "lacking": sorted(set().union(*cases.values()) - passed),
        "failed": len(failures),
        "failures": failures,
        "built_of": [module_hash(find(options, name)) for name in modules],
    }


def files(options: argparse.Namespace) -> dict:
    env = os.environ | {"GPU_EXACT_INPUTS": str(INPUTS)}
    command = [find(options, "gpu_exact_host_tests"), f"--gtest_filter={DAMAGED}*"]
    counts, _, output = run_gtest(command, env, options.timeout)
    if counts["failed"]:
        print(output[-4000:])
    built_of = (counts["built_of"] or ["unknown"])[0]
    step = {name: counts[name] for name in ("passed", "failed", "failures", "seconds")}
    step["skips"] = {test: "" for test in counts["skips"] if test.startswith(DAMAGED)}  # not others
    return {**step, "tried": {FILES: counts["tried"]}, "built_of": built_of}


def tools(options: argparse.Namespace) -> dict:
    step: dict = {"exit": {}, "seconds": {}, "tests": {}}
    step["script_hash"] = file_hash(options.source, TOOLS_SCRIPT)
    for tool in TOOLS:
        command = [str(options.source / TOOLS_SCRIPT), tool]
        status, output, seconds = run(command, dict(os.environ), options.timeout)
        step["exit"][tool], step["seconds"][tool] = status, seconds
        if status != 0:
            print(output[-4000:])
        if tool in TESTING:
            counts = printed_counts(output)
            step["tests"][tool] = {name: counts[name] for name in ("passed", "skipped")}
        if tool == "coverage" and status == 0:
            step["coverage"] = json.loads(output.strip().splitlines()[-1])
    return step


def mutants(options: argparse.Namespace, file: str = "mutants") -> dict:
    """Counts of results of these sources; of kernels also where they were had."""
    today, again = of_today(read_results(getattr(options, file)), options.source)
    step = summary(today, explanations(options.source))
    step["changed"] = dict(Counter(result["file"] for result in again))
    if file == "kernels":
        devices = {result.get("device") for result in today}
        step["device"] = None if None in devices else ", ".join(sorted(devices))
    return step


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
        where = {"device": facts["device"]} if name in ON_GPU else {}
        how = {"environment": recorded_environment(), "made": made}
        report["steps"][name] = where | step | how
        options.out.write_text(json.dumps(report, indent=2) + "\n")
    return report


def table(report: dict, gpu_report: dict) -> str:
    """What was tried and what came out, for tests/README.md; of a report without problems.

    Args:
        report: This one.
        gpu_report: Has what compute-sanitizer found.
    """
    steps = report["steps"]
    rows = []
    for route in ("cpu", "cuda", "nccl"):
        cases = steps[f"faults_{route}"]["cases"]
        for test, kind in (NCCL_FAULTS if route == "nccl" else FAULTS).items():
            of_kind = [cases[case] for case in cases_of(test, cases)]
            n_errors = sum(counts["errors"] for counts in of_kind)
            rows.append(
                (
                    f"faults of {kind}" + (f"; gradients: {route}" if route != "nccl" else ""),
                    f"{calls_failed(of_kind)} in turn, in {len(of_kind)} trainings; {n_errors} gave "
                    "an error, the others the right model; nothing was lost"
                    + skipped(steps[f"faults_{route}"]),
                )
            )
    n = min(steps["inputs"]["tried"].values())
    rows += [
        ("tables, parameters, configurations at random", f"{n:,} of each: a model or a clean error"),
        (
            "threads, other libraries, GPUs that are full or refuse",
            f"{steps['neighbours']['passed']} tests passed{skipped(steps['neighbours'])}",
        ),
        (
            "values, lengths, labels at the ends",
            f"{steps['inputs']['passed']} tests passed{skipped(steps['inputs'])}",
        ),
        (FILES, f"{steps['files']['tried'][FILES]:,}: addresses or a clean error"),
    ]
    for name in ("soak", "crowd"):
        soaked = steps[name]
        first, *_, last = soaked["memory"]
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
    tools, coverage = steps["tools"]["tests"], steps["tools"]["coverage"]
    for tool in SANITIZERS:
        counts = gpu_report.get("sanitizers", {}).get(tool)
        found = "not run" if counts is None else f"{counts['errors']} errors; {told(counts)}"
        if counts and gpu_report["source_hash"] != report["source_hash"]:
            found += "; stale: of other sources"
        rows.append((f"compute-sanitizer: {tool}", found))
    rows += [
        (
            "AddressSanitizer, UndefinedBehaviorSanitizer",
            f"no finding; {told(tools['address'])}",
        ),
        ("ThreadSanitizer", f"no finding; {told(tools['thread'])}"),
        ("clang-tidy, ruff, headers alone", "no finding"),
        ("lines of host code that its tests run", f"{coverage['percent']}% of {coverage['lines']:,}"),
    ]
    rows += [
        (
            f"mutants of {what}",
            f"{share_killed(counts)[1]:.0%} killed: {counts['killed']} of {share_killed(counts)[0]}; "
            f"{counts['explained']} survived with a reason, {counts['survived']} without one",
        )
        for what, counts in (
            ("host code", steps["mutants"]),
            (f"kernels, on {steps['kernels']['device']}", steps["kernels"]),
        )
    ]
    rows += [(f"{claim}; planted: {fault}", f"refused: `{test}`") for claim, fault, test in EVIDENCE]
    lines = ["| tried | came out |", "| --- | --- |"]
    return "\n".join(lines + [f"| {what} | {result} |" for what, result in rows]) + "\n"


def calls_failed(cases: list[dict]) -> str:
    """And of how many, where all cases have counted them."""
    n_faults = sum(counts["faults"] for counts in cases)
    if not all("calls" in counts for counts in cases):
        return f"{n_faults:,} calls failed"
    return f"{n_faults:,} of {sum(counts['calls'] for counts in cases):,} calls failed"


def told(counts: dict) -> str:
    return f"{counts['passed']:,} tests passed, {counts['skipped']} skipped"


def skipped(step: dict) -> str:
    return f"; {len(step['skips'])} skipped" if step["skips"] else ", none was skipped"


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
    parser.add_argument("--mutants", type=Path, help=f"results (default {HOST_RESULTS})")
    parser.add_argument("--kernels", type=Path, help=f"results (default {KERNEL_RESULTS})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a step")
    options = parser.parse_args()
    options.out = options.out or options.source / REPORT
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    options.mutants = options.mutants or options.source / HOST_RESULTS
    options.kernels = options.kernels or options.source / KERNEL_RESULTS
    return options


def main() -> int:
    options = parse()
    judged = options.check or options.table
    report = read_report(options.out) if judged else make_report(options)
    if report is None:
        return 1
    found = problems(report, source_hash(options.source), options.source)
    if options.table and not found:
        gpu_report = read_report(options.out.with_name(Path(BESIDE).name)) or {}
        write_table(options.source / "tests/README.md", table(report, gpu_report))
    print("\n".join(found) if found else "All that was tried came out right.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
