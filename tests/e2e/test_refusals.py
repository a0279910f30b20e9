# Copyright 2026, the gpu_exact contributors
"""What exact trees cannot do is refused as XGBoost refuses it, and with a remedy."""

import numpy as np
import pytest
import xgboost as xgb
from oracle import BY_NAME, TAKE_OVER, stock

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) % 3


def error_of(params: dict, dtrain: xgb.DMatrix | None = None) -> str:
    with pytest.raises(xgb.core.XGBoostError) as error:
        xgb.train(params, xgb.DMatrix(X, Y) if dtrain is None else dtrain, 1)
    return str(error.value)


def check(
    wording: str, remedy: str, params: dict | None = None, dtrain: xgb.DMatrix | None = None
) -> None:
    """Both routes say it in XGBoost's words and add the remedy."""
    with stock():
        assert wording in error_of(TAKE_OVER | (params or {}), dtrain)
    for route in (TAKE_OVER, BY_NAME):
        message = error_of(route | (params or {}), dtrain)
        assert wording in message and remedy in message




def test_categorical_features() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(["x", "y"] * 10)})
    check(
        "Updater `grow_colmaker` or `exact` tree method doesn't support categorical features.",
        "Encode them as numbers",
        dtrain=xgb.DMatrix(frame, Y, enable_categorical=True),
    )


def test_quantile_dmatrix() -> None:
    check(
        "Only `hist` tree method can use `QuantileDMatrix`.",
        "Make a `DMatrix`",
        dtrain=xgb.QuantileDMatrix(X, Y),
    )


def test_vector_leaves() -> None:
    """XGBoost itself refuses them for `tree_method="exact"`, in other words."""
    params = {"multi_strategy": "multi_output_tree", "num_class": 3, "objective": "multi:softprob"}
    message = error_of(BY_NAME | params)
    assert "exact support for multi-target tree is not yet implemented." in message
    assert 'multi_strategy="one_output_per_tree"' in message


@pytest.mark.parametrize(
    ("params", "wording", "remedy"),
    [
        (
            {"monotone_constraints": "(1,0,-1)"},
            "The size of monotone constraint should be less or equal to the number of features.",
            "3 constraints are given for 2 features",
        ),
        (
            {"subsample": 0.5, "sampling_method": "gradient_based"},
            "Only uniform sampling is supported, gradient-based sampling is only support by ",
            'sampling_method="uniform"',
        ),
        (
            {"interaction_constraints": "[[0, 0.5]]"},
            "Failed to parse feature interaction constraint:",
            "[[0, 0.5]]",
        ),
        ({"opt_dense_col": 2}, "value 2 for Parameter opt_dense_col", "exceed bound [0,1]"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters(params: dict, wording: str, remedy: str) -> None:
    check(wording, remedy, params)


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
    ("params", "wording"),
    [
        ({"gpu_exact_interleaved_levels": 9}, "value 9 for Parameter gpu_exact_interleaved_levels"),
        ({"gpu_exact_interleaved_levels": -2}, "value -2 for Parameter"),
        (
            {"gpu_exact_fallback": "maybe"},
            "Invalid Input: 'maybe', valid values are: {'default', 'error', 'warn'}",
        ),
        (
            {"gpu_exact_strategy": "quick"},
            "Invalid Input: 'quick', valid values are: {'auto', 'histogram', 'sort'}",
        ),
    ],
)
def test_own_limits(route: dict, params: dict, wording: str) -> None:
    assert wording in error_of(route | params)


def test_a_refusal_harms_nothing() -> None:
    dtrain = xgb.DMatrix(X, Y)
    booster = xgb.Booster({"monotone_constraints": "(1,0,-1)"} | TAKE_OVER, [dtrain])
    with pytest.raises(xgb.core.XGBoostError):
        booster.update(dtrain, 0)
    booster.set_param({"monotone_constraints": "(1,0)"})
    booster.update(dtrain, 0)
    assert booster.num_boosted_rounds() == 1
