# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Slices keep their categories: of `DMatrix.slice()`, of `xgb.cv()` and of scikit-learn's folds.

Codes 0, 1 and 2 have the targets 0, 1 and 0. As categories one split tells them apart without a rest;
as numbers none does. releases/test_releases.py runs this file beside each release of XGBoost.
"""

import json

import numpy as np
import pytest
import xgboost as xgb
from oracle import trees

pytestmark = pytest.mark.usefixtures("builder")
CODES = np.tile([0.0, 1.0, 2.0], 20)
TARGETS = np.tile([0.0, 1.0, 0.0], 20)
# Leaves are means, so that predictions are the targets.
PARAMS = {"max_depth": 1, "eta": 1.0, "reg_lambda": 0.0, "base_score": 0.0}


def table(rows: np.ndarray | slice = slice(None)) -> xgb.DMatrix:
    return xgb.DMatrix(CODES[rows].reshape(-1, 1), TARGETS[rows], feature_types=["c"])


def frame() -> object:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"city": pd.Categorical(np.array(["Oslo", "Rome", "Bonn"])[CODES.astype(int)])})


def model(booster: xgb.Booster) -> dict:
    """Without the state of the random numbers, which are drawn from another seed."""
    return json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]


@pytest.mark.parametrize("rows", [np.arange(60), np.arange(7), np.array([5, 1, 1, 59, 0, 3, 4])], ids=len)
def test_slice(exact: dict, rows: np.ndarray) -> None:
    booster = xgb.train(PARAMS | exact, table().slice(rows), 1)
    assert model(booster) == model(xgb.train(PARAMS | exact, table(rows), 1))
    np.testing.assert_array_equal(booster.predict(table()), TARGETS)
    assert "[f0:{1}]" in booster.get_dump()[0]


def test_slice_of_a_slice(exact: dict) -> None:
    booster = xgb.train(PARAMS | exact, table().slice(np.arange(50)).slice(np.arange(9)), 1)
    np.testing.assert_array_equal(booster.predict(table()), TARGETS)


def test_slice_of_numbers_and_categories(exact: dict) -> None:
    """The same trees as of a table that was made of these rows, with both kinds of split in them."""
    rng = np.random.default_rng(8)
    X = np.stack([rng.integers(0, 12, 300), rng.integers(0, 40, 300)], axis=1).astype(np.float32)
    y = (X[:, 0] % 3 * 8 + np.floor(X[:, 1] / 8)) / 4
    rows, types = rng.permutation(300)[:200], ["c", "q"]
    params = {"nthread": 1, "max_depth": 5, "base_score": 0.0} | exact
    whole = xgb.DMatrix(X, y, feature_types=types)
    booster = xgb.train(params, whole.slice(rows), 3)
    judge = xgb.train(params, xgb.DMatrix(X[rows], y[rows], feature_types=types), 3)
    assert model(booster) == model(judge)
    kinds = {
        kind
        for tree in trees(booster)
        for kind, left in zip(tree["split_type"], tree["left_children"], strict=True)
        if left >= 0
    }
    assert kinds == {0, 1}
    np.testing.assert_array_equal(booster.predict(whole), judge.predict(whole))


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_cv(exact: dict, kind: str) -> None:
    """Of XGBoost, which slices the table."""
    whole = xgb.DMatrix(frame(), TARGETS, enable_categorical=True) if kind == "frame" else table()
    told = xgb.cv(PARAMS | exact, whole, 1, nfold=3, seed=4, metrics="rmse", as_pandas=False)
    assert told["train-rmse-mean"] == told["test-rmse-mean"] == [0.0]


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_cross_val_score(exact: dict, kind: str) -> None:
    """Of scikit-learn, which slices what tables are made of."""
    selection = pytest.importorskip("sklearn.model_selection")
    X, types = frame(), {"enable_categorical": True}
    if kind == "array":
        X, types = CODES.reshape(-1, 1), {"feature_types": ["c"]}
    estimator = xgb.XGBRegressor(**PARAMS, **exact, **types, n_estimators=1)
    scores = selection.cross_val_score(estimator, X, TARGETS, cv=3, scoring="r2")
    assert scores.tolist() == [1.0] * 3
