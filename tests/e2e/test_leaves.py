# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Leaves that the objective sets: medians and quantiles of the rows in them, as XGBoost before 3.4 has it.

Its own exact builder leaves them alone, and so do its trees here. Trees that only the GPU can grow have
`hist` as their judge, which sets them. releases/test_releases.py runs this file beside each release.
"""

import numpy as np
import pytest
import xgboost as xgb
from hist_problems import assert_nearly_as_hist
from oracle import BY_NAME, RELEASE, TAKE_OVER, stock, trees

pytestmark = [
    pytest.mark.usefixtures("builder"),
    pytest.mark.filterwarnings("ignore:.*lossguide", "ignore:.*manually specified the `updater`"),
]
rng = np.random.default_rng(11)
X = rng.integers(0, 9, (300, 3)).astype(np.float32)
Y = np.where(X[:, 0] % 3 == 1, 40, X[:, 1]) + rng.standard_normal(300)
OBJECTIVES = {
    "absolute": {"objective": "reg:absoluteerror"},
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.8},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.7]},
}
LEAF_WISE = {"grow_policy": "lossguide", "max_leaves": 7, "max_depth": 0}
CASES = {
    "categories": (["c", "c", "q"], {"max_depth": 3}),
    "leaf_wise": (None, LEAF_WISE),
    "one_leaf": (None, {"grow_policy": "lossguide", "max_leaves": 1}),
    "forest": (["c", "q", "q"], LEAF_WISE | {"num_parallel_tree": 3}),
    "no_limit": (["c"] * 3, {"max_depth": 0}),
}


def train(types: list[str] | None, params: dict) -> tuple[xgb.Booster, np.ndarray]:
    dtrain = xgb.DMatrix(X, Y, feature_types=types)
    booster = xgb.train({"nthread": 1} | params, dtrain, 4)
    return booster, booster.predict(dtrain)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_as_hist(exact: dict, objective: str, case: str) -> None:
    types, params = CASES[case]
    params = params | OBJECTIVES[objective]
    assert_nearly_as_hist(
        lambda route: train(types, params | (exact if route == TAKE_OVER else route)), continued=True
    )


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME, {"updater": "grow_colmaker"}], ids=str)
def test_are_medians(route: dict) -> None:
    """Codes 0, 1 and 2 have the targets 0, 5 and 0; before 3.4 one tree says so, by every way in."""
    codes = np.tile([0.0, 1.0, 2.0], 20)
    dtrain = xgb.DMatrix(codes.reshape(-1, 1), 5 * (codes == 1), feature_types=["c"])
    params = {"objective": "reg:absoluteerror", "max_depth": 1, "eta": 1.0, "base_score": 0.0}
    predicted = xgb.train(params | route, dtrain, 1).predict(dtrain)
    assert (set(predicted[codes == 1]) == {5.0}) == (RELEASE < (3, 4))
    assert set(predicted[codes != 1]) == {0.0}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_stay_where_xgboost_leaves_them(objective: str) -> None:
    """After trees of the same updater whose leaves were set, too."""
    params = {"max_depth": 3, "nthread": 1} | OBJECTIVES[objective] | TAKE_OVER
    dtrain = xgb.DMatrix(X, Y)
    booster = xgb.Booster(params | LEAF_WISE, [dtrain])
    booster.update(dtrain, 0)
    before = booster.copy()
    booster.set_param({"grow_policy": "depthwise", "max_depth": 3})
    booster.update(dtrain, 1)
    with stock():
        judge = xgb.train(params, dtrain, 1, xgb_model=before)
    n_first = len(trees(before))
    assert trees(booster)[n_first:] == trees(judge)[n_first:]
    assert len(trees(booster)) == 2 * n_first
