# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Small random problems whose sums are exact, so that trees must be equal bit for bit.

Gradients are multiples of 1/16 of a few units: whatever the order of adding, no bit is lost.
"""

import json
import os
from dataclasses import dataclass, field

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    RELEASE,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    rng_state,
    stock,
    trees_grown,
    uses_plugin,
)

N_PROBLEMS = int(os.environ.get("GPU_EXACT_FUZZ", "300"))  # of a test with random problems
FIRST = int(os.environ.get("GPU_EXACT_FUZZ_SEED", "0"))
SEEDS = range(FIRST, FIRST + N_PROBLEMS)
CHUNKS = [SEEDS[i : i + 50] for i in range(0, N_PROBLEMS, 50)]  # a test each
STRATEGIES = ["auto", "sort", "histogram"]


@dataclass
class Problem:
    """A table, the gradients of each round (or an objective), and how to train."""

    seed: int
    X: np.ndarray
    params: dict
    info: dict  # of the DMatrix
    gradients: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def dmatrix(self) -> xgb.DMatrix:
        return xgb.DMatrix(self.X, **self.info)

    def train(self, extra: dict) -> tuple[xgb.Booster, xgb.DMatrix]:
        dtrain = self.dmatrix()
        booster = xgb.Booster(self.params | extra, [dtrain])
        if not self.gradients:
            booster.update(dtrain, 0)
        for i, (grad, hess) in enumerate(self.gradients):
            booster.boost(dtrain, i, grad=grad, hess=hess)
        return booster, dtrain

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.X.shape[0]} x {self.X.shape[1]}, {self.params}"


def assert_equals_stock(
    seed: int, route: dict, *, large: bool = False, on_gpu: bool = True
) -> gpu_exact.LastRun:
    """Model, random state and margins after training are those of XGBoost's own builder.

    Every tree of the plugin's side must have grown where it should, and none of the other side's.
    Gives what is known of the plugin's last tree.
    """
    problem = make_large_problem(seed) if large else make_problem(seed)
    on_gpu = on_gpu and not left_to_xgboost(problem.params)
    rng = np.random.default_rng(seed)
    how = {
        "gpu_exact_strategy": str(rng.choice(STRATEGIES)),
        "gpu_exact_fallback": "error" if on_gpu else "warn",
    }
    context = f"{problem}, {how}"
    before = trees_grown()
    with stock():
        theirs, _ = problem.train(TAKE_OVER)
    assert_grown(before, context=context)
    ours, dtrain = problem.train(route | how)
    n_trees = ours.num_boosted_rounds() * problem.params["num_parallel_tree"]
    assert_grown(before, **{"gpu" if on_gpu else "cpu": n_trees}, context=context)
    run = gpu_exact.last_run()
    assert how["gpu_exact_strategy"] in ("auto", run.strategy) or not run.strategy, context
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert_same_model(ours, theirs, context)
    assert rng_state(ours) == rng_state(theirs), context
    assert_cache_is_right(ours, dtrain, context)
    return run


def left_to_xgboost(params: dict) -> bool:
    """Beside releases before 3.4, children without a hessian: see WhyNotOnGpu()."""
    return RELEASE < (3, 4) and params["min_child_weight"] == 0


def make_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    n_rows, n_features = _shape(rng)
    X = _table(rng, n_rows, n_features)
    return _problem(seed, rng, X, _params(rng, n_rows, n_features), int(rng.integers(1, 4)))


def make_large_problem(seed: int) -> Problem:
    """Of so many rows that nodes are not sorted outright, and of so many values that bins are ranges.

    Deep, so that later levels are.
    """
    rng = np.random.default_rng([1, seed])
    n_rows, n_features = int(rng.integers(20_000, 300_001)), int(rng.integers(1, 5))
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    if rng.random() < 0.3:
        X[:, rng.integers(n_features)] = np.round(X[:, 0], int(rng.integers(1, 4)))
    if rng.random() < 0.5:
        X[rng.random(X.shape) < rng.choice([0.02, 0.3, 0.8])] = np.nan
    params = _params(rng, n_rows, n_features)
    params |= {"max_depth": int(rng.choice([6, 9, 12])), "num_parallel_tree": 1}
    return _problem(seed, rng, X, params, 1)


def _problem(
    seed: int, rng: np.random.Generator, X: np.ndarray, params: dict, n_rounds: int
) -> Problem:
    """With labels or gradients, and now and then with weights of features."""
    n_rows, n_features = X.shape
    info: dict = {"label": np.zeros(n_rows, np.float32)}
    if rng.random() < 0.2:
        info["feature_weights"] = rng.integers(1, 5, n_features).astype(np.float32)
    if rng.random() < 0.35:
        _objective(rng, n_rows, params, info)
        return Problem(seed, X, params, info)
    params["base_score"] = 0.0
    return Problem(seed, X, params, info, [_gradients(rng, n_rows) for _ in range(n_rounds)])


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    kind = rng.integers(8)
    if kind == 0:
        return int(rng.integers(1, 6)), int(rng.integers(1, 6))
    if kind == 1:
        return int(rng.integers(10, 40)), int(rng.integers(33, 80))  # more than a word of features
    if kind == 2:
        return int(rng.integers(300, 1200)), int(rng.integers(1, 5))
    return int(rng.integers(5, 150)), int(rng.integers(1, 9))


def _table(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    shape = (n_rows, n_features)
    kind = rng.integers(4)
    if kind == 0:
        X = rng.standard_normal(shape)
    elif kind == 1:
        X = rng.integers(0, 6, shape)
    elif kind == 2:
        X = np.round(rng.standard_normal(shape), 1)
    else:  # neighbouring floats: the middle of two is one of them
        X = 1 + rng.integers(0, 4, shape) * np.finfo(np.float32).eps
    X = X.astype(np.float32)
    if rng.random() < 0.7:
        X[rng.random(shape) < rng.choice([0.02, 0.3, 0.8])] = np.nan
    if rng.random() < 0.2:
        X[:, rng.integers(n_features)] = rng.choice([3.0, np.nan])
    if rng.random() < 0.2:
        X[:, rng.integers(n_features)] *= rng.choice([0.0, -0.0, 1e30, 1e-38])
    return X


def _gradients(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    grad = rng.integers(-64, 65, n_rows) / 16
    hess = rng.integers(0 if rng.random() < 0.5 else 1, 33, n_rows) / 16
    if rng.random() < 0.1:
        hess[:] = 0
    if rng.random() < 0.2:
        hess[rng.random(n_rows) < 0.2] = -1
    return grad.astype(np.float32), hess.astype(np.float32)


def _objective(rng: np.random.Generator, n_rows: int, params: dict, info: dict) -> None:
    """One round from a margin at which the objective's gradients are dyadic."""
    if rng.random() < 0.5:
        info["label"] = (rng.integers(-32, 33, n_rows) / 16).astype(np.float32)
        params |= {"objective": "reg:squarederror", "base_score": float(rng.choice([0.0, 0.5]))}
    else:
        info["label"] = rng.integers(0, 2, n_rows).astype(np.float32)
        params |= {"objective": "binary:logistic", "base_score": 0.5}
        params["scale_pos_weight"] = float(rng.choice([1.0, 2.0, 0.25]))
    if rng.random() < 0.5:
        info["weight"] = (rng.integers(0, 9, n_rows) / 4).astype(np.float32)


