# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What users do with a booster works through the plugin as it does without."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from oracle import (
    BY_NAME,
    CUDA,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    rng_state,
    run_python,
    stock,
    trees,
    trees_grown,
    uses_plugin,
)
from small_tables import dyadic, make_table, one_round

pytestmark = pytest.mark.usefixtures("builder")
PARAMS = {"nthread": 1, "base_score": 0.5, "max_depth": 4}


def test_instance_weights_and_base_margin() -> None:
    X, _ = make_table()
    rng = np.random.default_rng(1)
    y = dyadic(len(X))
    info = {"weight": rng.integers(0, 9, len(X)) / 4, "base_margin": dyadic(len(X), 2)}
    params = {"nthread": 1} | TAKE_OVER
    ours = xgb.train(params, xgb.DMatrix(X, y, **info), 1)
    with stock():
        theirs = xgb.train(params, xgb.DMatrix(X, y, **info), 1)
    assert_same_model(ours, theirs)


def assert_close(ours: np.ndarray, theirs: np.ndarray, params: dict) -> None:
    """Of several rounds: on a GPU XGBoost rounds gradients in its own way, and a tie may go another way."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    if "device" not in params:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        return
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).mean() <= 0.002 * np.abs(theirs - theirs.mean()).mean() + 1e-6


@pytest.mark.parametrize("params", [TAKE_OVER, CUDA], ids=["cpu", "cuda"])
def test_other_trees_are_not_close(params: dict) -> None:
    X, y = make_table()
    exact, hist = (
        xgb.cv({"tree_method": method}, xgb.DMatrix(X, y), 5, nfold=3, seed=1).to_numpy()
        for method in ("exact", "hist")
    )
    assert_close(exact, exact, params)
    with pytest.raises(AssertionError):
        assert_close(hist, exact, params)


def test_evaluation_early_stopping_and_rates(exact: dict) -> None:
    X, y = make_table(600)

    def train(route: dict) -> tuple[xgb.Booster, dict]:
        dtrain, dvalid = xgb.DMatrix(X[:400], y[:400]), xgb.DMatrix(X[400:], y[400:])
        history: dict = {}
        callbacks = [
            xgb.callback.EarlyStopping(5, save_best=True),
            xgb.callback.LearningRateScheduler(lambda i: 0.5 / (1 + i / 50)),
        ]
        evals = [(dtrain, "train"), (dvalid, "valid")]
        fixed = {"evals_result": history, "verbose_eval": False, "callbacks": callbacks}
        return xgb.train({"nthread": 1} | route, dtrain, 60, evals, **fixed), history

    ours, history = train(exact)
    with stock():
        theirs, expected = train(TAKE_OVER)
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert ours.num_boosted_rounds() == theirs.num_boosted_rounds()
    assert 5 < len(expected["valid"]["rmse"]) < 55  # stopped early
    for data in expected:
        assert_close(history[data]["rmse"], expected[data]["rmse"], exact)


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_prediction_cache(route: dict) -> None:
    X, y = make_table()
    for objective in ({"objective": "reg:squarederror"}, {"objective": "multi:softprob"}):
        dtrain = xgb.DMatrix(X, np.digitize(y, [0, 1]))
        params = {"num_class": 3, "gamma": 0.3, "subsample": 0.7, "num_parallel_tree": 2}
        if objective["objective"] == "reg:squarederror":
            del params["num_class"]
        booster = xgb.Booster(params | objective | route, [dtrain])
        for i in range(4):
            booster.update(dtrain, i)
            assert_cache_is_right(booster, dtrain)


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_known_parameters_are_not_reported_as_unused(
    route: dict, recwarn: pytest.WarningsRecorder
) -> None:
    X, y = make_table(50)
    params = {"gpu_exact_memory_limit": 0.5, "gpu_exact_fallback": "warn", "no_such": 1}
    params |= {"gpu_exact_strategy": "sort", "opt_dense_col": 0.5}
    xgb.train(params | route, xgb.DMatrix(X, y), 1)
    unused = [str(w.message) for w in recwarn if "are not used" in str(w.message)]
    assert len(unused) == 1 and "no_such" in unused[0]
    assert "gpu_exact" not in unused[0] and "opt_dense_col" not in unused[0]


@pytest.mark.parametrize("how", ["xgb_model", "pickle", "copy", "slice"])
def test_continuation_is_the_same_as_one_go(exact: dict, how: str) -> None:
    X, _ = make_table()
    dtrain = xgb.DMatrix(X, dyadic(len(X)))
    params = PARAMS | {"subsample": 0.5, "colsample_bylevel": 0.5, "gamma": 0.5} | exact
    params["base_score"] = 0.0  # then a GPU adds up leaves in the same order, now and later
    whole = xgb.train(params, dtrain, 6)
    half = xgb.train(params, dtrain, 3)
    if how == "xgb_model":
        half = xgb.train(params, dtrain, 3, xgb_model=half)
    else:
        steps = {
            "pickle": lambda b: pickle.loads(pickle.dumps(b)),
            "copy": lambda b: b.copy(),
            "slice": lambda b: b[:3],
        }
        half = steps[how](half)
        for i in range(3, 6):
            half.update(dtrain, i)
    assert uses_plugin(half)
    assert_same_model(half, whole)


def test_checkpoints(exact: dict, tmp_path: Path) -> None:
    X, _ = make_table()
    dtrain = xgb.DMatrix(X, dyadic(len(X)))
    params = PARAMS | {"base_score": 0.0} | exact
    check = xgb.callback.TrainingCheckPoint(tmp_path, interval=2, as_pickle=True)
    whole = xgb.train(params, dtrain, 5, callbacks=[check])
    booster = pickle.loads(max(tmp_path.glob("*.pkl")).read_bytes())
    for i in range(booster.num_boosted_rounds(), 5):
        booster.update(dtrain, i)
    assert uses_plugin(booster)
    assert_same_model(booster, whole)


def test_cross_validation(exact: dict) -> None:
    X, y = make_table()
    before = trees_grown()
    ours = xgb.cv({"nthread": 1} | exact, xgb.DMatrix(X, y), 5, nfold=3, seed=1)
    assert_grown(before, gpu=15)
    with stock():
        theirs = xgb.cv({"nthread": 1} | TAKE_OVER, xgb.DMatrix(X, y), 5, nfold=3, seed=1)
    assert_close(ours.to_numpy(), theirs.to_numpy(), exact)


def test_sklearn(exact: dict) -> None:
    sklearn = pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV

    X, y = make_table()
    queries = np.arange(len(y)) // 30

    def results(route: dict) -> list[np.ndarray]:
        settings = route | {"n_estimators": 5, "n_jobs": 1}
        regressor = sklearn.clone(xgb.XGBRegressor(**settings))
        assert regressor.get_params()["tree_method"] == "exact"
        assert regressor.get_params()["device"] == route.get("device")
        classifier = xgb.XGBClassifier(**settings).fit(X, y > 0)
        stopping = xgb.XGBRegressor(**settings | {"n_estimators": 40}, early_stopping_rounds=3)
        stopping.fit(X, y, eval_set=[(X[:99], y[:99] + 1)], verbose=False)
        continued = xgb.XGBClassifier(**settings).fit(X, y > 0, xgb_model=classifier)
        forest = settings | {"n_estimators": 10, "colsample_bynode": 1.0}
        search = GridSearchCV(regressor, {"max_depth": [2, 4], "gamma": [0, 1]}, cv=2).fit(X, y)
        return [
            classifier.predict_proba(X),
            pickle.loads(pickle.dumps(classifier)).predict_proba(X),
            continued.predict_proba(X),
            stopping.predict(X),
            search.cv_results_["mean_test_score"],
            search.best_estimator_.predict(X),
            xgb.XGBRFRegressor(**forest).fit(X, y).predict(X),
            xgb.XGBRFClassifier(**forest).fit(X, y > 0).predict(X),
            xgb.XGBRanker(**settings).fit(X, np.digitize(y, [0, 1]), qid=queries).predict(X),
            regressor.fit(X, y).feature_importances_,
        ]

    ours = results(exact)
    with stock():
        theirs = results(TAKE_OVER)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, exact)


def test_pruning_is_left_to_the_list_of_updaters() -> None:
    """`grow_colmaker` alone does not prune, `grow_gpu_exact` alone does."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (200, 3)).astype(np.float32), dyadic(200)
    by_list = [
        one_round(X, y, gamma=2, updater=updater)
        for updater in ("grow_colmaker", "grow_colmaker,prune")
    ]
    for ours, theirs in by_list:
        assert_same_model(ours, theirs)
    (unpruned, _), (pruned, _) = by_list
    for name in ("grow_gpu_exact", "grow_gpu_exact,"):  # XGBoost takes a comma at the end
        by_name, _ = one_round(X, y, gamma=2, updater=name)
        assert_same_model(by_name, pruned)
    assert len(unpruned.get_dump()[0]) > len(pruned.get_dump()[0])


