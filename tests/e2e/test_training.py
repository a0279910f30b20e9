# Copyright 2026, the gpu_exact contributors
"""What users do with a booster works through the plugin as it does without."""

import numpy as np
import pytest
import xgboost as xgb
from oracle import (
    BY_NAME,
    TAKE_OVER,
    assert_cache_is_right,
    assert_same_model,
    stock,
    trees,
    uses_plugin,
)
from small_tables import dyadic, make_table, one_round
from xgboost_gpu_exact.compare import compare_rounds
from xgboost_gpu_exact.tree_diff import Verdict

pytestmark = pytest.mark.usefixtures("builder")


@pytest.mark.parametrize(
    "objective",
    [
        "reg:squarederror",
        "reg:absoluteerror",
        "count:poisson",
        "binary:logistic",
        "multi:softprob",
        "rank:ndcg",
    ],
)
def test_objectives(objective: str) -> None:
    X, y = make_table()
    labels = {
        "reg:": y,
        "count:": np.floor(np.abs(y) * 2),
        "binary:": y > 0,
        "multi:": np.digitize(y, [0, 1]),
        "rank:": np.digitize(y, [0, 1]),
    }
    kind = objective[: objective.index(":") + 1]
    params = {"objective": objective, "nthread": 1, "max_depth": 4}
    params |= {"num_class": 3} if kind == "multi:" else {}
    dtrain = xgb.DMatrix(X, labels[kind], qid=np.arange(len(y)) // 30 if kind == "rank:" else None)
    reports = [tree for trees in compare_rounds(params, dtrain, 8) for tree in trees]
    assert len(reports) == 8 * params.get("num_class", 1)
    assert max(report.verdict for report in reports) < Verdict.DIFFERENT
    assert sum(report.n_nodes for report in reports) > 8


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


def test_early_stopping_and_evaluation() -> None:
    X, y = make_table(600)

    def train() -> tuple[xgb.Booster, dict]:
        dtrain, dvalid = xgb.DMatrix(X[:400], y[:400]), xgb.DMatrix(X[400:], y[400:])
        history: dict = {}
        booster = xgb.train(
            {"nthread": 1, "eta": 0.5} | TAKE_OVER,
            dtrain,
            60,
            evals=[(dtrain, "train"), (dvalid, "valid")],
            evals_result=history,
            early_stopping_rounds=5,
            verbose_eval=False,
        )
        return booster, history

    ours, history = train()
    with stock():
        theirs, expected = train()
    assert 0 < ours.best_iteration == theirs.best_iteration < 55
    for data in expected:
        np.testing.assert_allclose(history[data]["rmse"], expected[data]["rmse"], rtol=1e-5)


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME | TAKE_OVER], ids=["take_over", "by_name"])
def test_learning_rate_scheduler(route: dict) -> None:
    X, y = make_table()
    rates = [0.5, 0.25, 0.125]

    def train(params: dict) -> xgb.Booster:
        scheduler = xgb.callback.LearningRateScheduler(rates)
        return xgb.train({"nthread": 1} | params, xgb.DMatrix(X, y), 3, callbacks=[scheduler])

    ours = train(route)
    with stock():
        theirs = train(TAKE_OVER)
    assert uses_plugin(ours)
    np.testing.assert_allclose(
        ours.predict(xgb.DMatrix(X)), theirs.predict(xgb.DMatrix(X)), rtol=1e-5, atol=1e-6
    )


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
    params = {"gpu_exact_interleaved_levels": 1, "gpu_exact_fallback": "warn", "no_such": 1}
    xgb.train(params | {"opt_dense_col": 0.5} | route, xgb.DMatrix(X, y), 1)
    unused = [str(w.message) for w in recwarn if "are not used" in str(w.message)]
    assert len(unused) == 1 and "no_such" in unused[0]
    assert "gpu_exact" not in unused[0] and "opt_dense_col" not in unused[0]


def test_continuation_is_the_same_as_one_go() -> None:
    X, y = make_table()
    params = {"nthread": 1, "subsample": 0.5, "colsample_bylevel": 0.5} | TAKE_OVER
    dtrain = xgb.DMatrix(X, y)
    whole = xgb.train(params, dtrain, 6)
    half = xgb.train(params, dtrain, 3)
    assert_same_model(xgb.train(params, dtrain, 3, xgb_model=half), whole)


def test_cross_validation_and_sklearn() -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    X, y = make_table()

    def results() -> tuple:
        folds = xgb.cv({"nthread": 1} | TAKE_OVER, xgb.DMatrix(X, y), 5, nfold=3, seed=1)
        regressor = xgb.XGBRegressor(tree_method="exact", n_estimators=5, n_jobs=1)
        classifier = xgb.XGBClassifier(tree_method="exact", n_estimators=5, n_jobs=1)
        search = model_selection.GridSearchCV(regressor, {"max_depth": [2, 4]}, cv=2).fit(X, y)
        return (
            folds.to_numpy(),
            search.cv_results_["mean_test_score"],
            regressor.fit(X, y).predict(X),
            classifier.fit(X, y > 0).predict_proba(X),
        )

    ours = results()
    with stock():
        theirs = results()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_root_is_open_to_every_feature() -> None:
    """With interaction constraints XGBoost bars features past the number of rows from the root."""
    X = np.zeros((4, 10), np.float32)
    X[:, 9] = [0, 1, 2, 3]
    y = np.array([-1, -1, 1, 1], np.float32)
    params = {"max_depth": 1, "interaction_constraints": "[[8, 9]]", "base_score": 0.0}
    ours, theirs = one_round(X, y, **params)
    assert trees(theirs)[0]["left_children"] == [-1]
    assert trees(ours)[0]["split_indices"][0] == 9


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
    by_name, _ = one_round(X, y, gamma=2, updater="grow_gpu_exact")
    assert_same_model(by_name, pruned)
    assert len(unpruned.get_dump()[0]) > len(pruned.get_dump()[0])
