# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Models and configurations outlive the process and do not need the plugin."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from oracle import BY_NAME, TAKE_OVER, run_python, stock, trees, uses_plugin
from small_tables import make_table

pytestmark = pytest.mark.usefixtures("builder")

PREDICT_WITHOUT_PLUGIN = """
import pickle, sys
import numpy as np, xgboost as xgb
how, model, table, expected = sys.argv[1:]
if how == "load":
    booster = xgb.Booster(model_file=model)
else:
    booster = pickle.load(open(model, "rb"))
assert "xgboost_gpu_exact" not in sys.modules
np.testing.assert_array_equal(booster.predict(xgb.DMatrix(np.load(table))), np.load(expected))
booster.set_param({"tree_method": "exact"})
booster.update(xgb.DMatrix(np.load(table), np.load(expected)), 5)
"""


def test_saves_loads_and_predicts_without_the_plugin(tmp_path: Path) -> None:
    X, y = make_table()
    np.save(tmp_path / "X.npy", X)
    for route in (TAKE_OVER, BY_NAME):
        booster = xgb.train({"nthread": 1} | route, xgb.DMatrix(X, y), 5)
        for name in ("model.json", "model.ubj"):
            booster.save_model(tmp_path / name)
            np.save(tmp_path / "y.npy", booster.predict(xgb.DMatrix(X)))
            files = [str(tmp_path / f) for f in (name, "X.npy", "y.npy")]
            run_python(PREDICT_WITHOUT_PLUGIN, "load", *files)


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_pickles_without_the_plugin(tmp_path: Path, route: dict, used_before: bool) -> None:
    X, y = make_table()
    params = {"nthread": 1, "gpu_exact_strategy": "sort"} | route
    booster = xgb.train(params, xgb.DMatrix(X, y), 5)
    if used_before:
        booster.predict(xgb.DMatrix(X))
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(booster))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", booster.predict(xgb.DMatrix(X)))
    files = [str(tmp_path / f) for f in ("model.pkl", "X.npy", "y.npy")]
    run_python(PREDICT_WITHOUT_PLUGIN, "pickle", *files)


def exact_gradients(n_rows: int) -> dict[str, np.ndarray]:
    """Whose sums are exact in any order."""
    return {"grad": np.arange(n_rows, dtype=np.float32) % 7 - 3, "hess": np.ones(n_rows, np.float32)}


def test_a_pickle_made_without_the_plugin_goes_on_with_it() -> None:
    X, y = make_table()
    with stock():
        theirs = xgb.train({"nthread": 1} | TAKE_OVER, xgb.DMatrix(X, y), 2)
        pickled = pickle.dumps(theirs)
        theirs.boost(xgb.DMatrix(X, y), 2, **exact_gradients(len(y)))
    ours = pickle.loads(pickled)
    ours.boost(xgb.DMatrix(X, y), 2, **exact_gradients(len(y)))
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert trees(ours) == trees(theirs)


def test_a_pickle_goes_on_where_exact_is_given_back() -> None:
    """With XGBoost's own builder, and its own `prune`."""
    X, y = make_table()
    dtrain = xgb.DMatrix(X, y)
    ours = xgb.train({"nthread": 1, "gamma": 5.0} | TAKE_OVER, dtrain, 2)
    pickled = pickle.dumps(ours)
    ours.boost(dtrain, 2, **exact_gradients(len(y)))
    with stock():
        theirs = pickle.loads(pickled)
        theirs.boost(dtrain, 2, **exact_gradients(len(y)))
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert trees(ours) == trees(theirs)


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_parameters_survive_pickling(route: dict) -> None:
    X, y = make_table()
    params = {"gpu_exact_memory_limit": 0.5, "gpu_exact_fallback": "error"}
    params |= {"gpu_exact_strategy": "sort", "opt_dense_col": 0.5}
    booster = xgb.train(params | route, xgb.DMatrix(X, y), 1)
    config = pickle.loads(pickle.dumps(booster)).save_config()
    assert '"gpu_exact_memory_limit":"0.5"' in config
    assert '"gpu_exact_fallback":"error"' in config
    assert '"gpu_exact_strategy":"sort"' in config
    assert '"opt_dense_col":"0.5"' in config


