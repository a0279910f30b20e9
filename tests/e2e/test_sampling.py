# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Rows and columns are drawn as XGBoost draws them; test_fuzz.py has the small tables."""

import numpy as np
import pytest
import xgboost as xgb
from oracle import BY_NAME, RELEASE, TAKE_OVER, assert_same_model, rng_state, stock, trees

pytestmark = pytest.mark.usefixtures("builder")


@pytest.mark.parametrize("n_rows", [9000, 150000], ids=["drawn_in_blocks", "checked_in_a_thread"])
@pytest.mark.parametrize("n_deleted", [0, 1, 900], ids=["all_rows", "one_deleted", "some_deleted"])
def test_rows_of_a_long_table(n_rows: int, n_deleted: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (n_rows, 1)).astype(np.float32)
    grad = (rng.integers(-64, 65, n_rows) / 16).astype(np.float32)
    hess = np.ones(n_rows, np.float32)
    hess[rng.permutation(n_rows)[:n_deleted]] = -1

    def train() -> xgb.Booster:
        dtrain = xgb.DMatrix(X, grad)
        params = {"nthread": 1, "base_score": 0.0, "max_depth": 3, "num_parallel_tree": 2}
        booster = xgb.Booster(params | {"subsample": 0.37} | TAKE_OVER, [dtrain])
        for i in range(2):
            booster.boost(dtrain, i, grad=grad, hess=hess)
        return booster

    ours = train()
    with stock():
        theirs = train()
    assert rng_state(ours) == rng_state(theirs)
    assert_same_model(ours, theirs)


def test_subsample_zero_takes_no_row() -> None:
    dtrain = xgb.DMatrix(np.arange(20, dtype=np.float32).reshape(-1, 1), np.arange(20))
    params = {"nthread": 1, "subsample": 0.0} | TAKE_OVER
    ours = xgb.train(params, dtrain, 1)
    with stock():
        theirs = xgb.train(params, dtrain, 1)
    assert_same_model(ours, theirs)


def few_values(seed: int, n_columns: int = 8) -> xgb.DMatrix:
    """A table of which `hist` sees every value: it finds the same splits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (400, n_columns)).astype(np.float32)
    y = (rng.integers(-3200, 3300, 400) / 16).astype(np.float32)
    if seed % 2:
        X[rng.random(X.shape) < 0.2] = np.nan
    return xgb.DMatrix(X, y, feature_weights=1 + np.arange(n_columns) if seed % 3 else None)


def assert_splits_as_hist(dtrain: xgb.DMatrix, route: dict, **params: object) -> dict:
    """The same features and leaves, and the same random state; gives our last tree."""
    params = {"nthread": 1, "base_score": 0.5, "max_bin": 64, "reg_lambda": 0.5} | params
    boosters = [xgb.Booster(params | r, [dtrain]) for r in (route, {"tree_method": "hist"})]
    for booster in boosters:
        booster.update(dtrain, 0)
    ours, hist = boosters
    for a, b in zip(trees(ours), trees(hist), strict=True):
        for key in ("left_children", "split_indices"):
            assert a[key] == b[key], (key, params)
    leaves = [booster.predict(dtrain, pred_leaf=True) for booster in boosters]
    np.testing.assert_array_equal(*leaves)
    assert rng_state(ours) == rng_state(hist)
    return trees(ours)[-1]


needs_sampling_by_node = pytest.mark.skipif(
    RELEASE < (3, 3), reason="sampling by node is refused beside XGBoost 3.2"
)


@pytest.mark.skipif(RELEASE >= (3, 3), reason="sampling by node is refused beside XGBoost 3.2 alone")
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_colsample_bynode_is_refused(route: dict) -> None:
    with pytest.raises(xgb.core.XGBoostError, match="`colsample_bynode` is 0.5, .* Set it to 1, or"):
        xgb.train(route | {"colsample_bynode": 0.5}, few_values(0), 1)


@needs_sampling_by_node
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "params",
    [{}, {"colsample_bylevel": 0.7, "colsample_bytree": 0.8}, {"max_depth": 0, "max_leaves": 13}],
    ids=["alone", "all_rates", "leaf_limit"],
)
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_colsample_bynode(seed: int, params: dict, route: dict) -> None:
    """XGBoost's exact builder refuses it, so `hist` is the judge."""
    params = {"max_depth": 5, "num_parallel_tree": 2, "seed": seed} | params
    tree = assert_splits_as_hist(few_values(seed), route, colsample_bynode=0.5, **params)
    assert len(tree["parents"]) > 20


@needs_sampling_by_node
@pytest.mark.parametrize("n_columns", [32, 33, 70])
def test_colsample_bynode_of_many_columns(n_columns: int) -> None:
    """A node has a word for each 32 of them."""
    assert_splits_as_hist(few_values(3, n_columns), TAKE_OVER, colsample_bynode=0.5, max_depth=5)


@needs_sampling_by_node
def test_colsample_bynode_with_interaction_constraints() -> None:
    constraints = {"interaction_constraints": "[[0, 1, 2], [2, 3, 4, 5]]", "max_depth": 5}
    assert_splits_as_hist(few_values(2), TAKE_OVER, colsample_bynode=0.5, **constraints)


@needs_sampling_by_node
def test_random_forest_estimators_with_their_own_rate(exact: dict) -> None:
    """Their default is `colsample_bynode=0.8`, with which XGBoost's exact builder fails."""
    pytest.importorskip("sklearn")
    X = np.arange(200, dtype=np.float32).reshape(-1, 2)
    forest = xgb.XGBRFRegressor(**exact, n_estimators=5, n_jobs=1)
    assert forest.fit(X, X[:, 0] > 90).score(X, X[:, 0] > 90) > 0.9
    with stock(), pytest.raises(xgb.core.XGBoostError, match="column sample by node"):
        forest.set_params(**TAKE_OVER, device="cpu").fit(X, X[:, 0] > 90)


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 8, 21])
def test_leaf_limit_without_depth(max_leaves: int) -> None:
    """XGBoost's exact builder refuses it; nodes are split level by level, as by `hist`."""
    tree = assert_splits_as_hist(few_values(3), TAKE_OVER, max_depth=0, max_leaves=max_leaves)
    assert tree["left_children"].count(-1) == max_leaves


def test_no_limit_at_all() -> None:
    """XGBoost's exact builder refuses it, `hist` grows until nothing is gained."""
    tree = assert_splits_as_hist(few_values(2), TAKE_OVER, max_depth=0)
    assert tree["left_children"].count(-1) > 150
