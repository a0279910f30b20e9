# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Problems that XGBoost's `hist` on the CPU judges, as its own exact builder ignores or refuses them.

On tables of at most `max_bin` distinct values a column `hist` sees every split that there is. It then
differs in thresholds (the next value of the table, not the middle), in the default direction of nodes
without missing values, and in the leaves' base weights, which have the learning rate in them. Where a
table has numerical columns, labels have thousands of values, as of two equal splits each may take
another one.
"""

import json
from collections.abc import Callable

import numpy as np
import xgboost as xgb
from oracle import RELEASE, TAKE_OVER, stock, trees
from problems import Problem

HIST = {"tree_method": "hist", "device": "cpu", "max_bin": 256}
ROOTS_PARENT = 2147483647


def few_values(
    rng: np.random.Generator, n_rows: int, n_features: int, missing: float = 0.4
) -> np.ndarray:
    """Every column has two distinct values or more, and in every second table some are missing."""
    X = np.empty((n_rows, n_features), np.float32)
    for f in range(n_features):
        values = np.unique((10 * rng.standard_normal(rng.choice([4, 6, 20, 90, 200]))).round(3))
        X[:, f] = values[rng.integers(0, len(values), n_rows)]
        X[:2, f] = values[:2]
        if rng.random() < missing:
            X[2:, f][rng.random(n_rows - 2) < rng.choice([0.1, 0.6])] = np.nan
    return X


def codes(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """A column of categories: some codes are absent, some frequent, and some values missing."""
    n = int(rng.choice([2, 3, 4, 6, 20, 90, 300]))
    present = rng.permutation(n + rng.integers(0, 6))[:n]
    share = rng.random(n_rows) ** rng.choice([1, 3])
    column = present[(n * share).astype(int)].astype(np.float32)
    if rng.random() < 0.4:
        column[rng.random(n_rows) < rng.choice([0.1, 0.6])] = np.nan
    return column


def gradients(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Their sums are exact, and seldom equal."""
    grad = (rng.integers(-4000, 4001, n_rows) / 256).astype(np.float32)
    hess = rng.integers(1, 33, n_rows) / 16 if rng.random() < 0.3 else np.ones(n_rows)
    return grad, hess.astype(np.float32)


