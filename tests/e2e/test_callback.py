# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The callback: a run for each round, and a model that says who grew it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import TAKE_OVER, stock
from small_tables import make_table
from xgboost_gpu_exact.callback import ATTRIBUTE, RunHistory


def make_dmatrix() -> xgb.DMatrix:
    return xgb.DMatrix(*make_table())


def records(model: xgb.Booster) -> list[dict[str, Any]]:
    return json.loads(model.attr(ATTRIBUTE) or "[]")


def test_a_run_for_each_round(builder: str) -> None:
    dtrain, told = make_dmatrix(), []
    history = RunHistory(lambda i, run: told.append((i, run.gpu_trees)))
    before = gpu_exact.last_run().gpu_trees
    params = TAKE_OVER | {"num_parallel_tree": 2}
    model = xgb.train(params, dtrain, 3, callbacks=[history])
    assert [run.gpu_trees - before for run in history.runs] == [2, 4, 6]
    assert told == [(i, run.gpu_trees) for i, run in enumerate(history.runs)]
    assert history.runs[-1] == gpu_exact.last_run()
    assert model.attr(ATTRIBUTE) is None
    assert model.save_raw() == xgb.train(params, dtrain, 3).save_raw()
    xgb.train(TAKE_OVER, dtrain, 2, callbacks=[history])
    assert len(history.runs) == 2  # of the last training
    xgb.cv(TAKE_OVER, dtrain, 4, nfold=2, callbacks=[history])
    assert len(history.runs) == 4


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_a_model_says_who_grew_it(builder: str, booster: str, tmp_path: Path) -> None:
    X, y = make_table()
    dtrain = xgb.DMatrix(X, np.digitize(y, np.quantile(y, [0.3, 0.6])))
    params = TAKE_OVER | {"objective": "multi:softprob", "num_class": 3, "booster": booster}
    model = xgb.train(params, dtrain, 4, callbacks=[RunHistory(sign=True)])
    expected = {"version": gpu_exact.__version__, "build": gpu_exact.source_hash()}
    expected |= {"xgboost": xgb.__version__, "device": builder}
    expected |= {"trees": 12, "gpu_trees": 12, "cpu_trees": 0}
    assert records(model) == [expected]
    model.save_model(tmp_path / "model.json")
    loaded = xgb.Booster(model_file=tmp_path / "model.json")
    assert records(loaded) == [expected]
    more = xgb.train(params, dtrain, 1, xgb_model=loaded, callbacks=[RunHistory(sign=True)])
    assert records(more) == [expected, expected | {"trees": 3, "gpu_trees": 3}]


def test_rounds_that_are_cut_off_are_counted(builder: str) -> None:
    dtrain = make_dmatrix()
    history = RunHistory(sign=True)
    callbacks = [xgb.callback.EarlyStopping(rounds=3, save_best=True), history]
    held_out = xgb.DMatrix(make_table()[0], np.random.default_rng(0).standard_normal(dtrain.num_row()))
    model = xgb.train(TAKE_OVER, dtrain, 50, evals=[(held_out, "other")], verbose_eval=False, callbacks=callbacks)
    (record,) = records(model)
    assert len(history.runs) == record["trees"] == record["gpu_trees"] > model.num_boosted_rounds()


def test_other_builders_are_told_apart(builder: str) -> None:
    dtrain = make_dmatrix()
    model = xgb.train({"tree_method": "hist"}, dtrain, 2, callbacks=[RunHistory(sign=True)])
    (record,) = records(model)
    assert (record["device"], record["trees"], record["gpu_trees"]) == ("", 2, 0)
    with stock():
        model = xgb.train(TAKE_OVER, dtrain, 2, callbacks=[RunHistory(sign=True)])
    assert records(model)[0]["gpu_trees"] == records(model)[0]["cpu_trees"] == 0


def test_trees_of_the_cpu_are_told(builder: str) -> None:
    dtrain = make_dmatrix()
    nan = np.full(dtrain.num_row(), np.nan, np.float32)
    history = RunHistory(sign=True)
    model = xgb.train(TAKE_OVER, dtrain, 1, obj=lambda *_: (nan, abs(nan)), callbacks=[history])
    (record,) = records(model)
    assert (record["device"], record["gpu_trees"], record["cpu_trees"]) == ("CPU", 0, 1)


def test_nobody_can_tell_if_another_booster_trains(builder: str) -> None:
    dtrain = make_dmatrix()
    history = RunHistory(lambda *_: xgb.train(TAKE_OVER, dtrain, 1), sign=True)
    with pytest.warns(UserWarning, match="4 trees grew in this process while 2 of this booster did"):
        model = xgb.train(TAKE_OVER, dtrain, 2, callbacks=[history])
    (record,) = records(model)
    assert (record["trees"], record["gpu_trees"], record["cpu_trees"]) == (2, None, None)


def test_folds_are_not_signed(builder: str) -> None:
    with pytest.raises(TypeError, match="xgb.cv keeps no model: leave sign out"):
        xgb.cv(TAKE_OVER, make_dmatrix(), 2, nfold=2, callbacks=[RunHistory(sign=True)])


def test_an_estimator(builder: str) -> None:
    X, y = make_table()
    model = xgb.XGBRegressor(tree_method="exact", n_estimators=3, callbacks=[RunHistory(sign=True)])
    assert records(model.fit(X, y).get_booster())[0]["gpu_trees"] == 3
