# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""`tree_method="exact", device="cuda"` works wherever `device="cpu"` does.

Trees are compared with those that `grow_colmaker` grows on the CPU. Labels are multiples of 1/16,
so that trees of a first round are the same bit for bit, wherever gradients were computed; later
rounds may start from predictions that a GPU added up in another order.
"""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import booster_calls
import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    BY_NAME,
    CUDA,
    TAKE_OVER,
    Pretence,
    assert_cache_is_right,
    assert_same_model,
    run_python,
    stock,
    uses_plugin,
)
from problems import assert_equals_stock
from small_tables import dyadic, make_table

PARAMS = {"nthread": 1, "base_score": 0.5, "max_depth": 4}


def config_of(booster: xgb.Booster) -> dict:
    return json.loads(booster.save_config())["learner"]


def table(n_rows: int = 300) -> xgb.DMatrix:
    X, _ = make_table(n_rows)
    return xgb.DMatrix(X, dyadic(n_rows))


@pytest.mark.parametrize("start", [0, 50])
def test_equals_stock(exact_on_cuda: dict, start: int) -> None:
    """A few of the problems of test_fuzz.py, so that they run without a GPU too."""
    for seed in range(start, start + 50):
        assert_equals_stock(seed, exact_on_cuda)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"gamma": 2, "max_depth": 6},
        {"num_parallel_tree": 5, "subsample": 0.6, "colsample_bylevel": 0.6},
        {"objective": "binary:logistic", "scale_pos_weight": 2},
        {"booster": "dart", "rate_drop": 0.5},
    ],
    ids=["plain", "gamma", "forest", "logistic", "dart"],
)
def test_train(exact_on_cuda: dict, params: dict) -> None:
    dtrain = table()
    if "objective" in params:
        dtrain.set_label(dyadic(300) > 0)
    ours = xgb.train(PARAMS | params | exact_on_cuda, dtrain, 1)
    with stock():
        theirs = xgb.train(PARAMS | params | TAKE_OVER, dtrain, 1)
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert_same_model(ours, theirs)
    assert_cache_is_right(ours, dtrain)


# An estimator that was pickled where the plugin is.
WITHOUT_PLUGIN = """
import pickle, sys
import numpy as np, xgboost as xgb
folder = sys.argv[1]
X, y = (np.load(f"{folder}/{name}.npy") for name in "Xy")
estimator = pickle.load(open(f"{folder}/pickle", "rb"))
assert "xgboost_gpu_exact" not in sys.modules
np.testing.assert_array_equal(estimator.predict(X), np.load(f"{folder}/predicted.npy"))
try:
    estimator.fit(X, y)
except xgb.core.XGBoostError as error:
    print(error)
