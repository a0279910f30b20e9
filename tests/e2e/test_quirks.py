# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Where XGBoost's exact builder does what it should not: equal where trees are, right where not."""

import numpy as np
import pytest
import xgboost as xgb
from oracle import RELEASE, TAKE_OVER, assert_grown, assert_same_model, stock, trees, trees_grown
from small_tables import one_round

pytestmark = pytest.mark.usefixtures("builder")


def test_neighbouring_floats_may_leave_a_child_empty() -> None:
    """Kept: no float lies between two values, the threshold is the lower one, and its rows, counted
    on the left, go right. The gain is what it would be had they gone left."""
    low, high = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
    X = np.array([[low], [low], [high], [high], [np.nan]], np.float32)
    y = np.array([-4, -4, 4, 4, 4], np.float32)
    ours, theirs = one_round(X, y, max_depth=1, base_score=0.0, min_child_weight=0)
    assert_same_model(ours, theirs)
    (tree,) = trees(ours)
    assert tree["sum_hessian"][1:] == [0.0, 5.0] and tree["loss_changes"][0] > 10


@pytest.mark.parametrize("policy", ["depthwise", "lossguide"])
@pytest.mark.filterwarnings("ignore:.*lossguide")
def test_an_empty_child_ends_a_branch_where_no_depth_does(policy: str) -> None:
    """The other child has all rows: it would be split in the same way for ever."""
    low, high = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
    X = np.array([[low], [low], [high], [high], [np.nan]], np.float32)
    y = np.array([-4, -4, 4, 4, 4], np.float32)
    params = {"max_depth": 0, "grow_policy": policy, "base_score": 0.0}
    (tree,) = trees(xgb.train(params | TAKE_OVER, xgb.DMatrix(X, y), 1))
    assert tree["sum_hessian"] == [5.0, 0.0, 5.0]


def test_present_against_missing_splits_beyond_the_last_value() -> None:
    """Kept: the threshold is twice the value, and not the next float."""
    X = np.array([[8], [8], [8], [np.nan], [np.nan]], np.float32)
    y = np.array([4, 4, 4, -4, -4], np.float32)
    ours, theirs = one_round(X, y, max_depth=1, base_score=0.0, default_direction="right")
    assert_same_model(ours, theirs)
    assert trees(ours)[0]["split_conditions"][0] == pytest.approx(16)


@pytest.mark.parametrize("n_rows", [5, 3000])
@pytest.mark.parametrize("strategy", ["sort", "histogram"])
def test_past_an_infinite_value_the_threshold_is_no_number(strategy: str, n_rows: int) -> None:
    """Kept: nothing is less than it, so present values go right although they were counted left."""
    X = np.full((n_rows, 2), np.inf, np.float32)
    X[: n_rows // 2, 0] = -np.inf
    X[:, 1] = np.arange(n_rows) % 2
    y = np.where(np.arange(n_rows) < n_rows // 2, 4, -4).astype(np.float32)
    params = {"max_depth": 3, "base_score": 0.0, "default_direction": "right"}
    ours, theirs = one_round(X, y, missing=np.inf, gpu_exact_strategy=strategy, **params)
    assert_same_model(ours, theirs)
    (tree,) = trees(ours)
    assert np.isnan(tree["split_conditions"][0]) and tree["sum_hessian"][1:3] == [0.0, n_rows]


@pytest.mark.parametrize("constraint", [0, 1])
def test_infinite_weights_are_finite_where_there_is_a_constraint(constraint: int) -> None:
    """Kept: with a monotone constraint XGBoost clips weights to what is finite, else it does not."""
    X = np.arange(4, dtype=np.float32)[:, None]
    dtrain = xgb.DMatrix(X, np.zeros(4))
    grad, hess = np.full(4, -(2.0**91), np.float32), np.full(4, 2.0**-126, np.float32)
    params = {"nthread": 1, "base_score": 0.0, "lambda": 0, "min_child_weight": 0, "max_depth": 1}
    params |= {"monotone_constraints": f"({constraint})"} | TAKE_OVER

    def train() -> xgb.Booster:
        booster = xgb.Booster(params, [dtrain])
        booster.boost(dtrain, 0, grad=grad, hess=hess)
        return booster

    ours = train()
    with stock():
        assert_same_model(ours, train())
    # Before XGBoost 3.4 the root's own weight knows no bounds.
    assert np.isinf(trees(ours)[0]["base_weights"][0]) == (constraint == 0 or RELEASE < (3, 4))


@pytest.mark.parametrize("far", [1, 1e18], ids=["gpu", "cpu"])  # gradients too far apart for a GPU
@pytest.mark.filterwarnings("ignore:.*gpu_exact_fallback")
def test_densities_are_those_of_the_dmatrix_trained_on(far: float) -> None:
    """XGBoost's builder keeps the densities of its first DMatrix; here a second one has its own."""
    rng = np.random.default_rng(0)
    sparse = rng.integers(0, 9, (200, 3)).astype(np.float32)
    sparse[rng.random(sparse.shape) < 0.4] = np.nan
    grad = (rng.integers(-64, 65, 200) / 16).astype(np.float32)
    grad[:2] = -far, far
    hess = np.ones_like(grad)
    params = {"nthread": 1, "base_score": 0.0, "num_feature": 3} | TAKE_OVER
    before = trees_grown()
    booster = xgb.Booster(params)
    booster.boost(xgb.DMatrix(np.nan_to_num(sparse), grad), 0, grad=grad, hess=hess)
    booster.boost(xgb.DMatrix(sparse, grad), 1, grad=grad, hess=hess)
    assert_grown(before, **{"gpu" if far == 1 else "cpu": 2})
    with stock():
        fresh = xgb.Booster(params)
        fresh.boost(xgb.DMatrix(sparse, grad), 0, grad=grad, hess=hess)
    expected = trees(fresh)[0]
    assert 0 in expected["default_left"][: len(expected["left_children"]) // 2]
    assert trees(booster)[1] | {"id": 0} == expected | {"id": 0}


def test_interaction_constraints_of_now_are_those_that_hold() -> None:
    """XGBoost adds new ones to those that a booster was given earlier."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (300, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2]).astype(np.float32)

    def train() -> list[set[int]]:
        dtrain = xgb.DMatrix(X, y)
        booster = xgb.Booster({"nthread": 1, "max_depth": 3} | TAKE_OVER, [dtrain])
        for i, groups in enumerate(("[[0, 1], [2, 3]]", "[[0, 2], [1], [3]]")):
            booster.set_param({"interaction_constraints": groups})
            booster.update(dtrain, i)
        splits = [zip(t["split_indices"], t["left_children"], strict=True) for t in trees(booster)]
        return [{feature for feature, left in of_tree if left != -1} for of_tree in splits]

    assert train() == [{0, 1}, {0, 2}]
    with stock():
        assert train() == [{0, 1}, {0, 1, 2}]


def test_root_is_open_to_every_feature() -> None:
    """With interaction constraints XGBoost bars features past the number of rows from the root."""
    X = np.zeros((4, 10), np.float32)
    X[:, 9] = [0, 1, 2, 3]
    y = np.array([-1, -1, 1, 1], np.float32)
    params = {"max_depth": 1, "interaction_constraints": "[[8, 9]]", "base_score": 0.0}
    ours, theirs = one_round(X, y, **params)
    assert trees(theirs)[0]["left_children"] == [-1]
    assert trees(ours)[0]["split_indices"][0] == 9