def test_a_list_without_prune_is_kept_by_a_copy() -> None:
    """The updaters are made from the configuration, and found to be those that are named."""
    X, y = make_table()
    dtrain = xgb.DMatrix(X, dyadic(len(y)))
    params = {"nthread": 1, "base_score": 0.5, "gamma": 4, "updater": "grow_colmaker"}

    def train() -> xgb.Booster:
        booster = xgb.Booster(params, [dtrain])
        booster.update(dtrain, 0)
        booster = booster.copy()
        booster.set_param({"updater": "grow_colmaker"})
        grad = dyadic(len(y), 1)
        booster.boost(dtrain, 1, grad=grad, hess=np.ones_like(grad))
        return booster

    ours = train()
    with stock():
        theirs = train()
    assert uses_plugin(ours) and not uses_plugin(theirs)
    assert_same_model(ours, theirs)


@pytest.mark.parametrize(
    "dropout",
    [
        {"rate_drop": 0.5, "sample_type": "weighted", "normalize_type": "forest"},
        {"rate_drop": 0.3, "one_drop": 1, "subsample": 0.7},
    ],
    ids=["weighted", "one_drop"],
)
def test_dart(dropout: dict) -> None:
    """Trees are dropped by the generator that the builder draws from."""
    X, y = make_table()
    params = {"nthread": 1, "max_depth": 3, "colsample_bylevel": 0.7} | dropout | TAKE_OVER

    def train() -> tuple[np.ndarray, str]:
        dtrain = xgb.DMatrix(X, y)
        booster = xgb.Booster(params, [dtrain])
        for i in range(10):
            booster.update(dtrain, i)
        return booster.predict(dtrain), rng_state(booster)

    ours, state = train()
    with stock():
        theirs, expected = train()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert state == expected