def test_a_configuration_of_before_xgboost_2(recwarn: pytest.WarningsRecorder) -> None:
    """It has updaters by their names, and no list of them."""
    dtrain = xgb.DMatrix(*make_table())
    params = {"nthread": 1, "opt_dense_col": 0.5, "gpu_exact_strategy": "sort"}
    config = json.loads(xgb.train(params | TAKE_OVER, dtrain, 1).save_config())
    booster = config["learner"]["gradient_booster"]
    booster["updater"] = {updater.pop("name"): updater for updater in booster["updater"]}
    loaded = xgb.Booster(cache=[dtrain])
    loaded.load_config(json.dumps(config))
    loaded.update(dtrain, 0)
    assert uses_plugin(loaded)
    assert '"gpu_exact_strategy":"sort"' in loaded.save_config()
    assert '"opt_dense_col":"0.5"' in loaded.save_config()


def test_a_parameter_of_earlier_versions(recwarn: pytest.WarningsRecorder) -> None:
    """A saved one is passed over; XGBoost says of one that is given that it is not used."""
    dtrain = xgb.DMatrix(*make_table())
    gone = "gpu_exact_interleaved_levels"
    params = {"nthread": 1, "gpu_exact_strategy": "sort"} | TAKE_OVER
    config = xgb.train(params, dtrain, 1).save_config()
    old = config.replace('"gpu_exact_strategy"', f'"{gone}":"3","gpu_exact_strategy"')
    assert old.count(gone) == 1
    loaded = xgb.Booster(cache=[dtrain])
    loaded.load_config(old)
    loaded.update(dtrain, 0)
    assert uses_plugin(loaded)
    assert '"gpu_exact_strategy":"sort"' in loaded.save_config()
    assert not [w for w in recwarn if gone in str(w.message)]
    assert uses_plugin(xgb.train(params | {gone: 3}, dtrain, 1))
    (unused,) = (str(w.message) for w in recwarn if gone in str(w.message))
    assert "are not used" in unused


OTHERS = {  # parameters that make XGBoost drop the updater, and those that bring it back
    "refresh": ({"process_type": "update", "updater": "refresh"}, {"process_type": "default"}),
    "hist": ({"tree_method": "hist"}, {}),
    "another name": (BY_NAME, {}),
}


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("others", OTHERS)
def test_parameters_outlive_the_updater(others: str, pickled: bool) -> None:
    """XGBoost tells a new updater only what is set from then on: so it is with its own parameters."""
    dtrain = xgb.DMatrix(*make_table())
    kept = {"gpu_exact_fallback": "error", "gpu_exact_strategy": "sort"}
    between, back = OTHERS[others]

    def trained(params: dict, between: dict) -> str:
        booster = xgb.Booster(params | TAKE_OVER | {"nthread": 1, "opt_dense_col": 0.5}, [dtrain])
        booster.update(dtrain, 0)
        if pickled:
            booster = pickle.loads(pickle.dumps(booster))
        booster.set_param(between)
        booster.update(dtrain, 0)
        booster.set_param(back | {"tree_method": "exact"})
        booster.update(dtrain, 1)
        assert uses_plugin(booster) == bool(params)
        return booster.save_config()

    config = trained(kept, between)
    for name, value in kept.items():
        assert f'"{name}":"{value}"' in config
    with stock():
        theirs = trained({}, TAKE_OVER if between is BY_NAME else between)
    dense = ['"opt_dense_col":"0.5"' in text for text in (config, theirs)]
    assert dense == [between is BY_NAME] * 2
