# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Categorical features: XGBoost's exact builder refuses them, so `hist` on the CPU is the judge.

GPU_EXACT_FUZZ sets half of how many problems (300), GPU_EXACT_FUZZ_SEED where the seeds begin (0).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from hist_problems import (
    HIST,
    assert_as_hist,
    assert_nearly_as_hist,
    categories_of,
    codes,
    few_values,
    gradients,
    leaves_of,
    make_categorical_problem,
    often_equal_gradients,
    train_by_hist,
    train_by_rounds,
)
from oracle import (
    BY_NAME,
    RELEASE,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    rng_state,
    stock,
    trees,
    trees_grown,
)
from problems import FIRST, N_PROBLEMS, Problem
from test_external_memory import in_batches
from workers import Failed, Pool, Trained, grow_categorical, train_with_types, trained

pytestmark = [
    pytest.mark.usefixtures("builder"),
    pytest.mark.filterwarnings("ignore:.*lossguide"),
]
BOOSTS = {"nthread": 1, "base_score": 0.0, "min_child_weight": 1.0}


def categorical_problem(n_rows: int = 500, n_features: int = 4, **params: object) -> Problem:
    """Of categories alone."""
    rng = np.random.default_rng(n_rows)
    X = np.stack([codes(rng, n_rows) for _ in range(n_features)], axis=1)
    rounds = [often_equal_gradients(rng, n_rows) for _ in range(3)]
    info = {"label": np.zeros(n_rows, np.float32), "feature_types": ["c"] * n_features}
    return Problem(0, X, BOOSTS | params, info, rounds)


def kinds_of(problem: Problem, grown: list[dict]) -> dict[str, int]:
    """Splits of numbers, of a category and of two sets of categories."""
    kinds = dict.fromkeys(("number", "category", "sets"), 0)
    n_codes = np.nanmax(np.nan_to_num(problem.X, nan=-1), axis=0) + 1
    for tree in grown:
        for node in np.flatnonzero(np.array(tree["left_children"]) >= 0):
            feature = tree["split_indices"][node]
            kind = "number"
            if node in categories_of(tree):
                one = n_codes[feature] < problem.params["max_cat_to_onehot"]
                kind = "category" if one else "sets"
            kinds[kind] += 1
    return kinds


