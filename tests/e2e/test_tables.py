# Copyright 2026, the gpu_exact contributors
"""Tables at the edges, and tables that are shared, changed and gone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
from oracle import TAKE_OVER, assert_same_model, stock, trees
from small_tables import dyadic, make_table, one_round

pytestmark = pytest.mark.usefixtures("builder")


def test_several_boosters_share_a_dmatrix() -> None:
    X, y = make_table()
    dtrain = xgb.DMatrix(X, y)
    depths = [2, 3, 6]
    boosters = [xgb.Booster({"nthread": 1, "max_depth": d} | TAKE_OVER, [dtrain]) for d in depths]
    for i in range(3):  # in turns
        for booster in boosters:
            booster.update(dtrain, i)
    for depth, booster in zip(depths, boosters, strict=True):
        alone = xgb.Booster({"nthread": 1, "max_depth": depth} | TAKE_OVER, [dtrain])
        for i in range(3):
            alone.update(dtrain, i)
        assert_same_model(booster, alone)


def test_threads_share_a_dmatrix() -> None:
    X, y = make_table(1000)
    dtrain = xgb.DMatrix(X, y)

    def train(depth: int) -> xgb.Booster:
        return xgb.train({"nthread": 1, "max_depth": depth} | TAKE_OVER, dtrain, 5)

    depths = [2, 3, 4, 5]
    with ThreadPoolExecutor(len(depths)) as pool:
        together = list(pool.map(train, depths))
    for depth, booster in zip(depths, together, strict=True):
        assert_same_model(booster, train(depth))


def test_one_booster_on_several_dmatrices() -> None:
    """Each lives for one round only, so that another may get its address."""

    def train() -> xgb.Booster:
        booster = xgb.Booster({"nthread": 1, "base_score": 0.0, "num_feature": 4} | TAKE_OVER)
        for i in range(6):
            rng = np.random.default_rng(i)
            X = rng.integers(0, 9, (200, 4)).astype(np.float32)
            grad = (rng.integers(-64, 65, 200) / 16).astype(np.float32)
            booster.boost(xgb.DMatrix(X, np.zeros(200)), i, grad=grad, hess=np.ones_like(grad))
        return booster

    ours = train()
    with stock():
        theirs = train()
    assert_same_model(ours, theirs)


def test_densities_are_those_of_the_dmatrix_trained_on() -> None:
    """XGBoost's builder keeps the densities of its first DMatrix; here a second one has its own."""
    rng = np.random.default_rng(0)
    sparse = rng.integers(0, 9, (200, 3)).astype(np.float32)
    sparse[rng.random(sparse.shape) < 0.4] = np.nan
    grad = (rng.integers(-64, 65, 200) / 16).astype(np.float32)
    hess = np.ones_like(grad)
    params = {"nthread": 1, "base_score": 0.0, "num_feature": 3} | TAKE_OVER
    booster = xgb.Booster(params)
    booster.boost(xgb.DMatrix(np.nan_to_num(sparse), grad), 0, grad=grad, hess=hess)
    booster.boost(xgb.DMatrix(sparse, grad), 1, grad=grad, hess=hess)
    with stock():
        fresh = xgb.Booster(params)
        fresh.boost(xgb.DMatrix(sparse, grad), 0, grad=grad, hess=hess)
    expected = trees(fresh)[0]
    assert 0 in expected["default_left"][: len(expected["left_children"]) // 2]
    assert trees(booster)[1] | {"id": 0} == expected | {"id": 0}


@pytest.mark.parametrize("missing", [False, True])
def test_deep_tree(missing: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    y = (rng.integers(-32, 33, len(X)) / 16).astype(np.float32)
    ours, theirs = one_round(X, y, max_depth=30, min_child_weight=0, reg_lambda=0)
    assert_same_model(ours, theirs)
    assert len(trees(ours)[0]["parents"]) > 1000


def test_sparse_table_wider_than_long() -> None:
    table = sp.random(60, 5000, 0.02, "csr", np.float32, np.random.default_rng(0))
    ours, theirs = one_round(table, dyadic(60))
    assert_same_model(ours, theirs)
    assert len(trees(ours)[0]["parents"]) > 3


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 4), np.float32), np.empty(0)),
        (np.ones((1, 1), np.float32), np.ones(1)),
        (np.arange(50, dtype=np.float32).reshape(-1, 1), dyadic(50)),
        (np.full((50, 3), np.nan, np.float32), dyadic(50)),
        (np.c_[np.arange(50), np.full(50, np.nan)].astype(np.float32), dyadic(50)),
    ],
    ids=["no_rows", "one_row", "one_column", "all_missing", "a_missing_column"],
)
def test_edges(X: np.ndarray, y: np.ndarray) -> None:
    ours, theirs = one_round(X, y)
    assert_same_model(ours, theirs)