"""


def test_an_estimator_without_the_plugin(cuda_context: None, tmp_path: Path) -> None:
    """It predicts the same; its parameters are its own, and XGBoost refuses to train with them."""
    pytest.importorskip("sklearn")
    X, y = make_table()
    estimator = xgb.XGBRegressor(**CUDA, n_estimators=3).fit(X, y)
    for name, array in {"X": X, "y": y, "predicted": estimator.predict(X)}.items():
        np.save(tmp_path / name, array)
    (tmp_path / "pickle").write_bytes(pickle.dumps(estimator))
    assert "The `exact` tree method is not supported on GPU" in run_python(WITHOUT_PLUGIN, str(tmp_path))


def test_changes_at_any_time(exact_on_cuda: dict) -> None:
    dtrain = table()
    booster = xgb.Booster(PARAMS | exact_on_cuda, [dtrain])
    with stock():
        theirs = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
        assert not uses_plugin(theirs)  # configures: its updaters are made here
    changes = [{"eta": 0.1}, {"max_depth": 3, "gamma": 1}, {"subsample": 0.7}, {"nthread": 2}]
    rng = np.random.default_rng(0)
    for i, change in enumerate(changes):
        grad, hess = (rng.integers(-64, 65, 300) / 16).astype(np.float32), np.ones(300, np.float32)
        for each in (booster, theirs):
            each.set_param(change)
            each.boost(dtrain, i, grad=grad, hess=hess)
        assert uses_plugin(booster) and not uses_plugin(theirs)
    assert_same_model(booster, theirs)


def test_updaters_named_between(exact_on_cuda: dict) -> None:
    """Others may be named, and the choice of `exact` comes back as XGBoost has it."""
    dtrain = table()
    booster = xgb.Booster(PARAMS | exact_on_cuda, [dtrain])
    booster.update(dtrain, 0)
    for updater in ("grow_gpu_exact", "grow_colmaker", "grow_colmaker,prune"):
        booster.set_param({"updater": updater})
        booster.update(dtrain, 1)
        assert uses_plugin(booster)
    booster.set_param({"tree_method": "exact", "updater": "grow_gpu_exact"})
    booster.set_param({"tree_method": "exact"})
    booster.update(dtrain, 2)
    names = [u["name"] for u in config_of(booster)["gradient_booster"]["updater"]]
    assert uses_plugin(booster) and "grow_colmaker" in names


def test_a_configuration_is_given_to_another_booster(exact_on_cuda: dict) -> None:
    dtrain = table()
    one = xgb.train(PARAMS | exact_on_cuda, dtrain, 1)
    other = xgb.Booster({"base_score": 0.5}, [dtrain])  # no part of a configuration
    other.load_config(one.save_config())
    other.update(dtrain, 0)
    assert uses_plugin(other)
    assert other.get_dump() == one.get_dump()


@pytest.mark.parametrize("route", ["exact", "by_name"])
def test_what_is_saved_needs_no_plugin(exact_on_cuda: dict, route: str) -> None:
    device = {k: v for k, v in exact_on_cuda.items() if k == "device"}
    params = exact_on_cuda if route == "exact" else BY_NAME | device
    config = config_of(xgb.train(PARAMS | params, table(), 2))["gradient_booster"]
    assert config["gbtree_train_param"]["tree_method"] == "auto"  # which no device refuses
    names = {u["name"] for u in config["updater"]}
    assert names <= {"grow_colmaker", "prune"}
    assert set(config["gbtree_train_param"]["updater"].split(",")) == names
    del config["gpu_exact"]  # for ours alone
    assert "grow_gpu_exact" not in json.dumps(config)


@pytest.mark.parametrize("objective", [{}, {"objective": "multi:softprob", "num_class": 3}])
@pytest.mark.parametrize("booster_name", ["gbtree", "dart"])
def test_every_call(
    exact_on_cuda: dict, tmp_path: Path, objective: dict, booster_name: str
) -> None:
    """A process without the plugin gives the same answers."""
    # Whole blocks of 128 rows: of a last block that is not full XGBoost 3.4's `pred_leaf` on a GPU may
    # take missing values for others, as its threads without a row leave before they fill their part.
    X, _ = make_table(256)
    y = np.arange(256) % 3
    params = PARAMS | {"booster": booster_name, "rate_drop": 0.3, "base_score": 0.5} | objective
    booster = xgb.train(params | exact_on_cuda, xgb.DMatrix(X, y), 5)
    files = [tmp_path / name for name in ("model.pkl", "table.npz", "answers.pkl")]
    files[0].write_bytes(pickle.dumps(booster))
    np.savez(files[1], X=X, y=y)
    code = "import runpy; runpy.run_path('booster_calls.py', run_name='__main__')"
    run_python(code, *map(str, files))
    expected = pickle.loads(files[2].read_bytes())
    answers = booster_calls.answers(booster, xgb.DMatrix(X, y))
    assert answers.keys() == expected.keys()
    if Pretence.on:
        assert "refused" not in list(map(str, answers.values()))
    for name, answer in answers.items():
        if isinstance(answer, np.ndarray):
            np.testing.assert_allclose(answer, expected[name], 1e-5, 1e-5, err_msg=name)
        else:
            assert answer == expected[name], name


TRAIN_ON = """
import pickle, sys
import numpy as np, xgboost as xgb
booster = pickle.load(open(sys.argv[1], "rb"))
assert "xgboost_gpu_exact" not in sys.modules
X = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
booster.predict(xgb.DMatrix(X))
booster.update(xgb.DMatrix(X, X[:, 0]), 5)
pickle.dump(booster, open(sys.argv[1], "wb"))
"""


@pytest.mark.parametrize("route", ["exact", "by_name"])
def test_a_process_without_the_plugin_trains_on(
    exact_on_cuda: dict, tmp_path: Path, route: str
) -> None:
    device = {k: v for k, v in exact_on_cuda.items() if k == "device"}
    params = exact_on_cuda if route == "exact" else BY_NAME | device
    booster = xgb.train(PARAMS | params, table(), 3)
    file = tmp_path / "model.pkl"
    file.write_bytes(pickle.dumps(booster))
    run_python(TRAIN_ON, str(file))
    again = pickle.loads(file.read_bytes())
    again.set_param({"tree_method": "exact"})  # which the other process has no way to keep
    assert again.num_boosted_rounds() == 4
    again.update(table(), 4)
    assert uses_plugin(again)


def test_threads_configure_pickles_at_once(exact_on_cuda: dict) -> None:
    dtrain = table()
    booster = xgb.train(PARAMS | exact_on_cuda, dtrain, 3)
    booster.set_param({"validate_parameters": False})  # saves a configuration, with others at work
    pickled = pickle.dumps(booster)
    expected = pickle.loads(pickled).predict(dtrain)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            booster = pickle.loads(pickled)
            # No predictions: where threads bring a new model to a GPU, XGBoost 3.4 itself reads
            # what another thread's stream has not copied yet.
            rounds = pool.map(lambda _, b=booster: b.num_boosted_rounds(), range(4))
            assert list(rounds) == [3] * 4
            np.testing.assert_array_equal(booster.predict(dtrain), expected)


def test_a_bad_parameter_harms_nothing(exact_on_cuda: dict) -> None:
    dtrain = table()
    booster = xgb.Booster(PARAMS | exact_on_cuda | {"max_depth": -1}, [dtrain])
    for _ in range(2):
        with pytest.raises(xgb.core.XGBoostError, match="max_depth"):
            booster.update(dtrain, 0)
    booster.set_param({"max_depth": 4})
    booster.update(dtrain, 0)
    assert_same_model(booster, xgb.train(PARAMS | exact_on_cuda, dtrain, 1))


def test_is_refused_again_where_exact_is_given_back(exact_on_cuda: dict) -> None:
    gpu_exact.take_over(False)  # and, unlike stock(), on that device
    try:
        # An XGBoost without CUDA refuses whatever is on a GPU.
        with pytest.raises(xgb.core.XGBoostError, match="not supported on GPU|with GPU support"):
            xgb.train(PARAMS | exact_on_cuda, table(), 1)
    finally:
        gpu_exact.take_over(True)


NOT_TAKEN_OVER = """
import json, sys
import numpy as np, xgboost as xgb, xgboost_gpu_exact
from oracle import CUDA, Pretence
params = json.loads(sys.argv[1])
Pretence.set(params != CUDA)
try:
    xgb.train(params, xgb.DMatrix(np.eye(9), np.arange(9)), 1)
