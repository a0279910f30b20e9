# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Every objective: the plugin's trees are XGBoost's own, round by round on the same gradients."""

import numpy as np
import pytest
import xgboost as xgb
from oracle import RELEASE, TAKE_OVER, assert_same_model, stock, trees
from small_tables import dyadic, make_table
from xgboost_gpu_exact.compare import compare_models, compare_rounds
from xgboost_gpu_exact.tree_diff import Verdict

pytestmark = pytest.mark.usefixtures("builder")

X, Y = make_table()
POSITIVE = np.abs(Y) + 0.125
CLASSES = np.digitize(Y, [0, 1])
QUERIES = {"qid": np.arange(len(Y)) // 30}
SURVIVAL = {
    "label_lower_bound": POSITIVE,
    "label_upper_bound": np.where(Y > 0, POSITIVE, np.inf),  # censored where infinite
}
OBJECTIVES = {
    "reg:squarederror": Y,
    "reg:squaredlogerror": POSITIVE,
    "reg:pseudohubererror": Y,
    "reg:absoluteerror": Y,
    "reg:quantileerror": Y,
    "reg:logistic": (Y > 0) * 0.75,
    "reg:gamma": POSITIVE,
    "reg:tweedie": np.floor(POSITIVE),
    "count:poisson": np.floor(2 * POSITIVE),
    "binary:logistic": Y > 0,
    "binary:logitraw": Y > 0,
    "binary:hinge": Y > 0,
    "multi:softmax": CLASSES,
    "multi:softprob": CLASSES,
    "rank:ndcg": CLASSES,
    "rank:map": CLASSES > 0,
    "rank:pairwise": CLASSES,
    "survival:aft": Y,
    "survival:cox": np.where(Y > 0, POSITIVE, -POSITIVE),
}
if RELEASE >= (3, 3):  # has one more
    OBJECTIVES["reg:expectileerror"] = Y
ALPHAS = np.array([0.1, 0.5, 0.9])
PARAMS = {
    "multi:softmax": {"num_class": 3},
    "multi:softprob": {"num_class": 3},
    "reg:quantileerror": {"quantile_alpha": ALPHAS},
    "reg:expectileerror": {"expectile_alpha": ALPHAS},
}
ROUNDS = 5


def check(objective: str, trees_a_round: int = 1, **extra: object) -> None:
    info = QUERIES if objective.startswith("rank:") else {}
    dtrain = xgb.DMatrix(X, OBJECTIVES[objective], **info)
    if objective == "survival:aft":
        dtrain.set_info(**SURVIVAL)
    params = {"objective": objective, "nthread": 1, "max_depth": 4}
    params |= PARAMS.get(objective, {}) | extra
    reports = [tree for trees in compare_rounds(params, dtrain, ROUNDS) for tree in trees]
    assert len(reports) == ROUNDS * trees_a_round
    assert max(report.verdict for report in reports) < Verdict.DIFFERENT
    assert sum(report.n_nodes for report in reports) > 8 * trees_a_round


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objective(objective: str) -> None:
    check(objective, trees_a_round=3 if objective in PARAMS else 1)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:pairwise"])
def test_unbiased_ranking(objective: str) -> None:
    """As one training, as XGBoost cannot go on from a copy: the position biases are not copied."""
    dtrain = xgb.DMatrix(X, CLASSES, **QUERIES)
    params = {"objective": objective, "nthread": 1, "lambdarank_unbiased": True} | TAKE_OVER
    params |= {"lambdarank_pair_method": "topk"}
    ours = xgb.train(params, dtrain, ROUNDS)
    with stock():
        theirs = xgb.train(params, dtrain, ROUNDS)
    reports = compare_models(ours, theirs, dtrain)
    n_identical = next((i for i, r in enumerate(reports) if r.differences), ROUNDS)
    assert n_identical > 0
    assert max(r.verdict for r in reports[: n_identical + 1]) < Verdict.DIFFERENT


@pytest.mark.parametrize("distribution", ["normal", "logistic", "extreme"])
def test_survival_distributions(distribution: str) -> None:
    check("survival:aft", aft_loss_distribution=distribution)


def test_classes_bit_for_bit() -> None:
    """Of four classes at equal margins all gradients are quarters."""
    params = {"objective": "multi:softprob", "num_class": 4, "base_score": 0.5, "nthread": 1}
    dtrain = xgb.DMatrix(X, np.digitize(Y, [-1, 0, 1]))
    ours = xgb.train(params | TAKE_OVER, dtrain, 1)
    with stock():
        theirs = xgb.train(params | TAKE_OVER, dtrain, 1)
    assert_same_model(ours, theirs)
    assert len(trees(ours)) == 4 and all(len(tree["parents"]) > 8 for tree in trees(ours))


@pytest.mark.parametrize("classes", [1, 3])
def test_custom_objective_bit_for_bit(classes: int) -> None:
    """Gradients from Python, one column a class, with exact sums in every round."""
    targets = np.stack([dyadic(len(X), seed) for seed in range(classes)], axis=1)

    def signs(predicted: np.ndarray, _: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        grad = np.sign(predicted.reshape(targets.shape) - targets) / 2
        return grad, np.ones_like(grad)

    def train() -> xgb.Booster:
        params = {"nthread": 1, "base_score": 0.0, "subsample": 0.8, "max_depth": 4} | TAKE_OVER
        params |= {"num_class": classes, "objective": "multi:softprob"} if classes > 1 else {}
        return xgb.train(params, xgb.DMatrix(X, CLASSES), 6, obj=signs)

    ours = train()
    with stock():
        theirs = train()
    assert_same_model(ours, theirs)
    assert len(trees(ours)) == 6 * classes
