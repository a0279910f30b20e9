# Copyright 2026, the gpu_exact contributors
"""`grow_policy="lossguide"`: XGBoost's exact builder ignores it, so `hist` on the CPU is the judge.

On tables of at most `max_bin` distinct values a column `hist` sees every split that there is. It then
differs in thresholds (the next value of the table, not the middle), in the default direction of nodes
without missing values, and in the leaves' base weights, which have the learning rate in them. Labels
have thousands of values, as of two equal splits each may take another one.

GPU_EXACT_FUZZ sets half of how many problems (1000), GPU_EXACT_FUZZ_SEED where the seeds begin (0).
"""

import json

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    BY_NAME,
    NO_GPU,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    rng_state,
    run_python,
    stock,
    trees,
    trees_grown,
)
from problems import FIRST, N_PROBLEMS, STRATEGIES

pytestmark = [
    pytest.mark.usefixtures("builder"),
    pytest.mark.filterwarnings("ignore:.*lossguide"),
]
LEAF_WISE = {"grow_policy": "lossguide", "nthread": 1}
HIST = {"tree_method": "hist", "device": "cpu", "max_bin": 256}
ALIKE = ("left_children", "right_children", "split_indices", "loss_changes", "sum_hessian")


def few_values(
    rng: np.random.Generator, n_rows: int, n_features: int, missing: float = 0.4
) -> np.ndarray:
    """Every column has two distinct values or more, and in every second table some are missing."""
    X = np.empty((n_rows, n_features), np.float32)
    for f in range(n_features):
        values = np.unique((10 * rng.standard_normal(rng.choice([4, 6, 20, 90, 200]))).round(3))
        X[:, f] = values[rng.integers(0, len(values), n_rows)]
        X[:2, f] = values[:2]
        if rng.random() < missing:
            X[2:, f][rng.random(n_rows - 2) < rng.choice([0.1, 0.6])] = np.nan
    return X


def gradients(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Their sums are exact, and seldom equal."""
    grad = (rng.integers(-4000, 4001, n_rows) / 256).astype(np.float32)
    hess = rng.integers(1, 33, n_rows) / 16 if rng.random() < 0.3 else np.ones(n_rows)
    return grad, hess.astype(np.float32)


def draw_params(rng: np.random.Generator, n_features: int) -> dict:
    def pick(*values: float) -> float:
        return float(rng.choice(values))

    params = LEAF_WISE | {
        "seed": int(rng.integers(1000)),
        "base_score": 0.0,
        "max_leaves": int(rng.choice([0, 1, 2, 3, 5, 9, 17, 31, 40])),
        "max_depth": int(rng.choice([0, 0, 0, 2, 3, 4, 6])),
        "gamma": pick(0, 0, 0, 20, 300),
        "eta": pick(1, 0.3),
        "reg_lambda": pick(0, 1, 4),
        "reg_alpha": pick(0, 0, 0.5),
        "min_child_weight": pick(0, 1, 5),
        "num_parallel_tree": int(rng.choice([1, 1, 2])),
        "colsample_bytree": pick(1, 1, 0.6),
        "colsample_bylevel": pick(1, 1, 0.6),
    }
    if rng.random() < 0.3:  # what gains nothing gains what rounding leaves: equal, and in any order
        params |= {"max_delta_step": 0.7, "gamma": pick(2, 20)}
    if rng.random() < 0.3:
        signs = rng.integers(-1, 2, rng.integers(1, n_features + 1))
        params["monotone_constraints"] = "(" + ",".join(map(str, signs)) + ")"
    if rng.random() < 0.3:
        groups = [
            rng.permutation(n_features)[: rng.integers(1, 4)].tolist()
            for _ in range(rng.integers(1, 4))
        ]
        params["interaction_constraints"] = json.dumps(groups)
    return params


def boost(params: dict, X: np.ndarray, rounds: list) -> tuple[xgb.Booster, xgb.DMatrix]:
    dtrain = xgb.DMatrix(X, np.zeros(len(X)), nthread=1)
    booster = xgb.Booster(params, [dtrain])
    for i, (grad, hess) in enumerate(rounds):
        booster.boost(dtrain, i, grad=grad, hess=hess)
    return booster, dtrain


def hist(params: dict, X: np.ndarray, rounds: list) -> xgb.Booster:
    with stock():
        return boost(params | HIST, X, rounds)[0]


def assert_as_hist(ours: xgb.Booster, judge: xgb.Booster, X: np.ndarray, context: object) -> int:
    """The same nodes, their rows, gains and leaves; gives the number of splits."""
    n_splits = 0
    for a, b in zip(trees(ours), trees(judge), strict=True):
        for key in ALIKE:
            assert a[key] == b[key], (key, context)
        is_split = np.array(b["left_children"]) >= 0
        for key, where in (("split_conditions", ~is_split), ("base_weights", is_split)):
            np.testing.assert_array_equal(
                np.array(a[key])[where], np.array(b[key])[where], f"{key}; {context}"
            )
        n_splits += int(is_split.sum())
    leaves = [booster.predict(xgb.DMatrix(X), pred_leaf=True) for booster in (ours, judge)]
    np.testing.assert_array_equal(*leaves, err_msg=str(context))
    return n_splits


def check_problem(seed: int, route: dict) -> int:
    rng = np.random.default_rng([2, seed])
    n_rows, n_features = int(rng.integers(50, 800)), int(rng.integers(1, 6))
    X = few_values(rng, n_rows, n_features)
    params = draw_params(rng, n_features)
    rounds = [gradients(rng, n_rows) for _ in range(rng.integers(1, 3))]
    how = {
        "gpu_exact_strategy": str(rng.choice(STRATEGIES)),
        "gpu_exact_interleaved_levels": int(rng.choice([-1, 0, 1, 3])),
        "gpu_exact_fallback": "error",
    }
    if rng.random() < 0.2 and gpu_exact.device_status().usable:
        how["gpu_exact_devices"] = "0,0"
    context = f"seed {seed}, {X.shape}, {params}, {how}"
    before = trees_grown()
    ours, dtrain = boost(params | how | route, X, rounds)
    assert_grown(before, gpu=len(rounds) * params["num_parallel_tree"], context=context)
    judge = hist(params, X, rounds)
    n_splits = assert_as_hist(ours, judge, X, context)
    if params["max_leaves"] != 1:  # a tree without a split draws no columns here
        assert rng_state(ours) == rng_state(judge), context
    assert_cache_is_right(ours, dtrain, context)
    return n_splits


CHUNKS = [range(FIRST + i, FIRST + i + 50) for i in range(0, 2 * N_PROBLEMS, 50)]


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_is_the_tree_of_hist(seeds: range) -> None:
    assert sum(check_problem(seed, [TAKE_OVER, BY_NAME][seed % 2]) for seed in seeds) > 100


def test_is_the_tree_of_hist_on_cuda(exact_on_cuda: dict) -> None:
    for seed in range(100):
        check_problem(seed, exact_on_cuda)
