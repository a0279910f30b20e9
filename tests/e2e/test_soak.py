# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Train for long, tables and parameters in turn: memory stays flat and each model is the first one again.

Once in one process that has the GPU for itself, once in a crowd of processes that share it: they begin
together, each trains a share of the kinds, and at least three train each kind, so that memory is compared
over nearly all of its trees. GPU_EXACT_TREES says how many trees each test grows.
"""

import gc
import hashlib
import os
import statistics
import subprocess
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from threading import Barrier

import numpy as np
import pytest
import xgboost as xgb
from oracle import TAKE_OVER, cuda_context_reason, trees_grown

pytestmark = pytest.mark.soak
N_TREES = int(os.environ.get("GPU_EXACT_TREES", 10_000))
CROWD = 24  # processes
TRAIN_EACH = 3  # processes of the crowd, each kind
BEGIN_S = 300  # for all processes to be ready
N_SAMPLES = 40  # of the memory
# What a process may hold more in the last third of its samples than in the first one, by the median; the
# first sample is taken once it has trained each of its kinds twice.
MAY_GROW = {"host": 32.0, "device": 10.0}  # MiB
MIB = 1 << 20

STRATEGIES = ("sort", "histogram")
SHAPES = {"small": (500, 6, 0.1), "tall": (60_000, 4, 0.0), "sparse": (20_000, 30, 0.8)}
PARAMS: dict[str, dict] = {
    "plain": {"max_depth": 6},
    "sampled": {"max_depth": 5, "subsample": 0.6, "colsample_bylevel": 0.5, "gamma": 0.2},
    "constrained": {"max_depth": 4, "monotone_constraints": "(1,-1,0,1)"},
    "forest": {"max_depth": 4, "num_parallel_tree": 4, "subsample": 0.7},
    "classes": {"max_depth": 3, "objective": "multi:softprob", "num_class": 3},
    "deep": {"max_depth": 14, "min_child_weight": 2},
}
ROUTES = ("cpu", "cuda")
Kind = tuple[str, str, str, str]
KINDS: list[Kind] = list(product(STRATEGIES, SHAPES, PARAMS, ROUTES))


def make_table(name: str, n_classes: int) -> xgb.DMatrix:
    n_rows, n_columns, missing = SHAPES[name]
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    X[rng.random(X.shape) < missing] = np.nan
    return xgb.DMatrix(X, y.astype(np.float32), nthread=2)


def train(kind: Kind, tables: dict[tuple, xgb.DMatrix]) -> str:
    """The hash of a model, of a table that is there or made now."""
    strategy, shape, name, device = kind
    params = TAKE_OVER | PARAMS[name] | {"device": device, "gpu_exact_strategy": strategy}
    params |= {"nthread": 2, "gpu_exact_fallback": "error"}
    key = shape, params.get("num_class", 0)
    if key not in tables:
        tables[key] = make_table(*key)
    return hashlib.sha256(xgb.train(params, tables[key], 3).save_raw()).hexdigest()


def resident() -> float:
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def on_device() -> float:
    """Of the first GPU, whoever holds it."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    query = ["nvidia-smi", f"--id={first}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return float(subprocess.run(query, check=True, capture_output=True, text=True).stdout)


def soak(kinds: list[Kind], n_trees: int, alone: bool) -> dict[Kind, str]:
    """Train so many trees of these kinds; gives the model of each."""
    begin, tables = trees_grown(), {}
    models: dict[Kind, str] = {}
    held = defaultdict(list)
    grown, next_sample, number = 0, 0, 0
    while number < 2 * len(kinds) or grown < n_trees:
        kind = kinds[number % len(kinds)]
        model = train(kind, tables)
        assert models.setdefault(kind, model) == model, f"after {grown} trees, of {kind}"
        number += 1
        now = trees_grown()
        assert now[1] == begin[1], "trees grew on the CPU"
        grown = now[0] - begin[0]
        if number % 7 == 0:
            tables.clear()  # go, too
        if number >= 2 * len(kinds) and grown >= next_sample:
            tables.clear()
            held["host"].append(resident())
            if alone:
                held["device"].append(on_device())
            next_sample = grown + n_trees // N_SAMPLES
    for where, samples in held.items():
        third = max(len(samples) // 3, 1)
        early, late = statistics.median(samples[:third]), statistics.median(samples[-third:])
        assert late - early <= MAY_GROW[where], (where, samples)
    if alone:
        others = max(held["device"]) - held["device"][-1]
        assert others <= MAY_GROW["device"], f"others used the GPU: {held['device']}"
    return models


class Together:
    """Lets the processes of a pool begin at a time."""

    barrier: Barrier

    @classmethod
    def set(cls, barrier: Barrier) -> None:
        cls.barrier = barrier


def soak_in_crowd(rank: int) -> tuple[int, dict[Kind, str]]:
    """The process that has trained, and its models."""
    n_shares = min(CROWD // TRAIN_EACH, len(KINDS))
    Together.barrier.wait(BEGIN_S)
    return os.getpid(), soak(KINDS[rank % n_shares :: n_shares], N_TREES // CROWD, alone=False)


@pytest.fixture(autouse=True)
def gpu() -> None:
    if reason := cuda_context_reason():
        pytest.skip(reason)


def test_one_process() -> None:
    soak(KINDS, N_TREES, alone=True)


def test_crowd() -> None:
    context = get_context("spawn")
    barrier = (context.Barrier(CROWD),)
    with ProcessPoolExecutor(CROWD, context, initializer=Together.set, initargs=barrier) as pool:
        results = list(pool.map(soak_in_crowd, range(CROWD)))
    assert len({process for process, _ in results}) == CROWD
    models = defaultdict(set)
    for _, of_process in results:
        for kind, model in of_process.items():
            models[kind].add(model)
    assert set(models) == set(KINDS)
    assert {kind: found for kind, found in models.items() if len(found) > 1} == {}
