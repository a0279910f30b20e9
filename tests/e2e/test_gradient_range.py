# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Weights and labels of any magnitude: XGBoost's own tree, or XGBoost's own builder with a warning.

Both sides are given the same gradients. Structure and thresholds are equal, weights and sums of
hessians within 1e-4; where another split was taken, it has the same gain.
"""

import json
import os
import warnings

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import TAKE_OVER, run_python, stock, trees, trees_grown

pytestmark = pytest.mark.usefixtures("builder")
N_PROBLEMS = int(os.environ.get("GPU_EXACT_RANGES", "30"))  # of each range


def make_problem(seed: int, log2_range: int) -> tuple:
    """A table, gradient pairs whose magnitudes lie within 2^log2_range, and how to train."""
    rng = np.random.default_rng([log2_range, seed])
    n_rows, n_columns = int(rng.integers(20, 2000)), int(rng.integers(1, 5))
    most = 2.0 ** rng.uniform(-20, 60 if log2_range < 90 else 20)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.3] = np.nan
    at = rng.random(n_rows)
    if rng.random() < 0.3:
        at[rng.random(n_rows) < 0.5] = 0.0  # half of the rows are the least
    if rng.random() < 0.5:
        X[:, 0] = at + rng.normal(0, 0.02, n_rows)  # rows of one magnitude side by side
    size = most * 2.0 ** ((at - 1) * log2_range)
    kind = rng.integers(3)
    hess = size if kind == 0 else np.ones(n_rows) if kind == 1 else size ** rng.uniform(0, 1)
    grad = size * rng.uniform(0.5, 1, n_rows) * rng.choice([-1, 1, 1], n_rows)
    params = {
        "nthread": 1,
        "base_score": 0.0,
        "max_depth": int(rng.integers(1, 7)),
        "reg_lambda": float(rng.choice([0, 1, 1])),
        "min_child_weight": float(rng.choice([0, 1, 1])),
    }
    if rng.random() < 0.2:
        params["monotone_constraints"] = "(1)"
    if rng.random() < 0.2:
        params["max_delta_step"] = float(most)
    return X, grad.astype(np.float32), hess.astype(np.float32), params


def difference(ours: dict, theirs: dict) -> str:
    """What differs first; "tie" where both took splits of the same gain, empty where nothing does."""
    for node, pair in enumerate(zip(ours["loss_changes"], theirs["loss_changes"], strict=False)):
        leaf = theirs["left_children"][node] == -1
        same = ours["left_children"][node] == theirs["left_children"][node] and (
            leaf
            or all(
                ours[key][node] == theirs[key][node]
                for key in ("split_indices", "split_conditions", "default_left")
            )
        )
        if not same:
            apart = abs(pair[0] - pair[1])
            # A gain is a small difference of floats of the node's own size.
            rounding = 4e-7 * abs(theirs["base_weights"][node]) ** 2 * theirs["sum_hessian"][node]
            tie = apart <= 1e-6 * abs(pair[1]) or apart <= 1e-6 or apart <= rounding
            return "tie" if tie else f"node {node}: loss changes {pair}"
        for key in ("base_weights", "sum_hessian", "split_conditions"):
            a, b = ours[key][node], theirs[key][node]
            if not (a == b or abs(a - b) <= 1e-4 * max(abs(a), abs(b))):
                return f"node {node}: {key} {a!r}, not {b!r}"
    return "" if len(ours["left_children"]) == len(theirs["left_children"]) else "other nodes"


@pytest.mark.parametrize("log2_range", [0, 20, 40, 44, 48, 55, 70, 100, 180])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_equals_stock_or_goes_to_the_cpu(
    request: pytest.FixtureRequest, log2_range: int, device: str
) -> None:
    if device == "cuda":
        request.getfixturevalue("cuda_context")
    n_on_gpu, n_ties = 0, 0
    for seed in range(N_PROBLEMS):
        X, grad, hess, params = make_problem(seed, log2_range)
        dtrain = xgb.DMatrix(X, np.zeros(len(X)))
        before = trees_grown()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = xgb.Booster(params | TAKE_OVER | {"device": device}, [dtrain])
            ours.boost(dtrain, 0, grad=grad, hess=hess)
        on_gpu = trees_grown()[0] - before[0]
        with stock():
            theirs = xgb.Booster(params | TAKE_OVER, [dtrain])
            theirs.boost(dtrain, 0, grad=grad, hess=hess)
        found = difference(trees(ours)[0], trees(theirs)[0])
        n_on_gpu += on_gpu
        n_ties += found == "tie"
        if on_gpu:
            assert found in ("", "tie"), (seed, log2_range, params)
        else:
            assert found == "", (seed, log2_range, params)
            assert "too small beside" in gpu_exact.last_run().reason
    assert n_ties <= N_PROBLEMS // 50 + 1
    if log2_range <= 40:
        assert n_on_gpu >= 0.95 * N_PROBLEMS - 1


TOLD = """
import json, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
rng = np.random.default_rng(0)
X = rng.standard_normal((400, 2)).astype(np.float32)
weight = np.where(X[:, 0] > 0, 1, np.finfo(float).eps).astype(np.float32)
dtrain = xgb.DMatrix(X, rng.random(400), weight=weight)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    xgb.train({"tree_method": "exact", "reg_lambda": 0, "min_child_weight": 0}, dtrain, 3)
print(json.dumps([str(w.message) for w in caught if "gpu_exact_fallback" in str(w.message)]))
"""


def test_a_warning_says_so() -> None:
    [told] = json.loads(run_python(TOLD))
    assert "rows are too small beside the largest" in told
    assert "check labels and weights for outliers" in told