except xgb.core.XGBoostError as error:
    print(error)
"""


def test_is_refused_where_exact_was_never_taken_over(exact_on_cuda: dict) -> None:
    params = json.dumps(exact_on_cuda)
    told = run_python(NOT_TAKEN_OVER, params, GPU_EXACT_TAKEOVER="0")
    assert "not supported on GPU" in told or "with GPU support" in told


def test_refusals_are_those_of_exact(exact_on_cuda: dict) -> None:
    sampling = {"subsample": 0.5, "sampling_method": "gradient_based"}
    with pytest.raises(xgb.core.XGBoostError, match="Only uniform sampling is supported"):
        xgb.train(exact_on_cuda | sampling, table(), 1)
    X, _ = make_table()
    with pytest.raises(xgb.core.XGBoostError, match="Make a `DMatrix`"):
        xgb.train(exact_on_cuda, xgb.QuantileDMatrix(X, dyadic(300)), 1)


def test_devices_and_methods_change_on_a_gpu(cuda_context: None) -> None:
    dtrain = table()
    booster = xgb.Booster(PARAMS | CUDA, [dtrain])
    steps = [
        ({}, True),
        ({"tree_method": "hist"}, False),
        ({"tree_method": "exact"}, True),
        ({"device": "cpu"}, True),
        ({"tree_method": "hist"}, False),
        ({"tree_method": "exact", "device": "cuda:0"}, True),
    ]
    for i, (change, ours) in enumerate(steps):
        booster.set_param(change)
        booster.update(dtrain, i)
        assert uses_plugin(booster) == ours
        cached = booster.predict(dtrain, output_margin=True)
        fresh = booster.predict(xgb.DMatrix(dtrain.get_data()), output_margin=True)
        # Devices add the leaves of several trees in another order.
        np.testing.assert_allclose(cached, fresh, 1e-5, 1e-6)
    assert config_of(booster)["generic_param"]["device"] == "cuda:0"


def test_the_second_gpu(cuda_context: None) -> None:
    if not gpu_exact.device_status(1).usable:
        pytest.skip("needs two GPUs")
    dtrain = table()
    ours = xgb.train(PARAMS | CUDA | {"device": "cuda:1"}, dtrain, 1)
    assert config_of(ours)["generic_param"]["device"] == "cuda:1"
    with stock():
        theirs = xgb.train(PARAMS | TAKE_OVER, dtrain, 1)
    assert_same_model(ours, theirs)


def test_exact_is_the_same_as_by_name(cuda_context: None) -> None:
    """In rounds that start from gradients of the GPU; by name no `prune` follows the updater."""
    X, y = make_table(5000)
    params = {"gamma": 0.5, "subsample": 0.8, "objective": "multi:softprob", "num_class": 3}
    dtrain = xgb.DMatrix(X, np.digitize(y, [0, 1]))
    exact = xgb.train(params | CUDA, dtrain, 5)
    by_name = xgb.train(params | BY_NAME | {"device": "cuda"}, dtrain, 5)
    assert_same_model(exact, by_name)


SLICE_OF_AN_EARLIER_BOOSTER = """
import numpy as np, xgboost as xgb
X = np.arange(60, dtype=np.float32).reshape(20, 3)
booster = xgb.train({"max_depth": 2}, xgb.DMatrix(X, X[:, 0]), 3)
import xgboost_gpu_exact
try:
    print(booster[:2].num_boosted_rounds())
except xgb.core.XGBoostError:
    print(booster.copy()[:2].num_boosted_rounds())
"""


def test_a_booster_made_before_the_import_can_be_copied_and_sliced() -> None:
    assert run_python(SLICE_OF_AN_EARLIER_BOOSTER).strip() == "2"

