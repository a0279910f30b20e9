#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Train for long, tables and parameters in turn: memory stays flat and each model is the first one again.

    python tests/soak.py --trees 20000 --seconds 500             # in one process
    python tests/soak.py --trees 20000 --processes 24            # that share the GPU

Many processes begin together; each trains a share of the kinds, and at least three train each kind, so
that memory is compared over nearly all of its trees. Run it with an interpreter that finds XGBoost and
the plugin, see tests/parity.py. The last line that it prints is the result as JSON; it ends with 1, and
says why, where something is wrong. NumPy is enough.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from threading import BrokenBarrierError

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact

MIB = 1 << 20
BEGIN_S = 300  # for all processes to be ready
# What a process may hold more in the last third of its samples than in the first one, by the median;
# the first sample is taken once it has trained each of its kinds twice.
MAY_GROW = {"host_mib": 32.0, "device_mib": 10.0}
N_SAMPLES = 40  # of the memory
TRAIN_EACH = 3  # processes, each kind
ROUTES = {"cpu": {}, "cuda": {"device": "cuda"}}
PARAMS: dict[str, dict] = {
    "plain": {"max_depth": 6},
    "sampled": {"max_depth": 5, "subsample": 0.6, "colsample_bylevel": 0.5, "gamma": 0.2},
    "constrained": {"max_depth": 4, "monotone_constraints": "(1,-1,0,1)"},
    "forest": {"max_depth": 4, "num_parallel_tree": 4, "subsample": 0.7},
    "classes": {"max_depth": 3, "objective": "multi:softprob", "num_class": 3},
    "deep": {"max_depth": 14, "min_child_weight": 2},
}
SHAPES = {"small": (500, 6, 0.1), "tall": (60_000, 4, 0.0), "sparse": (20_000, 30, 0.8)}