def check_problem(seed: int, route: dict) -> tuple[Problem, list[dict]]:
    """Gives the trees, too."""
    problem = make_categorical_problem(seed)
    how = {
        "gpu_exact_strategy": ["auto", "histogram"][seed // 2 % 2],
        "gpu_exact_fallback": "error",
    }
    context = f"{problem}, {problem.info['feature_types']}, {how}"
    before = trees_grown()
    ours, dtrain = problem.train(how | route)
    n_trees = len(problem.gradients) * problem.params["num_parallel_tree"]
    assert_grown(before, gpu=n_trees, context=context)
    judge = train_by_hist(problem)
    grown = assert_as_hist(ours, judge, problem, context)
    if problem.params.get("max_leaves") != 1:  # a tree without a split draws no columns here
        assert rng_state(ours) == rng_state(judge), context
    assert_cache_is_right(ours, dtrain, context)
    return problem, grown


CHUNKS = [range(FIRST + i, FIRST + i + 50) for i in range(0, 2 * N_PROBLEMS, 50)]


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_is_the_tree_of_hist(seeds: range) -> None:
    n = dict.fromkeys(("number", "category", "sets"), 0)
    for seed in seeds:
        kinds = kinds_of(*check_problem(seed, [TAKE_OVER, BY_NAME][seed // 3 % 2]))
        n = {kind: n[kind] + kinds[kind] for kind in n}
    assert min(n["category"], n["sets"]) > 50, n
    assert n["number"] > 50 or RELEASE < (3, 4), n


def test_is_the_tree_of_hist_on_cuda(exact_on_cuda: dict) -> None:
    for seed in range(60):
        check_problem(seed, exact_on_cuda)


@pytest.mark.parametrize("n_codes", [1000, 10_240, 200_000])
def test_many_categories(n_codes: int) -> None:
    rng = np.random.default_rng(n_codes)
    X = few_values(rng, 20_000, 2)
    X[:, 1] = rng.integers(0, n_codes, len(X))
    info = {"label": np.zeros(len(X), np.float32), "feature_types": ["q", "c"]}
    params = BOOSTS | {"max_depth": 5, "max_cat_threshold": n_codes, "max_cat_to_onehot": 1}
    problem = Problem(0, X, params, info, [gradients(rng, len(X))])
    ours, _ = problem.train(TAKE_OVER)
    (tree,) = assert_as_hist(ours, train_by_hist(problem), problem, n_codes)
    assert max(map(len, categories_of(tree).values())) > n_codes / 4


@pytest.mark.parametrize("seed", range(10))
def test_deleted_rows_go_where_the_others_send_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = categorical_problem(400 + seed, max_cat_to_onehot=[1, 30][seed % 2])
    kept = rng.random(len(problem.X)) < 0.6
    kept[np.nanargmax(problem.X, axis=0)] = True  # a code that only deleted rows have counts, too
    of_kept = Problem(
        0,
        problem.X[kept],
        problem.params,
        problem.info | {"label": problem.info["label"][kept]},
        [(grad[kept], hess[kept]) for grad, hess in problem.gradients],
    )
    problem.gradients = [(g, np.where(kept, h, -1)) for g, h in problem.gradients]
    ours, dtrain = problem.train(TAKE_OVER)
    assert_as_hist(ours, train_by_hist(of_kept), of_kept, seed)
    assert_cache_is_right(ours, dtrain)


@pytest.mark.parametrize("max_cat_to_onehot", [1, 1000])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_default_direction(direction: str, max_cat_to_onehot: int) -> None:
    """`hist` has no such parameter."""
    problem = categorical_problem(max_cat_to_onehot=max_cat_to_onehot, max_depth=4)
    learned, _ = problem.train(TAKE_OVER)
    problem.params["default_direction"] = direction
    given, dtrain = problem.train(TAKE_OVER)
    for tree in trees(given):
        splits = np.array(tree["left_children"]) >= 0
        assert splits.sum() > 3
        assert set(np.array(tree["default_left"])[splits]) == {int(direction == "left")}
    assert trees(learned)[0]["loss_changes"][0] >= trees(given)[0]["loss_changes"][0]
    assert_cache_is_right(given, dtrain)


def test_fractions_are_cut_off() -> None:
    problem = categorical_problem()
    whole, _ = problem.train(TAKE_OVER)
    problem.X = np.where(np.nan_to_num(problem.X) % 2 == 1, problem.X + 0.75, problem.X)
    fractions, _ = problem.train(TAKE_OVER)
    assert_same_model(fractions, whole)


# What is no category.


@pytest.mark.parametrize("value", [-1.0, -0.25, 2.0**24, -1e30])
@pytest.mark.parametrize("named", [False, True])
def test_what_is_no_category_is_an_error(value: float, named: bool) -> None:
    problem = categorical_problem()
    problem.X[17, 2] = value
    if named:
        problem.info["feature_names"] = ["a", "b", "the city", "d"]
    dtrain = problem.dmatrix()
    grad, hess = problem.gradients[0]
    column = 'column 2, "the city",' if named else "column 2"
    number = {2.0**24: "16777216", -1e30: "-1.0.*e[+]30"}.get(value, f"{value:g}")
    told = f"Invalid categorical value detected: {column} has {number}; give .* from 0 to 16777215"
    booster = xgb.Booster(problem.params | TAKE_OVER, [dtrain])
    before = rng_state(booster)
    for _ in range(2):
        with pytest.raises(xgb.core.XGBoostError, match=told):
            booster.boost(dtrain, 0, grad=grad, hess=hess)
    assert booster.num_boosted_rounds() == 0 and rng_state(booster) == before
    problem.info["feature_types"] = ["c", "c", "q", "c"]  # there is no remedy but that
    dtrain.feature_types = problem.info["feature_types"]
    booster.boost(dtrain, 0, grad=grad, hess=hess)
    problem.gradients = problem.gradients[:1]
    assert trees(booster) == trees(problem.train(TAKE_OVER)[0])


def odd_rows(problem: Problem) -> np.ndarray:
    """Rows with codes that training has not seen, or that are none; the last ones have no value."""
    rng = np.random.default_rng(0)
    odd = [-1, -0.5, 301, 320, 1000, 2**24 - 1, 2**24, 2**25, 1e30]
    X = np.where(
        rng.random(problem.X.shape) < 0.3, rng.choice(odd, problem.X.shape), problem.X
    ).astype(np.float32)
    X[-5:] = np.nan
    return X


@pytest.mark.parametrize("max_cat_to_onehot", [1, 1000])
def test_codes_that_training_has_not_seen(max_cat_to_onehot: int) -> None:
    problem = categorical_problem(max_cat_to_onehot=max_cat_to_onehot, max_depth=5)
    ours, _ = problem.train(TAKE_OVER)
    judge = train_by_hist(problem)
    odd = Problem(0, odd_rows(problem), {}, problem.info)
    np.testing.assert_array_equal(leaves_of(ours, odd), leaves_of(judge, odd))
    stump, _ = Problem(
        0, problem.X, problem.params | {"max_depth": 1}, problem.info, problem.gradients[:1]
    ).train(TAKE_OVER)
    (tree,) = trees(stump)
    unseen = [-1, -0.5, 1000, 2**24, 1e30]
    X = np.full((len(unseen), problem.X.shape[1]), 0, np.float32)
    X[:, tree["split_indices"][0]] = unseen
    rows = Problem(0, X, {}, {"feature_types": problem.info["feature_types"]})
    assert set(leaves_of(stump, rows)[:, 0]) == {1}  # to the left, wherever missing values go


# What XGBoost does with such a tree.


def both(**params: object) -> tuple[xgb.Booster, xgb.Booster, Problem]:
    problem = categorical_problem(max_depth=5, max_cat_to_onehot=7, **params)
    return problem.train(TAKE_OVER)[0], train_by_hist(problem), problem


def told_by(booster: xgb.Booster, problem: Problem) -> list:
    dtrain = problem.dmatrix()
    return [
        booster.predict(dtrain),
        booster.predict(dtrain, pred_contribs=True),
        booster.predict(dtrain, pred_interactions=True),
        booster.predict(dtrain, pred_leaf=True),
        np.array(booster.get_dump(dump_format="json")),
        np.array(booster.get_dump()),
    ]


@pytest.mark.parametrize("form", ["json", "ubj", "copy", "slice"])
def test_kept_and_told(form: str) -> None:
    """Predictions, SHAP values, dumps: of the model, of one that was saved, of a slice."""
    ours, judge, problem = both()
    if form == "slice":
        ours, judge = ours[1:3], judge[1:3]
    elif form == "copy":
        ours = ours.copy()
    else:
        ours = xgb.Booster(model_file=ours.save_raw(form))
    assert ours.num_boosted_rounds() == judge.num_boosted_rounds()
    for a, b in zip(told_by(ours, problem), told_by(judge, problem), strict=True):
        np.testing.assert_array_equal(a, b)
    assert "{" in ours.get_dump()[0]


def test_refreshed() -> None:
    ours, judge, problem = both()
    update = {"process_type": "update", "updater": "refresh", "refresh_leaf": True, "nthread": 1}
    dtrain = xgb.DMatrix(
        problem.X, np.linspace(-1, 1, len(problem.X)), feature_types=problem.info["feature_types"]
    )
    refreshed = [
        xgb.train(update, dtrain, 3, xgb_model=xgb.Booster(model_file=booster.save_raw()))
        for booster in (ours, judge)
    ]
    for a, b in zip(*map(trees, refreshed), strict=True):
        for key in ("split_indices", "sum_hessian", "base_weights"):
            assert a[key] == b[key], key
        assert categories_of(a) == categories_of(b)
    predicted = [booster.predict(dtrain) for booster in refreshed]
    np.testing.assert_array_equal(*predicted)
    assert not np.array_equal(predicted[0], ours.predict(dtrain))


def deleted(tree: dict) -> np.ndarray:
    return np.array(tree["split_indices"]) == np.iinfo(np.int32).max


@pytest.mark.parametrize("inside", [True, False])
def test_pruned(inside: bool) -> None:
    """By `gamma` while training, and later by XGBoost's updater: the same trees remain."""
    ours, _, problem = both()
    gamma = float(np.quantile([gain for t in trees(ours) for gain in t["loss_changes"] if gain], 0.6))
    if inside:
        pruned, dtrain = Problem(
            0, problem.X, problem.params | {"gamma": gamma}, problem.info, problem.gradients
        ).train(TAKE_OVER)
        assert_cache_is_right(pruned, dtrain)
    else:
        update = {"process_type": "update", "updater": "prune", "gamma": gamma, "nthread": 1}
        pruned = xgb.train(update | BOOSTS, problem.dmatrix(), 3, xgb_model=ours.copy())
    for tree, whole in zip(trees(pruned), trees(ours), strict=True):
        is_split = np.array(tree["left_children"]) >= 0
        assert 0 < is_split.sum() < len(is_split) // 2 and deleted(tree).any()
        gains = np.array(whole["loss_changes"])
        last = is_split & ~np.isin(np.arange(len(is_split)), np.array(tree["parents"])[is_split])
        assert (gains[last] >= gamma).all()
        sets, all_sets = categories_of(tree), categories_of(whole)
        assert {node: sets[node] for node in np.flatnonzero(is_split)} == {
            node: all_sets[node] for node in np.flatnonzero(is_split)
        }
        if inside:  # no leaf keeps categories
            assert set(sets) == set(np.flatnonzero(is_split))
            assert set(np.array(tree["split_type"])[~is_split]) == {0}
    again = xgb.Booster(model_file=pruned.save_raw())
    np.testing.assert_array_equal(leaves_of(again, problem), leaves_of(pruned, problem))


def test_what_is_not_pruned_keeps_its_categories() -> None:
    """XGBoost's name without `prune`: `gamma` is not looked at."""
    ours, _, problem = both()
    problem.params |= {"gamma": 1e9}
    unpruned, _ = problem.train({"updater": "grow_colmaker"})
    assert trees(unpruned) == trees(ours)


CASES = {
    "squared_error": {},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "logistic": {"objective": "binary:logistic"},
    "dart": {"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.1},
    "forest": {"num_parallel_tree": 3, "colsample_bytree": 0.6},
    "leaf_wise": {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0},
}


def train_case(params: dict, route: dict, continued: bool) -> tuple[xgb.Booster, np.ndarray]:
    rng = np.random.default_rng(6)
    X = np.stack([codes(rng, 500) for _ in range(5)], axis=1)
    y = np.nan_to_num(X[:, 0] % 3 * (X[:, 1] % 5)) / 4 + rng.standard_normal(500)
    if "objective" in params:
        y = np.digitize(y, [0.5, 1.5][: params.get("num_class", 2) - 1])
    types = ["c"] * 5
    dtrain, dtest = (
        xgb.DMatrix(X[rows], y[rows], feature_types=types) for rows in (slice(400), slice(400, 500))
    )
    params = {"nthread": 1, "max_depth": 4, "eta": 0.4} | params | route
    return train_by_rounds(params, dtrain, dtest, continued)


@pytest.mark.parametrize("continued", [False, True], ids=["early_stopping", "continued"])
@pytest.mark.parametrize("case", CASES)
def test_boosters(case: str, continued: bool) -> None:
    assert_nearly_as_hist(lambda route: train_case(CASES[case], route, continued), continued)


# What a table of categories is made of.

CITIES = np.array(["Oslo", "Rome", "Bonn", "Kyiv", "Lima", "Cairo"])


def of_pandas(names: np.ndarray) -> object:
    pd = pytest.importorskip("pandas")
    all_cities = [*CITIES, "Paris"]  # of which no row has one
    return pd.DataFrame(
        {str(i): pd.Categorical(column, categories=all_cities) for i, column in enumerate(names.T)}
    )


def of_polars(names: np.ndarray) -> object:
    pl = pytest.importorskip("polars")
    columns = {str(i): column.tolist() for i, column in enumerate(names.T)}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Enum(CITIES.tolist())))


def of_arrow(names: np.ndarray) -> object:
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {str(i): pa.array(c.tolist()).dictionary_encode() for i, c in enumerate(names.T)}
    )


@pytest.mark.parametrize("make", [of_pandas, of_polars, of_arrow])
@pytest.mark.parametrize("max_cat_to_onehot", [1, 100])
def test_frames(make: Callable, max_cat_to_onehot: int) -> None:
    rng = np.random.default_rng(4)
    names = CITIES[rng.integers(0, 6, (300, 3))].astype(object)
    names[rng.random(names.shape) < 0.1] = None
    frame, y = make(names), (rng.integers(-32, 33, 300) / 16).astype(np.float32)
    params = BOOSTS | {"max_depth": 4, "max_cat_to_onehot": max_cat_to_onehot}
    dtrain = xgb.DMatrix(frame, y, enable_categorical=True)
    ours = xgb.train(params | TAKE_OVER, dtrain, 1)
    with stock():
        judge = xgb.train(params | HIST, dtrain, 1)
    (a,), (b,) = trees(ours), trees(judge)
    assert categories_of(a) == categories_of(b) and len(categories_of(a)) > 5
    np.testing.assert_array_equal(ours.predict(dtrain), judge.predict(dtrain))
    for method in (TAKE_OVER, {"tree_method": gpu_exact.EXACT}):
        estimator = xgb.XGBRegressor(**params, **method, n_estimators=1, enable_categorical=True)
        np.testing.assert_array_equal(estimator.fit(frame, y).predict(frame), ours.predict(dtrain))
        assert estimator.get_params()["tree_method"] == "exact"


def test_going_on_with_another_frame(exact: dict) -> None:
    """One of other codes has those of the model if it is given them."""
    pd = pytest.importorskip("pandas")
    names = CITIES[np.random.default_rng(5).integers(0, 6, 200)]
    y = np.char.str_len(names.astype(str)) ** 2.0 + (names == "Rome")
    params = BOOSTS | exact | {"max_depth": 3}
    frames = [
        pd.DataFrame({"city": pd.Categorical(names, categories=order)})
        for order in (CITIES, CITIES[::-1])
    ]
    first = xgb.train(params, xgb.DMatrix(frames[0], y, enable_categorical=True), 2)
    types = first.get_categories()
    tables = [
        xgb.DMatrix(frame, y, feature_types=types, enable_categorical=True) for frame in frames
    ]
    tables.append(xgb.DMatrix(frames[0], y, enable_categorical=True))
    same, other, plain = (xgb.train(params, table, 4, xgb_model=first) for table in tables)
    assert_same_model(other, same)
    assert trees(plain) == trees(same)
    error = np.sqrt(np.mean((other.predict(tables[1]) - y) ** 2))
    assert error < np.sqrt(np.mean((first.predict(tables[1]) - y) ** 2)) / 2


@pytest.mark.parametrize("bounds", [[0, 500], [0, 1, 33, 200, 499, 500]], ids=["one", "five"])
def test_batches(tmp_path: Path, bounds: list[int]) -> None:
    problem = categorical_problem()
    whole, _ = problem.train(TAKE_OVER)
    dtrain = in_batches(problem.X, problem.info["label"], bounds, tmp_path)
    dtrain.feature_types = problem.info["feature_types"]
    booster = xgb.Booster(problem.params | TAKE_OVER, [dtrain])
    for i, (grad, hess) in enumerate(problem.gradients):
        booster.boost(dtrain, i, grad=grad, hess=hess)
    assert trees(booster) == trees(whole)


def test_types_that_change_between_rounds() -> None:
    """Each round is that of a table which always had the types; it is prepared when they change."""
    problem = categorical_problem()
    types = [["c"] * 4, ["c"] * 4, ["q", "c", "q", "c"], ["int"] * 4, None, ["c"] * 4]
    problem.gradients = (2 * problem.gradients)[: len(types)]
    dtrain = problem.dmatrix()
    booster, set_ups = xgb.Booster(problem.params | TAKE_OVER, [dtrain]), []
    for i, (grad, hess) in enumerate(problem.gradients):
        dtrain.feature_types = types[i]
        booster.boost(dtrain, i, grad=grad, hess=hess)
        set_ups.append(gpu_exact.last_run().set_up_ms)
        alone = Problem(
            0, problem.X, problem.params, {"feature_types": types[i], "label": problem.info["label"]}, [(grad, hess)]
        )
        assert trees(booster[i])[0] == trees(alone.train(TAKE_OVER)[0])[0], i
    changed = [a != b for a, b in zip(set_ups, set_ups[1:], strict=False)]
    assert changed == [False, True, True, False, True]


# Several workers.


@pytest.fixture(scope="module", params=[1, 2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    pool = Pool(request.param)
    yield pool
    pool.close()


def test_workers(pool: Pool) -> None:
    """Those without rows know nothing of types, nor do their models."""

    def boosted(answer: Trained) -> dict:
        return json.loads(answer.model)["learner"]["gradient_booster"]

    seeds = list(range(24))
    answers = pool.run(grow_categorical, seeds)
    assert not [answer for answer in answers if isinstance(answer, Failed)], answers
    for seed, *by_rank in zip(seeds, *answers, strict=True):
        before = gpu_exact.last_run().gpu_trees
        alone = trained(*make_categorical_problem(seed).train(TAKE_OVER), before)
        for answer in by_rank:
            assert isinstance(answer, Trained)
            assert boosted(answer) == boosted(alone) and answer.rng == alone.rng, seed


@pytest.mark.parametrize("pool", [3], indirect=True)
def test_workers_agree_on_types(pool: Pool) -> None:
    same = [["c", "q"]] * 3
    answers = pool.run(train_with_types, [same, same, [["q", "q"]] * 3, same])
    assert len({model for model, _ in answers}) == 1
    for _, set_ups in answers:
        assert [a != b for a, b in zip(set_ups, set_ups[1:], strict=False)] == [False, True, True]
    answers = pool.run(train_with_types, [same, [["c", "q"], ["c", "q"], ["c", "c"]]])
    for answer in answers:
        assert isinstance(answer, Failed)
        assert "Rank 2 of 3 differs from rank 0 in `feature_types`: name the same" in answer.text
    answers = pool.run(train_with_types, [[["c", "q"], None, ["c", "q"]]])
    assert all("Rank 1 of 3 differs from rank 0 in `feature" in answer.text for answer in answers)


@pytest.mark.parametrize("pool", [2], indirect=True)
def test_workers_are_told_what_is_no_category(pool: Pool) -> None:
    answers = pool.run(train_with_types, [[["c", "c"]] * 2])  # column 1 has negative numbers
    assert all("column 1 has -" in answer.text for answer in answers), answers


def test_gradients_that_are_not_finite_are_an_error() -> None:
    problem = categorical_problem()
    problem.gradients = [(np.full(500, np.nan, np.float32), np.ones(500, np.float32))]
    with pytest.raises(xgb.core.XGBoostError, match="categorical features.*NaN.*hist"):
        problem.train(TAKE_OVER)


def test_children_without_a_hessian() -> None:
    """Beside releases before 3.4 no kernel tries them, and XGBoost's builder refuses categories."""
    problem = categorical_problem()
    problem.params["min_child_weight"] = 0
    if RELEASE < (3, 4):
        with pytest.raises(xgb.core.XGBoostError, match="categorical features.*min_child_weight"):
            problem.train(TAKE_OVER)
    else:
        assert_as_hist(problem.train(TAKE_OVER)[0], train_by_hist(problem), problem, "")
