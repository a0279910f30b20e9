# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""`gpu_exact_memory_limit` changes no bit of a model, and refuses what does not fit."""

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import BY_NAME, TAKE_OVER, assert_same_model
from small_tables import make_table

ROUTES = [TAKE_OVER, BY_NAME]
IDS = ["take_over", "by_name"]
PARAMS = {"nthread": 1, "max_depth": 5, "subsample": 0.7, "gpu_exact_strategy": "histogram"}
ROUNDS = 4


def estimate(dtrain: xgb.DMatrix) -> gpu_exact.MemoryEstimate:
    sizes = (dtrain.num_row(), dtrain.num_col(), dtrain.num_nonmissing())
    return gpu_exact.memory_estimate(*sizes, max_depth=PARAMS["max_depth"])["histogram"]


def train(dtrain: xgb.DMatrix, route: dict, limit: float | None) -> xgb.Booster:
    params = PARAMS | route
    if limit is not None:
        params |= {"gpu_exact_memory_limit": limit}
    return xgb.train(params, dtrain, ROUNDS)


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
@pytest.mark.parametrize("missing", [False, True])
def test_same_model(builder: str, route: dict, missing: bool) -> None:
    X, y = make_table(20_000)
    dtrain = xgb.DMatrix(X if missing else X[:, 3:], y)
    plan = estimate(dtrain)
    assert plan.least < plan.peak / 2
    expected = train(dtrain, route, None)
    for limit in (1.0, 0.5, plan.peak, (plan.peak + plan.least) // 2, plan.least):
        assert_same_model(train(dtrain, route, limit), expected)
        if not builder.startswith("reference"):
            run = gpu_exact.last_run()
            assert limit <= 1.0 or run.planned_bytes <= limit
            assert (run.planned_host_bytes != 0) == (limit == plan.least)


def test_changes_between_iterations(builder: str) -> None:
    """The table is built anew, in the place of the one before."""
    X, y = make_table(20_000)
    dtrain = xgb.DMatrix(X, y)
    plan = estimate(dtrain)
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    for i in range(ROUNDS):
        booster.set_param({"gpu_exact_memory_limit": plan.least if i % 2 else plan.peak})
        booster.update(dtrain, i)
        if not builder.startswith("reference"):
            assert (gpu_exact.last_run().planned_host_bytes != 0) == (i % 2 == 1)
    assert_same_model(booster, train(dtrain, TAKE_OVER, None))


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_too_little_is_refused(builder: str, route: dict) -> None:
    dtrain = xgb.DMatrix(*make_table())
    with pytest.raises(xgb.core.XGBoostError) as error:
        train(dtrain, route, 4096)
    text = str(error.value)
    assert "The table does not fit on the GPU" in text
    assert "gpu_exact_memory_limit=4096 allows 4096: " in text
    assert "Raise gpu_exact_memory_limit" in text
    assert_same_model(train(dtrain, route, 0), train(dtrain, route, None))


@pytest.mark.parametrize("limit", [-1, "-0.5", "much", "nan"])
def test_what_is_no_limit_is_refused(limit: object) -> None:
    dtrain = xgb.DMatrix(*make_table(50))
    with pytest.raises((xgb.core.XGBoostError, ValueError), match="gpu_exact_memory_limit"):
        train(dtrain, TAKE_OVER, limit)