def make_table(name: str, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_columns, missing = SHAPES[name]
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y.astype(np.float32)


class Together:
    """Lets the processes of a pool begin at a time."""

    barrier = None

    @classmethod
    def set(cls, barrier: object) -> None:
        cls.barrier = barrier

    @classmethod
    def wait(cls) -> None:
        try:
            if cls.barrier is not None:
                cls.barrier.wait(BEGIN_S)
        except BrokenBarrierError:
            raise SystemExit(f"Not all processes were ready in {BEGIN_S} s.") from None


class Soak:
    """Kinds of trainings, the first model of each, and what memory there was."""

    def __init__(self, on_cuda: bool, allow_cpu: bool, processes: int = 1, rank: int = 0) -> None:
        self.asks_device = processes == 1  # else it is everybody's memory
        self.fallback = {"gpu_exact_fallback": "warn" if allow_cpu else "error"}
        routes = ["cpu", "cuda"] if on_cuda else ["cpu"]
        strategies = ["sort", "histogram"]
        kinds = [
            (shape, params, route, strategy)
            for strategy in strategies
            for shape in SHAPES
            for params in PARAMS
            for route in routes
        ]
        n_shares = min(max(processes // TRAIN_EACH, 1), len(kinds))
        self.kinds = kinds[rank % n_shares :: n_shares]
        self.first: dict[tuple, str] = {}
        self.samples: list[dict] = []
        self.n_trees = 0

    def train(self, kind: tuple, held: dict[str, xgb.DMatrix]) -> None:
        """A model of this kind, of a table of its own or of one that others have used too."""
        shape, name, route, strategy = kind
        params = PARAMS[name]
        key = f"{shape}{params.get('num_class', 0)}"
        dtrain = held.get(key)
        if dtrain is None:
            dtrain = xgb.DMatrix(*make_table(shape, params.get("num_class", 0)), nthread=2)
            held[key] = dtrain
        how = {"tree_method": "exact", "nthread": 2, "gpu_exact_strategy": strategy}
        booster = xgb.train(how | self.fallback | params | ROUTES[route], dtrain, 3)
        model = hashlib.sha256(booster.save_raw()).hexdigest()
        self.n_trees += booster.num_boosted_rounds() * params.get("num_parallel_tree", 1)
        self.n_trees += booster.num_boosted_rounds() * max(params.get("num_class", 1) - 1, 0)
        if self.first.setdefault(kind, model) != model:
            raise SystemExit(f"After {self.n_trees} trees the model of {kind} is another one.")

    def run(self, n_trees: int, seconds: float) -> dict:
        begin = time.monotonic()
        before = gpu_exact.last_run()
        every = max(n_trees // N_SAMPLES, 1)
        next_sample = 0
        held: dict[str, xgb.DMatrix] = {}
        for number in range(1 << 62):
            warm = number >= 2 * len(self.kinds)
            late = time.monotonic() - begin > seconds
            if warm and (self.n_trees >= n_trees or late):
                break
            self.train(self.kinds[number % len(self.kinds)], held)
            if number % 7 == 0:
                held.clear()  # tables go, too
            if warm and self.n_trees >= next_sample:
                self.sample(held)
                next_sample = self.n_trees + every
        self.sample(held)
        run = gpu_exact.last_run()
        return {
            "process": os.getpid(),
            "trees": self.n_trees,
            "gpu_trees": run.gpu_trees - before.gpu_trees,
            "seconds": round(time.monotonic() - begin, 1),
            "samples": self.samples,
            "models": self.first,
        }

    def sample(self, held: dict[str, xgb.DMatrix]) -> None:
        """Memory while nothing is held."""
        held.clear()
        gc.collect()
        with open("/proc/self/statm") as statm:
            resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        memory = {"trees": self.n_trees, "host_mib": round(resident / MIB, 1)}
        self.samples.append(memory)
        if not self.asks_device:
            return
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        query = ["nvidia-smi", f"--id={first}", "--query-gpu=memory.used"]
        query += ["--format=csv,noheader,nounits"]
        try:
            told = subprocess.run(query, check=True, capture_output=True, text=True).stdout
            memory["device_mib"] = float(told.splitlines()[0])
        except (OSError, subprocess.CalledProcessError, ValueError):
            pass  # this machine does not tell


def growth(samples: list[dict]) -> list[str]:
    """What a process held more at last than it may, a sentence each."""
    third = max(len(samples) // 3, 1)
    found = []
    for name, most in MAY_GROW.items():
        told = [sample[name] for sample in samples if name in sample]
        if len(told) < len(samples):
            continue
        early, late = statistics.median(told[:third]), statistics.median(told[-third:])
        if name == "device_mib" and max(told) - told[-1] > most:
            found.append(f"{name} was up to {max(told)}, and {told[-1]} at last: others used the GPU.")
        if late - early > most:
            found.append(
                f"{name} grew from {early} to {late} between trees {samples[0]['trees']} and "
                f"{samples[-1]['trees']}."
            )
    return found


def one(options: argparse.Namespace, rank: int = 0) -> dict:
    on_cuda = xgb.build_info()["USE_CUDA"] and not options.allow_cpu
    soak = Soak(on_cuda, options.allow_cpu, options.processes, rank)
    Together.wait()
    return soak.run(options.trees // options.processes, options.seconds)


def models_by_kind(results: list[dict]) -> dict[tuple, set[str]]:
    models = defaultdict(set)
    for result in results:
        for kind, model in result["models"].items():
            models[kind].add(model)
    return models


def processes_of(results: list[dict]) -> int:
    """How many have grown trees."""
    return len({result["process"] for result in results if result["trees"]})


def problems(results: list[dict], options: argparse.Namespace) -> list[str]:
    found = [
        f"Processes have made different models of {kind}."
        for kind, models in models_by_kind(results).items()
        if len(models) != 1
    ]
    for result in results:
        if result["gpu_trees"] != result["trees"]:
            found.append(f"{result['gpu_trees']} of {result['trees']} trees grew on the GPU.")
        found += growth(result["samples"])
    if processes_of(results) != options.processes:
        found.append(f"{processes_of(results)} processes took part, not {options.processes}.")
    told = all("device_mib" in sample for sample in results[0]["samples"])
    if options.processes == 1 and not told and not options.allow_cpu:
        found.append("nvidia-smi did not tell the device's memory.")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trees", type=int, default=20_000, help="of all processes (default 20000)")
    parser.add_argument("--seconds", type=float, default=1e9, help="end earlier after so long")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--allow-cpu", action="store_true", help="only to try this script, without a GPU"
    )
    options = parser.parse_args()
    if options.processes == 1:
        results = [one(options)]
    else:
        n, context = options.processes, get_context("spawn")
        barrier = (context.Barrier(n),)
        with ProcessPoolExecutor(n, context, initializer=Together.set, initargs=barrier) as pool:
            results = list(pool.map(one, [options] * n, range(n)))
    found = problems(results, options)
    print("\n".join(found))
    total = {key: sum(r[key] for r in results) for key in ("trees", "gpu_trees")}
    status = gpu_exact.device_status()
    print(
        json.dumps(
            {
                **total,
                "processes": processes_of(results),
                "kinds": len(models_by_kind(results)),
                "seconds": max(r["seconds"] for r in results),
                "memory": [results[0]["samples"][0], results[0]["samples"][-1]],
                "device": status.text if status.usable else None,
                "problems": found,
            }
        )
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