@pytest.mark.parametrize("updater", ["refresh", "prune", "refresh,prune"])
def test_update_of_a_model(exact: dict, updater: str) -> None:
    """XGBoost's updaters go over trees of ours as over its own; here `prune` is XGBoost's too."""
    X, _ = make_table()
    again = {"process_type": "update", "updater": updater, "gamma": 4, "refresh_leaf": True}

    def train(route: dict) -> xgb.Booster:
        dtrain = xgb.DMatrix(X, dyadic(len(X)))
        booster = xgb.train(PARAMS | route, dtrain, 1)
        assert len(trees(booster)[0]["parents"]) > 9
        dtrain.set_label(dyadic(len(X), 1))
        booster.set_param(again)
        booster.update(dtrain, 0)
        return booster

    ours = train(exact)
    with stock():
        theirs = train(TAKE_OVER)
    assert_same_model(ours, theirs)


def test_threads_change_no_bit() -> None:
    X, y = make_table()

    def train(n: int) -> xgb.Booster:
        params = {"nthread": n, "base_score": 0.5, "subsample": 0.8} | TAKE_OVER
        return xgb.train(params, xgb.DMatrix(X, y), 5)

    assert_same_model(train(1), train(3))


def test_forest() -> None:
    X, _ = make_table()
    params = {"num_parallel_tree": 7, "subsample": 0.6, "colsample_bylevel": 0.6, "eta": 1}
    ours, theirs = one_round(X, dyadic(len(X)), **params)
    assert_same_model(ours, theirs)
    assert len({str(tree["split_conditions"]) for tree in trees(ours)}) == 7


