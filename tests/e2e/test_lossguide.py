# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""`grow_policy="lossguide"`: XGBoost's exact builder ignores it, so `hist` on the CPU is the judge.

GPU_EXACT_FUZZ sets half of how many problems (300), GPU_EXACT_FUZZ_SEED where the seeds begin (0).
"""

import json

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from hist_problems import (
    HIST,
    assert_nearly_as_hist,
    draw_constraints,
    few_values,
    gradients,
    train_by_rounds,
)
from oracle import (
    BY_NAME,
    NO_GPU,
    RELEASE,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    rng_state,
    run_python,
    stock,
    trees,
    trees_grown,
)
from problems import FIRST, N_PROBLEMS, STRATEGIES, left_to_xgboost

pytestmark = [
    pytest.mark.usefixtures("builder"),
    pytest.mark.filterwarnings("ignore:.*lossguide"),
]
LEAF_WISE = {"grow_policy": "lossguide", "nthread": 1}
SAMPLES_COLUMNS = RELEASE >= (3, 3)  # in 3.2 `hist` draws in another way, and it is refused
needs_columns_sampled = pytest.mark.skipif(
    not SAMPLES_COLUMNS, reason="leaf-wise trees draw no columns beside XGBoost 3.2"
)
ALIKE = ("left_children", "right_children", "split_indices", "loss_changes", "sum_hessian")


def draw_params(rng: np.random.Generator, n_features: int) -> dict:
    def pick(*values: float) -> float:
        return float(rng.choice(values))

    params = LEAF_WISE | {
        "seed": int(rng.integers(1000)),
        "base_score": 0.0,
        "max_leaves": int(rng.choice([0, 1, 2, 3, 5, 9, 17, 31, 40])),
        "max_depth": int(rng.choice([0, 0, 0, 2, 3, 4, 6])),
        "gamma": pick(0, 0, 0, 20, 300),
        "eta": pick(1, 0.3),
        "reg_lambda": pick(0, 1, 4),
        "reg_alpha": pick(0, 0, 0.5),
        "min_child_weight": pick(0, 1, 5),
        "num_parallel_tree": int(rng.choice([1, 1, 2])),
        "colsample_bytree": pick(1, 1, 0.6),
        "colsample_bylevel": pick(1, 1, 0.6),
    }
    if left_to_xgboost(params):
        params["min_child_weight"] = 0.5
    if not SAMPLES_COLUMNS:
        params |= {"colsample_bytree": 1.0, "colsample_bylevel": 1.0}
    if rng.random() < 0.3:  # what gains nothing gains what rounding leaves: equal, and in any order
        params |= {"max_delta_step": 0.7, "gamma": pick(2, 20)}
    return params | draw_constraints(rng, n_features)


def boost(params: dict, X: np.ndarray, rounds: list) -> tuple[xgb.Booster, xgb.DMatrix]:
    dtrain = xgb.DMatrix(X, np.zeros(len(X)), nthread=1)
    booster = xgb.Booster(params, [dtrain])
    for i, (grad, hess) in enumerate(rounds):
        booster.boost(dtrain, i, grad=grad, hess=hess)
    return booster, dtrain


def hist(params: dict, X: np.ndarray, rounds: list) -> xgb.Booster:
    with stock():
        return boost(params | HIST, X, rounds)[0]


def assert_as_hist(ours: xgb.Booster, judge: xgb.Booster, X: np.ndarray, context: object) -> int:
    """The same nodes, their rows, gains and leaves; gives the number of splits."""
    n_splits = 0
    for a, b in zip(trees(ours), trees(judge), strict=True):
        for key in ALIKE:
            assert a[key] == b[key], (key, context)
        is_split = np.array(b["left_children"]) >= 0
        for key, where in (("split_conditions", ~is_split), ("base_weights", is_split)):
            np.testing.assert_array_equal(
                np.array(a[key])[where], np.array(b[key])[where], f"{key}; {context}"
            )
        n_splits += int(is_split.sum())
    with stock():
        leaves = [  # by the CPU: what is loaded has no device
            xgb.Booster(model_file=bytearray(booster.save_raw())).predict(
                xgb.DMatrix(X), pred_leaf=True
            )
            for booster in (ours, judge)
        ]
    np.testing.assert_array_equal(*leaves, err_msg=str(context))
    return n_splits


def check_problem(seed: int, route: dict) -> int:
    rng = np.random.default_rng([2, seed])
    n_rows, n_features = int(rng.integers(50, 800)), int(rng.integers(1, 6))
    X = few_values(rng, n_rows, n_features)
    params = draw_params(rng, n_features)
    rounds = [gradients(rng, n_rows) for _ in range(rng.integers(1, 3))]
    how = {
        "gpu_exact_strategy": str(rng.choice(STRATEGIES)),
        "gpu_exact_fallback": "error",
    }
    if rng.random() < 0.2 and gpu_exact.device_status().usable:
        how["gpu_exact_devices"] = "0,0"
    context = f"seed {seed}, {X.shape}, {params}, {how}"
    before = trees_grown()
    ours, dtrain = boost(params | how | route, X, rounds)
    assert_grown(before, gpu=len(rounds) * params["num_parallel_tree"], context=context)
    judge = hist(params, X, rounds)
    n_splits = assert_as_hist(ours, judge, X, context)
    if params["max_leaves"] != 1:  # a tree without a split draws no columns here
        assert rng_state(ours) == rng_state(judge), context
    assert_cache_is_right(ours, dtrain, context)
    return n_splits


CHUNKS = [range(FIRST + i, FIRST + i + 50) for i in range(0, 2 * N_PROBLEMS, 50)]


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_is_the_tree_of_hist(seeds: range) -> None:
    assert sum(check_problem(seed, [TAKE_OVER, BY_NAME][seed % 2]) for seed in seeds) > 100


def test_is_the_tree_of_hist_on_cuda(exact_on_cuda: dict) -> None:
    for seed in range(100):
        check_problem(seed, exact_on_cuda)


@pytest.mark.parametrize("seed", range(20))
def test_deleted_rows_go_where_the_others_send_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = few_values(rng, 400, 3)
    grad, hess = gradients(rng, 400)
    kept = rng.random(400) < 0.6
    kept[:2] = True  # which have two values of each column
    params = LEAF_WISE | {"base_score": 0.0, "max_leaves": 20, "max_depth": 0}
    strategy = {"gpu_exact_strategy": STRATEGIES[seed % 3]}
    ours, dtrain = boost(params | strategy | TAKE_OVER, X, [(grad, np.where(kept, hess, -1))])
    judge = hist(params, X[kept], [(grad[kept], hess[kept])])
    assert assert_as_hist(ours, judge, X[kept], seed) > 10
    assert_cache_is_right(ours, dtrain)


@pytest.mark.parametrize(
    "rates",
    [{}]
    + [
        pytest.param(rates, marks=needs_columns_sampled)
        for rates in ({"colsample_bylevel": 0.8}, {"colsample_bylevel": 0.8, "colsample_bynode": 0.5})
    ],
    ids=["all", "by_level", "by_node"],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_smaller_tree_is_the_beginning_of_a_larger_one(rates: dict, strategy: str) -> None:
    """Whatever was grown in vain, and drawn for it. `hist` draws for nodes in the order of splits,
    which is not to be had: it is no judge of these draws."""
    rng = np.random.default_rng(4)
    X = few_values(rng, 2000, 6)
    rounds = [gradients(rng, 2000)]
    params = LEAF_WISE | {"base_score": 0.0, "max_depth": 0, "gpu_exact_strategy": strategy}
    params |= rates | TAKE_OVER
    grown = []
    for max_leaves in (60, 4, 9, 25, 59):
        booster, dtrain = boost(params | {"max_leaves": max_leaves}, X, rounds)
        (tree,) = trees(booster)
        assert tree["left_children"].count(-1) == max_leaves
        assert_cache_is_right(booster, dtrain)
        by_split = [None] * (max_leaves - 1)
        for nidx, left in enumerate(tree["left_children"]):
            if left != -1:
                keys = ("split_indices", "split_conditions", "default_left", "loss_changes")
                by_split[left // 2] = (nidx, *(tree[key][nidx] for key in keys))
        grown.append(by_split)
    for smaller in grown[1:]:
        assert smaller == grown[0][: len(smaller)]


@needs_columns_sampled
def test_draws_for_nodes_differ_from_node_to_node() -> None:
    """Of two columns one is open to a node; it is not the same one everywhere in a level or path."""
    rng = np.random.default_rng(5)
    X = few_values(rng, 3000, 2, missing=0)
    params = LEAF_WISE | {"colsample_bynode": 0.5, "max_depth": 5, "reg_lambda": 0} | TAKE_OVER
    used = []
    for seed in (0, 1):
        booster, _ = boost(params | {"seed": seed}, X, [gradients(rng, 3000)] * 2)
        used += [
            [f for f, left in zip(t["split_indices"], t["left_children"], strict=True) if left > 0]
            for t in trees(booster)
        ]
    assert all(2 < sum(features) < len(features) - 2 for features in used), used
    assert len({str(features) for features in used}) == 4


@pytest.mark.skipif(SAMPLES_COLUMNS, reason="leaf-wise trees draw no columns beside XGBoost 3.2 alone")
@pytest.mark.parametrize("rate", ["colsample_bytree", "colsample_bylevel", "colsample_bynode"])
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_sampled_columns_are_refused(route: dict, rate: str) -> None:
    with pytest.raises(xgb.core.XGBoostError, match=f"`{rate}` .*0.5.*, or install XGBoost 3.3"):
        xgb.train(LEAF_WISE | route | {rate: 0.5}, xgb.DMatrix(np.eye(9), np.arange(9)), 1)


@needs_columns_sampled
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_drawn_in_vain(seed: int) -> None:
    """What is searched in vain lies in levels that `hist` draws for, too: the next tree's draws agree."""
    rng = np.random.default_rng([7, seed])
    X = few_values(rng, 600, 9, missing=0)
    params = LEAF_WISE | {"base_score": 0.0, "max_depth": 0, "max_leaves": 5, "seed": seed}
    params |= {"colsample_bylevel": 0.4, "num_parallel_tree": 4}
    rounds = [gradients(rng, 600) for _ in range(2)]
    ours, _ = boost(params | TAKE_OVER, X, rounds)
    judge = hist(params, X, rounds)
    assert_as_hist(ours, judge, X, seed)
    assert rng_state(ours) == rng_state(judge)


