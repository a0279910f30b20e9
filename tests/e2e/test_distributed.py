# Copyright 2026, the gpu_exact contributors
"""Workers of one communicator grow the trees of one process that has all rows, in order of rank.

GPU_EXACT_DISTRIBUTED sets how many random problems (80).
"""

import os
from collections.abc import Iterator

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import BY_NAME, TAKE_OVER, Pretence, rng_state, stock
from problems import make_problem
from workers import Failed, Pool, Trained, grow_problems, train_case

N_PROBLEMS = int(os.environ.get("GPU_EXACT_DISTRIBUTED", "80"))

pytestmark = pytest.mark.usefixtures("builder")


@pytest.fixture(scope="module", params=[1, 2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    pool = Pool(request.param)
    yield pool
    pool.close()


def assert_trained(answers: list, expected: Trained, context: object = "") -> None:
    """Every worker has this model and random state; and, of its rows, these margins."""
    for rank, answer in enumerate(answers):
        assert isinstance(answer, Trained), (rank, answer, context)
        assert answer.rng == expected.rng, (rank, context)
        assert answer.gpu_trees == expected.gpu_trees, (rank, context)
        assert answer.model == expected.model, (rank, context)
    margins = np.concatenate([answer.margins for answer in answers if len(answer.margins)])
    np.testing.assert_array_equal(margins, expected.margins, err_msg=str(context))


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_random_problems(pool: Pool, route: dict) -> None:
    """The judge is XGBoost's own builder, on all rows."""
    seeds = list(range(N_PROBLEMS))
    answers = pool.run(grow_problems, seeds, route)
    assert not [answer for answer in answers if isinstance(answer, Failed)], answers
    for seed, *by_rank in zip(seeds, *answers, strict=True):
        problem = make_problem(seed)
        with stock():
            booster, dtrain = problem.train(TAKE_OVER)
        n_trees = booster.num_boosted_rounds() * problem.params["num_parallel_tree"]
        margins = booster.predict(dtrain, output_margin=True)
        model = bytes(booster.save_raw("json"))
        assert_trained(by_rank, Trained(model, rng_state(booster), margins, n_trees), problem)


CASES = {
    "squared_error": {},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "poisson": {"objective": "count:poisson", "max_delta_step": 0.7},
    "forest": {"num_parallel_tree": 3, "subsample": 0.5, "colsample_bytree": 0.6},
    "dart": {"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.1},
    "by_node": {"colsample_bynode": 0.5, "subsample": 0.7},
    "leaf_limit": {"max_depth": 0, "max_leaves": 9},
    "monotone": {"monotone_constraints": "(1,-1,0,1)", "gamma": 0.5},
    "interaction": {"interaction_constraints": "[[0, 1], [1, 2, 3]]", "reg_lambda": 0},
    "sorted": {"gpu_exact_strategy": "sort", "gpu_exact_interleaved_levels": 1},
    "by_name": BY_NAME,
}


@pytest.mark.parametrize("continued", [False, True], ids=["at_once", "continued"])
@pytest.mark.parametrize("case", CASES)
def test_objectives_and_boosters(pool: Pool, case: str, continued: bool) -> None:
    """The judge is one worker alone, as sums of these gradients are not exact."""
    expected = train_case(0, 1, CASES[case], continued)
    assert_trained(pool.run(train_case, CASES[case], continued), expected)
