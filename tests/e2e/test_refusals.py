# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What exact trees cannot do is refused as XGBoost refuses it, and with a remedy.

The tests look for what is refused and for the remedy, not for whole sentences.
"""

import numpy as np
import pytest
import xgboost as xgb
from oracle import BY_NAME, NO_GPU, TAKE_OVER, run_python, stock

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) % 3


def error_of(params: dict, dtrain: xgb.DMatrix | None = None) -> str:
    with pytest.raises(xgb.core.XGBoostError) as error:
        xgb.train(params, xgb.DMatrix(X, Y) if dtrain is None else dtrain, 1)
    return str(error.value)


def check(
    refused: str, remedy: str, params: dict | None = None, dtrain: xgb.DMatrix | None = None
) -> None:
    """Both routes say what XGBoost says, and add the remedy."""
    with stock():
        assert refused in error_of(TAKE_OVER | (params or {}), dtrain)
    for route in (TAKE_OVER, BY_NAME):
        message = error_of(route | (params or {}), dtrain)
        assert refused in message and remedy in message


CATEGORIES = r"""
import sys, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
warnings.simplefilter("ignore")
params = {"tree_method": "exact", "gpu_exact_fallback": sys.argv[1]}
dtrain = xgb.DMatrix(np.eye(9), np.arange(9), feature_types=["c"] * 9)
for data in (dtrain, dtrain.slice(range(9))):
    for route in ({}, {"updater": "grow_gpu_exact"}):
        try:
            xgb.train(params | route, data, 1)
        except xgb.core.XGBoostError as error:
            print(xgboost_gpu_exact.device_status().text in str(error), str(error).replace("\n", " "))
"""


@pytest.mark.parametrize("fallback", ["warn", "error"])
def test_categorical_features_without_a_gpu(fallback: str) -> None:
    with stock():
        dtrain = xgb.DMatrix(X, Y, feature_types=["c", "q"])
        assert "categorical features" in error_of(TAKE_OVER, dtrain)
    told = run_python(CATEGORIES, fallback, **NO_GPU, GPU_EXACT_REFERENCE_REFUSES="there is none")
    assert len(told.splitlines()) == 4
    for line in told.splitlines():
        assert line.startswith("True"), line
        assert "categorical features" in line and "as numbers" in line


def test_quantile_dmatrix() -> None:
    check(
        "`QuantileDMatrix`",
        "a `DMatrix`",
        dtrain=xgb.QuantileDMatrix(X, Y),
    )


def test_vector_leaves() -> None:
    """XGBoost itself refuses them for `tree_method="exact"`, in other words."""
    params = {"multi_strategy": "multi_output_tree", "num_class": 3, "objective": "multi:softprob"}
    message = error_of(BY_NAME | params)
    assert "multi-target tree" in message
    assert 'multi_strategy="one_output_per_tree"' in message


@pytest.mark.parametrize(
    ("params", "refused", "remedy"),
    [
        ({"monotone_constraints": "(1,0,-1)"}, "size of monotone constraint", "3 constraints"),
        (
            {"subsample": 0.5, "sampling_method": "gradient_based"},
            "uniform sampling",
            'sampling_method="uniform"',
        ),
        ({"interaction_constraints": "[[0, 0.5]]"}, "interaction constraint", "[[0, 0.5]]"),
        ({"opt_dense_col": 2}, "opt_dense_col", "[0,1]"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters(params: dict, refused: str, remedy: str) -> None:
    check(refused, remedy, params)


def test_gradient_based_sampling_of_all_rows() -> None:
    """It is none, and XGBoost's exact takes it."""
    params = TAKE_OVER | {"sampling_method": "gradient_based"}
    dtrain = xgb.DMatrix(X, Y)
    ours = xgb.train(params, dtrain, 1)
    with stock():
        theirs = xgb.train(params, dtrain, 1)
    assert ours.get_dump() == theirs.get_dump()


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"gpu_exact_memory_limit": -2}, ["value -2 ", "gpu_exact_memory_limit"]),
        ({"gpu_exact_fallback": "maybe"}, ["'maybe'", "'error'", "'warn'"]),
        ({"gpu_exact_strategy": "quick"}, ["'quick'", "'auto'", "'histogram'", "'sort'"]),
    ],
)
def test_own_limits(route: dict, params: dict, named: list[str]) -> None:
    message = error_of(route | params)
    assert [name for name in named if name not in message] == []


def test_a_refusal_harms_nothing() -> None:
    dtrain = xgb.DMatrix(X, Y)
    booster = xgb.Booster({"monotone_constraints": "(1,0,-1)"} | TAKE_OVER, [dtrain])
    with pytest.raises(xgb.core.XGBoostError):
        booster.update(dtrain, 0)
    booster.set_param({"monotone_constraints": "(1,0)"})
    booster.update(dtrain, 0)
    assert booster.num_boosted_rounds() == 1