def _params(rng: np.random.Generator, n_rows: int, n_features: int) -> dict:
    def pick(*values: float) -> float:
        return float(rng.choice(values))

    params = {
        "nthread": 1,
        "seed": int(rng.integers(1000)),
        "max_depth": int(rng.choice([1, 2, 3, 4, 5, 6, 9, 10])),
        "eta": pick(0.3, 1.0, 0.05),
        "reg_lambda": pick(0, 1, 0.37),
        "reg_alpha": pick(0, 0, 0.5),
        "gamma": pick(0, 0, 0.5, 3),
        "min_child_weight": pick(0, 1, 2.5),
        "max_delta_step": pick(0, 0, 0.7),
        "num_parallel_tree": int(rng.choice([1, 1, 3])),
        "subsample": pick(1, 1, 0.5),
        "colsample_bytree": pick(1, 1, 0.6),
        "colsample_bylevel": pick(1, 1, 0.6),
    }
    if rng.random() < 0.25:
        params["opt_dense_col"] = pick(0, 0.5, 0.9)
    if rng.random() < 0.25:
        params["default_direction"] = str(rng.choice(["left", "right"]))
    if rng.random() < 0.35:
        signs = rng.integers(-1, 2, rng.integers(1, n_features + 1))
        params["monotone_constraints"] = "(" + ",".join(map(str, signs)) + ")"
    # With fewer rows than columns XGBoost bars features from the root, and the plugin does not.
    if rng.random() < 0.3 and n_rows >= n_features:
        groups = [
            rng.permutation(n_features)[: rng.integers(1, 4)].tolist()
            for _ in range(rng.integers(0, 4))
        ]
        params["interaction_constraints"] = json.dumps(groups)
    return params