def test_max_leaves_is_ignored_where_there_is_a_depth() -> None:
    X, _ = make_table()
    ours, theirs = one_round(X, dyadic(len(X)), max_leaves=3)
    assert_same_model(ours, theirs)
    assert len(trees(ours)[0]["parents"]) > 5


def make_changes(change: dict | None, params: dict) -> xgb.Booster:
    """Train, change parameters, or pickle for None, and train on."""
    X, y = make_table(60)
    dtrain = xgb.DMatrix(X, y)
    booster = xgb.Booster({"nthread": 1} | params, [dtrain])
    booster.update(dtrain, 0)
    booster = pickle.loads(pickle.dumps(booster)) if change is None else booster
    booster.set_param(change or {})
    for i in range(1, 4):
        booster.update(dtrain, i)
    return booster


@pytest.mark.parametrize("change", [{"eta": 0.1}, None], ids=["set_param", "pickle"])
@pytest.mark.parametrize("params", [BY_NAME, BY_NAME | TAKE_OVER], ids=["alone", "with_exact"])
def test_a_named_updater_is_kept(change: dict | None, params: dict) -> None:
    """XGBoost alone looks for it among the latest parameters only."""
    booster = make_changes(change, params)
    assert uses_plugin(booster)
    assert_same_model(booster, make_changes(change, TAKE_OVER))


@pytest.mark.parametrize(
    ("change", "params", "expected"),
    [
        ({"eta": 0.1} | BY_NAME, BY_NAME, True),
        ({"tree_method": "exact"}, BY_NAME, True),
        ({"tree_method": "hist"}, BY_NAME, False),
        ({"tree_method": "hist"}, TAKE_OVER, False),
        ({"updater": "grow_quantile_histmaker"}, BY_NAME, False),
        (TAKE_OVER, {"tree_method": "hist"}, True),
        (BY_NAME, {"tree_method": "hist"}, True),
        ({"eta": 0.1}, {"tree_method": "hist"}, False),
    ],
)
def test_the_latest_choice_holds(change: dict, params: dict, expected: bool) -> None:
    booster = make_changes(change, params)
    assert uses_plugin(booster) == expected
    booster.set_param({"eta": 0.2})
    assert uses_plugin(booster) == expected


def test_an_updater_that_does_not_exist_can_be_taken_back() -> None:
    dtrain = xgb.DMatrix(*make_table(60))
    booster = xgb.Booster({"updater": "grow_gpu_exact,grow_nothing"}, [dtrain])
    for _ in range(2):
        with pytest.raises(xgb.core.XGBoostError, match="Unknown tree updater grow_nothing"):
            booster.update(dtrain, 0)
    booster.set_param(BY_NAME)
    booster.update(dtrain, 0)
    assert uses_plugin(booster)


INTERRUPTED = {"nthread": 1, "subsample": 0.5, "colsample_bylevel": 0.7, "max_depth": 4}


@pytest.fixture
def interrupted(exact: dict) -> dict:
    """Parameters of a training that draws random numbers."""
    return INTERRUPTED | {"gpu_exact_fallback": "error"} | exact


def assert_as_without(
    booster: xgb.Booster,
    params: dict,
    dtrain: xgb.DMatrix,
    n_rounds: int,
    objective: Callable | None = None,
) -> None:
    """Model and random generator, as a new booster has them that is not interrupted."""
    again = xgb.Booster(params, [dtrain])
    for i in range(n_rounds):
        again.update(dtrain, i, fobj=objective)
    assert_same_model(booster, again)
    assert rng_state(booster) == rng_state(again)


