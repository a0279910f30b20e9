# Copyright 2026, the gpu_exact contributors
"""What a script that says nothing of a GPU pays for it: one JSON line a shape.

    cmake --build build --target xgboost_fixed_tree
    export GPU_EXACT_MODULE=$PWD/build/python/xgboost_gpu_exact/libxgboost_gpu_exact.so
    python benchmarks/cpu_context.py --fixed build/benchmarks/libxgboost_fixed_tree.so

Without `device="cuda"` XGBoost computes gradients and predictions on the host, whatever grows the
trees. `own_ms` is that part alone: rounds in which the plugin gives the same tree again, and the
leaves of its rows. `beyond` is what `device="cuda"` would save, in parts of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cases
import measure
import numpy as np
import train
from arguments import above_zero, folder, words
from cases import Case
from systems import SYSTEMS, Laps

import device

SHAPES = ["higgs", "yltr", "epsilon", "year", "covtype", "airline", "criteo", "tall", "small"]
CUDA, CPU = "gpu_exact_cuda", "gpu_exact_cpu_context"
RUNS = {"cuda_ms": CUDA, "cpu_ms": CPU, "own_ms": CPU}  # the last one with the fixed tree


def work(job: dict[str, Any]) -> float:
    """Milliseconds a tree of one system, in this process."""
    case = Case(**job["case"])
    system = SYSTEMS[job["system"]]("auto")
    measure.check_module(job["source_hash"])
    laps = Laps(job["iterations"], job["budget_s"], warm_up=2)
    system.load(cases.load(Path(job["folder"])), case, job["threads"])
    system.train(laps, lambda: None)
    return round(1e3 * float(np.median(laps.last)) / case.classes, 4)


def run_apart(job: dict[str, Any], module: Path | None, timeout_s: float) -> float | None:
    """work() in a process of its own, with another module where one is given; None where it fails."""
    env = dict(os.environ) | ({"GPU_EXACT_MODULE": str(module)} if module else {})
    command = [sys.executable, __file__, "--work", json.dumps(job)]
    try:
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None


def run_shape(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """A line; without times that failed."""
    table = case.make()
    line = {"shape": case.name, "rows": table.X.shape[0], "columns": table.X.shape[1]}
    where = options.tables or cases.room_for(cases.table_bytes(table))
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=where) as folder:
        cases.save(table, Path(folder))
        del table
        job = {"case": case._asdict(), "folder": folder, "threads": options.threads}
        job |= {"iterations": options.iterations, "budget_s": options.budget}
        job |= {"source_hash": train.source_hash()}
        for name, system in RUNS.items():
            module = options.fixed if name == "own_ms" else None
            line[name] = run_apart(job | {"system": system}, module, options.timeout)
    if all(line[name] is not None for name in RUNS):
        line["beyond"] = round((line["cpu_ms"] - line["cuda_ms"]) / line["own_ms"], 3)
    return line | {"device": options.device_name, "source_hash": train.source_hash()}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--fixed", type=Path, required=True, metavar="MODULE", help="libxgboost_fixed_tree.so")
    shapes = ",".join(SHAPES)
    add("--shapes", type=words, default=SHAPES, help=f"by comma (default {shapes})")
    add("--iterations", type=above_zero(int), default=60, help="rounds at most (default 60)")
    add("--budget", type=float, default=2.0, metavar="SECONDS", help="of training (default 2)")
    add("--timeout", type=above_zero(float), default=120.0, metavar="SECONDS", help="a run (default 120)")
    add("--threads", type=above_zero(int), default=device.cpu_cores(), help="default: cores")
    add("--tables", type=folder, metavar="FOLDER", help="for tables (default: memory, else /tmp)")
    add("--out", type=Path, metavar="FILE", help="appended to, beside standard output")
    options = parser.parse_args()
    options.fixed = options.fixed.resolve()
    if not options.fixed.is_file():
        parser.error(f"there is no `{options.fixed}`: build the target xgboost_fixed_tree")
    try:
        options.cases = cases.select(options.shapes)
        options.device_name = f"{device.Gpu().name()}, {options.threads} CPU cores"
    except ValueError as error:
        parser.error(str(error))
    except device.NoGpu as error:
        parser.error(f"{error}. Without a GPU there is nothing to compare.")
    return options


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        print(work(json.loads(sys.argv[2])))
        return 0
    options = parse()
    n_failed = 0
    for case in options.cases:
        line = run_shape(case, options)
        n_failed += "beyond" not in line
        print(json.dumps(line), flush=True)
        if options.out:
            with options.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
