# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""`gpu_exact_strategy` changes no bit of a model, whenever and wherever it is set."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import xgboost as xgb
from oracle import BY_NAME, CUDA, CUDA_BY_NAME, TAKE_OVER, assert_cache_is_right, assert_same_model
from problems import STRATEGIES
from small_tables import make_table

pytestmark = pytest.mark.usefixtures("builder")
ROUTES = [TAKE_OVER, BY_NAME]
IDS = ["take_over", "by_name"]
PARAMS = {"nthread": 1, "max_depth": 5, "subsample": 0.7, "num_parallel_tree": 2}
UNDER_SANITIZER = "GPU_EXACT_SANITIZER" in os.environ  # slows kernels down 10 to 100 times
ROWS, ROUNDS = (1000, 3) if UNDER_SANITIZER else (5000, 6)


def strategy_of(booster: xgb.Booster) -> str:
    updaters = json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"]
    (param,) = (u["gpu_exact_train_param"] for u in updaters if "gpu_exact_train_param" in u)
    return param["gpu_exact_strategy"]


def train(strategy: str, route: dict, dtrain: xgb.DMatrix) -> xgb.Booster:
    booster = xgb.Booster(PARAMS | route | {"gpu_exact_strategy": strategy}, [dtrain])
    for i in range(ROUNDS):
        booster.update(dtrain, i)
    assert strategy_of(booster) == strategy
    return booster


def test_auto_is_the_default() -> None:
    X, y = make_table(50)
    assert strategy_of(xgb.train(TAKE_OVER, xgb.DMatrix(X, y), 1)) == "auto"


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
@pytest.mark.parametrize("missing", [False, True])
def test_same_model(route: dict, missing: bool) -> None:
    X, y = make_table(ROWS)
    X = X if missing else X[:, 3:]
    models = [train(strategy, route, xgb.DMatrix(X, y)) for strategy in STRATEGIES]
    for model in models[1:]:
        assert_same_model(model, models[0])


@pytest.mark.parametrize("route", [CUDA, CUDA_BY_NAME], ids=["exact", "by_name"])
def test_same_model_on_a_cuda_context(cuda_context: None, route: dict) -> None:
    X, y = make_table(ROWS)
    models = [train(strategy, route, xgb.DMatrix(X, y)) for strategy in STRATEGIES]
    for model in models[1:]:
        assert_same_model(model, models[0])


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_changes_between_iterations(route: dict) -> None:
    """Another builder takes over the table; margins and random numbers go on."""
    dtrain = xgb.DMatrix(*make_table())
    booster = xgb.Booster(PARAMS | route, [dtrain])
    for i in range(ROUNDS):
        strategy = STRATEGIES[i % len(STRATEGIES)]
        booster.set_param({"gpu_exact_strategy": strategy})
        booster.update(dtrain, i)
        assert strategy_of(booster) == strategy
        assert_cache_is_right(booster, dtrain)
    assert_same_model(booster, train("sort", route, dtrain))


class Alternate(xgb.callback.TrainingCallback):
    """Sets another strategy before every round."""

    def before_iteration(self, model: xgb.Booster, epoch: int, _: dict) -> bool:
        model.set_param({"gpu_exact_strategy": STRATEGIES[epoch % len(STRATEGIES)]})
        return False


def test_changes_in_a_callback() -> None:
    dtrain = xgb.DMatrix(*make_table())
    model = xgb.train(PARAMS | TAKE_OVER, dtrain, ROUNDS, callbacks=[Alternate()])
    assert strategy_of(model) == STRATEGIES[(ROUNDS - 1) % len(STRATEGIES)]
    assert_same_model(model, train("sort", TAKE_OVER, dtrain))


def test_boosters_of_several_strategies_share_a_dmatrix() -> None:
    """Each takes the table's place on the device from the one before."""
    dtrain = xgb.DMatrix(*make_table(1000))

    def in_turns(strategies: list[str]) -> list[xgb.Booster]:
        """Before XGBoost 3.3 boosters of a thread draw from one generator."""
        boosters = [
            xgb.Booster(PARAMS | TAKE_OVER | {"gpu_exact_strategy": strategy}, [dtrain])
            for strategy in strategies
        ]
        for i in range(ROUNDS):
            for booster in boosters:
                booster.update(dtrain, i)
        return boosters

    of_one = in_turns(["sort"] * len(STRATEGIES))
    for model, expected in zip(in_turns(STRATEGIES), of_one, strict=True):
        assert_same_model(model, expected)
    expected = train("sort", TAKE_OVER, dtrain)
    with ThreadPoolExecutor(len(STRATEGIES)) as pool:
        for model in pool.map(lambda s: train(s, TAKE_OVER, dtrain), STRATEGIES):
            assert_same_model(model, expected)