CASES = {
    "squared_error": {},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "logistic": {"objective": "binary:logistic"},
    "forest": {"num_parallel_tree": 3, "colsample_bytree": 0.6 if SAMPLES_COLUMNS else 1.0},
}
if SAMPLES_COLUMNS:  # else `hist` draws less, and drops other trees
    CASES["dart"] = {"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.1}


def train_case(params: dict, route: dict, continued: bool) -> tuple[xgb.Booster, np.ndarray]:
    rng = np.random.default_rng(6)
    X = few_values(rng, 500, 5)
    y = np.nan_to_num(X[:, 0] * X[:, 1]) / 50 + rng.standard_normal(500)
    if "objective" in params:
        y = np.digitize(y, [-0.5, 0.5][: params.get("num_class", 2) - 1])
    dtrain, dtest = xgb.DMatrix(X[:400], y[:400]), xgb.DMatrix(X[400:], y[400:])
    params = (
        LEAF_WISE | {"max_leaves": 12, "max_depth": 0, "eta": 0.4, "gamma": 0.01} | params | route
    )
    return train_by_rounds(params, dtrain, dtest, continued)


@pytest.mark.parametrize("continued", [False, True], ids=["early_stopping", "continued"])
@pytest.mark.parametrize("case", CASES)
def test_boosters(case: str, continued: bool) -> None:
    assert_nearly_as_hist(lambda route: train_case(CASES[case], route, continued), continued)


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_sampled_rows_and_pruning(route: dict) -> None:
    rng = np.random.default_rng(8)
    X = few_values(rng, 700, 4)
    rounds = [gradients(rng, 700) for _ in range(3)]
    params = (
        LEAF_WISE | {"max_leaves": 15, "max_depth": 0, "gamma": 300.0, "subsample": 0.6} | route
    )
    ours, dtrain = boost(params, X, rounds)
    assert_cache_is_right(ours, dtrain)
    assert min(min(filter(None, t["loss_changes"])) for t in trees(ours)) >= 300
    assert 1 < min(t["left_children"].count(-1) for t in trees(ours)) < 15  # ended by `gamma`
    followed = {"updater": "grow_gpu_exact,prune"} if route is BY_NAME else {}
    again, _ = boost(params | followed, X, rounds)
    assert [t["left_children"] for t in trees(again)] == [t["left_children"] for t in trees(ours)]


def test_one_column_of_many_equal_gains() -> None:
    """The root gains less than all below it, which are equal: a tree of every node is not grown."""
    X = np.arange(4096, dtype=np.float32).reshape(-1, 1)
    y = np.where(np.arange(4096) // 2 % 2, 8, -8).astype(np.float32)
    params = LEAF_WISE | {"base_score": 0.0, "max_depth": 0, "max_leaves": 6, "max_bin": 4096}
    rounds = [(-y, np.ones(4096, np.float32))]
    ours, dtrain = boost(params | TAKE_OVER, X, rounds)
    assert trees(ours)[0]["left_children"].count(-1) == 6
    assert_cache_is_right(ours, dtrain)


def test_pickled_amid_training() -> None:
    rng = np.random.default_rng(9)
    X = few_values(rng, 300, 4)
    rounds = [gradients(rng, 300) for _ in range(4)]
    params = LEAF_WISE | {"max_leaves": 9, "max_depth": 0} | TAKE_OVER
    params |= {"colsample_bylevel": 0.7} if SAMPLES_COLUMNS else {}
    at_once, _ = boost(params, X, rounds)
    dtrain = xgb.DMatrix(X, np.zeros(300), nthread=1)
    booster = xgb.Booster(params, [dtrain])
    for i, (grad, hess) in enumerate(rounds):
        booster = booster.copy() if i == 2 else booster
        booster.boost(dtrain, i, grad=grad, hess=hess)
    assert_same_model(booster, at_once)


TOLD = """
import json, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
told = []
for params in json.loads(__import__("sys").argv[1]):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.train({"tree_method": "exact"} | params, xgb.DMatrix(np.eye(9), np.arange(9)), 2)
    told.append(sum("exact builder ignores it" in str(w.message) for w in caught))
print(json.dumps(told))
"""


def test_a_warning_says_once_that_exact_ignores_it() -> None:
    policies = ["depthwise", "lossguide", "lossguide"]
    params = [{"max_leaves": 4}, *({"grow_policy": policy} for policy in policies)]
    assert json.loads(run_python(TOLD, json.dumps(params))) == [0, 0, 1, 0]


WITHOUT_A_GPU = """
import sys, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
warnings.simplefilter("ignore")
params = {"tree_method": "exact", "grow_policy": "lossguide", "gpu_exact_fallback": sys.argv[1]}
try:
    xgb.train(params, xgb.DMatrix(np.eye(9), np.arange(9)), 1)
except xgb.core.XGBoostError as error:
    print(xgboost_gpu_exact.device_status().text in str(error), error)
"""


@pytest.mark.parametrize("fallback", ["warn", "error"])
def test_without_a_gpu_it_is_an_error(fallback: str) -> None:
    env = NO_GPU | {"GPU_EXACT_REFERENCE_REFUSES": "there is none"}
    told = run_python(WITHOUT_A_GPU, fallback, **env)
    assert told.startswith("True") and 'ignores `grow_policy="lossguide"`' in told
    assert 'tree_method="hist"' in told


def test_gradients_that_are_not_finite_are_an_error() -> None:
    grad = np.full(9, np.nan, np.float32)
    with pytest.raises(xgb.core.XGBoostError, match='ignores `grow_policy="lossguide"`.*NaN'):
        boost(LEAF_WISE | TAKE_OVER, np.eye(9, dtype=np.float32), [(grad, np.ones(9, np.float32))])