@pytest.mark.parametrize("strategy", ["sort", "histogram"])
def test_interrupt_between_rounds(interrupted: dict, strategy: str) -> None:
    """The booster is that of the rounds so far, and goes on as if nothing had happened."""
    params = interrupted | {"gpu_exact_strategy": strategy}
    dtrain = xgb.DMatrix(*make_table(2000), nthread=1)
    boosters = []

    class Interrupt(xgb.callback.TrainingCallback):
        def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
            boosters.append(model)
            if epoch == 2:
                raise KeyboardInterrupt
            return False

    with pytest.raises(KeyboardInterrupt):
        xgb.train(params, dtrain, 6, callbacks=[Interrupt()])
    booster = boosters[-1]
    assert_as_without(booster, params, dtrain, 3)
    for i in range(3, 6):
        booster.update(dtrain, i)
    assert_as_without(booster, params, dtrain, 6)


@pytest.mark.parametrize("strategy", ["sort", "histogram"])
def test_interrupt_within_a_round(interrupted: dict, strategy: str) -> None:
    """Before the tree, in an objective: the round is as if it had not begun, and is repeated."""
    params = interrupted | {"gpu_exact_strategy": strategy}
    dtrain = xgb.DMatrix(*make_table(2000), nthread=1)
    calls = 0

    def squared(margins: np.ndarray, data: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        return margins - data.get_label(), np.ones_like(margins)

    def interrupting(margins: np.ndarray, data: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return squared(margins, data)

    booster = xgb.Booster(params, [dtrain])
    for i in range(2):
        booster.update(dtrain, i, fobj=interrupting)
    with pytest.raises(KeyboardInterrupt):
        booster.update(dtrain, 2, fobj=interrupting)
    assert_as_without(booster, params, dtrain, 2, squared)
    for i in range(2, 5):
        booster.update(dtrain, i, fobj=interrupting)
    assert_as_without(booster, params, dtrain, 5, squared)


# A round that Ctrl-C falls into ends, then Python raises it; the model of the rounds so far, how the
# booster goes on, and one that is trained afterwards, are as without it.
INTERRUPT = """
import json, os, signal, sys, threading, time, traceback
import numpy as np, xgboost as xgb
import xgboost_gpu_exact
from oracle import rng_state
params = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.integers(0, 9, (20_000, 6)).astype(np.float32)
dtrain = xgb.DMatrix(X, X[:, 0] * X[:, 1], nthread=1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job does not have

def interrupt(begun, after):
    begun.wait()
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGINT)

def train_until_interrupted(booster, after):
    # Gives the functions that the interrupt was raised in.
    begun = threading.Event()
    thread = threading.Thread(target=interrupt, args=(begun, after))
    thread.start()
    try:
        for i in range(100_000):
            if i == 2:
                begun.set()
            booster.update(dtrain, i)
    except KeyboardInterrupt as error:
        thread.join()
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]

def train(n):
    booster = xgb.Booster(params, [dtrain])
    for i in range(n):
        booster.update(dtrain, i)
    return booster

def state(booster):
    return bytes(booster.save_raw()), rng_state(booster)

n_within = 0
for attempt in range(50):  # a signal may fall between two calls of update
    booster = xgb.Booster(params, [dtrain])
    n_within += "update" in train_until_interrupted(booster, 0.001 * attempt)
    n = booster.num_boosted_rounds()
    assert n >= 2 and state(booster) == state(train(n)), n
    booster.update(dtrain, n)
    assert state(booster) == state(train(n + 1)), n
    if n_within == 3:
        break
print(n_within)
"""


@pytest.mark.parametrize("strategy", ["sort", "histogram"])
@pytest.mark.parametrize("route", [TAKE_OVER, CUDA], ids=["cpu", "cuda"])
def test_interrupt(
    builder: str, route: dict, strategy: str, request: pytest.FixtureRequest
) -> None:
    if "device" in route:
        request.getfixturevalue("cuda_context")
    params = INTERRUPTED | route | {"gpu_exact_strategy": strategy, "gpu_exact_fallback": "error"}
    assert int(run_python(INTERRUPT, json.dumps(params))) == 3