def often_equal_gradients(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Their sums are exact, and often equal, or 0."""
    grad = rng.integers(-12, 13, n_rows) / 4
    hess = rng.integers(0, 9, n_rows) / 4 if rng.random() < 0.5 else np.ones(n_rows)
    return grad.astype(np.float32), hess.astype(np.float32)


def draw_constraints(rng: np.random.Generator, n_features: int) -> dict:
    params = {}
    if rng.random() < 0.3:
        signs = rng.integers(-1, 2, rng.integers(1, n_features + 1))
        params["monotone_constraints"] = "(" + ",".join(map(str, signs)) + ")"
    if rng.random() < 0.3:
        groups = [
            rng.permutation(n_features)[: rng.integers(1, 4)].tolist()
            for _ in range(rng.integers(1, 4))
        ]
        params["interaction_constraints"] = json.dumps(groups)
    return params


def make_categorical_problem(seed: int) -> Problem:
    """A third is split one category from the others, a third into two sets, and half of all problems
    are deeper than four levels; half have numerical columns, too, beside XGBoost 3.4."""
    rng = np.random.default_rng([3, seed])

    def pick(*values: float) -> float:
        return float(rng.choice(values))

    n_rows, n_features = int(rng.integers(50, 800)), int(rng.integers(1, 6))
    X = few_values(rng, n_rows, n_features)
    # Before 3.4 gains have single precision: those of different cuts of a number are often equal.
    mixed = seed // 6 % 2 == 1 and RELEASE >= (3, 4)
    types = ["q" if mixed and rng.random() < 0.5 else "c" for _ in range(n_features)]
    for f in np.flatnonzero(np.array(types) == "c"):
        X[:, f] = codes(rng, n_rows)
    params = {
        "nthread": 1,
        "seed": int(rng.integers(1000)),
        "base_score": 0.0,
        "max_cat_to_onehot": [1000, 1, int(rng.choice([4, 30]))][seed % 3],
        "max_cat_threshold": int(rng.choice([64, 64, 64, 8, 2, 1])),
        "max_depth": int(rng.choice([1, 2, 3, 4] if seed % 2 else [5, 6, 8, 10])),
        "eta": pick(1, 0.3),
        "reg_lambda": pick(0, 1, 4),
        "reg_alpha": pick(0, 0, 0.5),
        # Beside releases before 3.4 children without a hessian are left to XGBoost, see WhyNotOnGpu().
        "min_child_weight": pick(0 if RELEASE >= (3, 4) else 0.5, 1, 5),
        "max_delta_step": 0.0 if mixed else pick(0, 0, 0.75),
        "num_parallel_tree": int(rng.choice([1, 1, 2])),
        # Before 3.3 `hist` draws columns in another way.
        "colsample_bytree": pick(1, 1, 0.6 if RELEASE >= (3, 3) else 1),
        "colsample_bylevel": pick(1, 1, 0.6 if RELEASE >= (3, 3) else 1),
    } | draw_constraints(rng, n_features)
    if rng.random() < 0.3:
        params |= {"grow_policy": "lossguide", "max_leaves": int(rng.choice([0, 2, 5, 17, 40]))}
    make = gradients if mixed else often_equal_gradients
    rounds = [make(rng, n_rows) for _ in range(rng.integers(1, 3))]
    info = {"label": np.zeros(n_rows, np.float32), "feature_types": types}
    return Problem(seed, X, params, info, rounds)


def train_by_hist(problem: Problem) -> xgb.Booster:
    with stock():
        return problem.train(HIST)[0]


def train_by_rounds(
    params: dict, dtrain: xgb.DMatrix, dtest: xgb.DMatrix, continued: bool
) -> tuple[xgb.Booster, np.ndarray]:
    """A booster that goes on after three rounds, or stops early, and its predictions for its rows."""
    first = xgb.train(params, dtrain, 3) if continued else None
    stopping = {} if continued else {"evals": [(dtest, "test")], "early_stopping_rounds": 3}
    booster = xgb.train(params, dtrain, 15, xgb_model=first, verbose_eval=False, **stopping)
    return booster, booster.predict(dtrain)


def assert_nearly_as_hist(
    train: Callable[[dict], tuple[xgb.Booster, np.ndarray]], continued: bool
) -> None:
    """Sums of these gradients are rounded, each side's in its own way: only nearly the same leaves."""
    ours, predicted = train(TAKE_OVER)
    with stock():
        judge, expected = train(HIST)
    for a, b in zip(trees(ours), trees(judge), strict=True):
        assert a["left_children"] == b["left_children"]
        assert a["split_indices"] == b["split_indices"]
        assert categories_of(a) == categories_of(b)
    np.testing.assert_allclose(predicted, expected, 1e-4, 1e-5)
    if not continued:
        assert ours.best_iteration == judge.best_iteration


def leaves_of(booster: xgb.Booster, problem: Problem) -> np.ndarray:
    """Of each row and tree; by the CPU: what is loaded has no device."""
    with stock():
        loaded = xgb.Booster(model_file=bytearray(booster.save_raw()))
        leaves = loaded.predict(problem.dmatrix(), pred_leaf=True, strict_shape=True)
    return leaves.reshape(len(problem.X), -1).astype(int)


def categories_of(tree: dict) -> dict[int, tuple[int, ...]]:
    """Those that go right, by node."""
    sets = zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    )
    return {node: tuple(tree["categories"][begin : begin + size]) for node, begin, size in sets}


def misses_values(tree: dict, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Of each node: whether a row of it has no value of the feature that it is split on."""
    missing = np.zeros(len(tree["parents"]), bool)
    parents, features = np.array(tree["parents"]), np.array(tree["split_indices"])
    rows, nodes = np.arange(len(X)), parents[leaves]
    while (below := nodes != ROOTS_PARENT).any():
        rows, nodes = rows[below], nodes[below]
        missing[nodes[np.isnan(X[rows, features[nodes]])]] = True
        nodes = parents[nodes]
    return missing


def assert_as_hist(ours: xgb.Booster, judge: xgb.Booster, problem: Problem, context: object) -> list:
    """The same nodes, their rows, sets of categories, gains and leaves; the same directions where values
    are missing. Of categories alone everything is the same, but what leaves say of splits. Gives the
    trees."""
    types = problem.info.get("feature_types", ["q"])
    alike = ["left_children", "right_children", "parents", "split_indices", "sum_hessian", "split_type"]
    our_trees, our_leaves = trees(ours), leaves_of(ours, problem)
    np.testing.assert_array_equal(our_leaves, leaves_of(judge, problem), err_msg=str(context))
    for i, (a, b) in enumerate(zip(our_trees, trees(judge), strict=True)):
        for key in alike:
            assert a[key] == b[key], (key, context)
        assert categories_of(a) == categories_of(b), context
        is_split = np.array(b["left_children"]) >= 0
        told = misses_values(b, problem.X, our_leaves[:, i])
        parts = {
            "loss_changes": is_split,
            "base_weights": is_split,
            "default_left": is_split if "q" not in types else told,
            "split_conditions": ~is_split if "q" in types else np.ones_like(is_split),
        }
        for key, where in parts.items():
            np.testing.assert_array_equal(
                np.array(a[key])[where], np.array(b[key])[where], f"{key}; {context}"
            )
    return our_trees
