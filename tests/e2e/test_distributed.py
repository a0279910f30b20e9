# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Workers of one communicator grow the trees of one process that has all rows, in order of rank.

GPU_EXACT_DISTRIBUTED sets how many random problems (24).
"""

import functools
import os
from collections.abc import Iterator

import numpy as np
import pytest
import xgboost as xgb
from oracle import BY_NAME, REFERENCE, TAKE_OVER, Pretence, rng_state, run_python, stock
from problems import make_problem
from workers import (
    PARAMS,
    Failed,
    Pool,
    Trained,
    boost_integers,
    dmatrix_of,
    draw_with_deleted_rows,
    gather_and_sum,
    grow_problems,
    meet,
    train_after_others,
    train_case,
    train_in_two_groups,
    train_with_new_table,
    words_of,
)

N_PROBLEMS = int(os.environ.get("GPU_EXACT_DISTRIBUTED", "24"))


@pytest.fixture(scope="module", params=[1, 2, 3])
def pool(request: pytest.FixtureRequest, builder: str) -> Iterator[Pool]:
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


@functools.cache
def grown_by_stock(seed: int) -> Trained:
    """By XGBoost's own builder, on all rows."""
    problem = make_problem(seed)
    with stock():
        booster, dtrain = problem.train(TAKE_OVER)
    n_trees = booster.num_boosted_rounds() * problem.params["num_parallel_tree"]
    margins = booster.predict(dtrain, output_margin=True)
    return Trained(bytes(booster.save_raw("json")), rng_state(booster), margins, n_trees, 0)


@pytest.mark.parametrize(
    ("route", "peer_memory"),
    [(TAKE_OVER, "1"), (BY_NAME, "1"), (TAKE_OVER, "0")],  # with "0" all goes by NCCL
    ids=["take_over", "by_name", "without_peer_memory"],
)
def test_random_problems(pool: Pool, route: dict, peer_memory: str) -> None:
    main = len(pool) > 1 and route is TAKE_OVER and peer_memory == "1"  # of the others a quarter
    seeds = list(range(0, N_PROBLEMS, 1 if main else 4))
    n = 16 if peer_memory == "1" else 4  # each soon enough, also where others use the GPUs
    for some in [seeds[i : i + n] for i in range(0, len(seeds), n)]:
        answers = pool.run(grow_problems, some, route, peer_memory)
        assert not [answer for answer in answers if isinstance(answer, Failed)], answers
        for seed, *by_rank in zip(some, *answers, strict=True):
            assert_trained(by_rank, grown_by_stock(seed), make_problem(seed))


CASES = {
    "squared_error": {},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "poisson": {"objective": "count:poisson", "max_delta_step": 0.7},
    "forest": {"num_parallel_tree": 3, "subsample": 0.5, "colsample_bytree": 0.6},
    "dart": {"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.1},
    "by_node": {"colsample_bynode": 0.5, "subsample": 0.7},
    "leaf_limit": {"max_depth": 0, "max_leaves": 9},
    "leaf_wise": {"grow_policy": "lossguide", "max_depth": 0, "max_leaves": 9, "subsample": 0.7},
    "leaf_wise_columns": {
        "grow_policy": "lossguide",
        "max_leaves": 9,
        "num_parallel_tree": 2,
        "colsample_bylevel": 0.6,
        "colsample_bynode": 0.7,
        "interaction_constraints": "[[0, 1], [1, 2, 3]]",
        "gamma": 0.5,
    },
    "monotone": {"monotone_constraints": "(1,-1,0,1)", "gamma": 0.5},
    "interaction": {"interaction_constraints": "[[0, 1], [1, 2, 3]]", "reg_lambda": 0},
    "sorted": {"gpu_exact_strategy": "sort", "max_depth": 9},  # by node in the last two levels
    "by_name": BY_NAME,
}


@pytest.mark.parametrize("continued", [False, True], ids=["at_once", "continued"])
@pytest.mark.parametrize("case", CASES)
def test_objectives_and_boosters(pool: Pool, case: str, continued: bool) -> None:
    """The judge is one worker alone, as sums of these gradients are not exact."""
    expected = train_case(0, 1, CASES[case], continued)
    assert_trained(pool.run(train_case, CASES[case], continued), expected)


@pytest.mark.parametrize("pool", [1], indirect=True)
def test_a_group_of_one_costs_nothing(pool: Pool) -> None:
    """It holds what a process without a group holds, and makes no copy of the table."""
    alone = train_case(0, 1, {})
    (together,) = pool.run(train_case, {})
    assert together.device_bytes == alone.device_bytes > 0
    assert together.model == alone.model


THROUGH_THE_HOST = """
import warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    xgb.train({"tree_method": "exact", "nthread": 1}, xgb.DMatrix(np.eye(9), np.arange(9)), 3)
print(*[str(w.message) for w in caught], sep="\\n")
"""


def test_workers_that_share_a_gpu_are_told_once(builder: str) -> None:
    if not builder.startswith("reference builder"):
        pytest.skip("the reference builder says so where a test wants it")
    told = run_python(THROUGH_THE_HOST, GPU_EXACT_REFERENCE_THROUGH_HOST="1")
    assert told.count("two of them share a GPU, or NCCL was not found") == 1, told
    assert "through the host" not in run_python(THROUGH_THE_HOST)


def skip_without_calls() -> None:
    if not REFERENCE:
        pytest.skip("the reference module makes calls that a test wants")


def test_calls_without_bytes_wait(pool: Pool) -> None:
    """Workers that are threads of one process read each other's memory before."""
    skip_without_calls()
    begins, ends = zip(*pool.run(meet), strict=True)
    assert min(ends) >= max(begins)


@pytest.mark.parametrize("pool", [2, 3, 4, 5], indirect=True)
@pytest.mark.parametrize("n", [0, 1, 4, 7, 1_000_003])  # the last is more than a socket takes at once
def test_what_workers_tell_each_other(pool: Pool, n: int) -> None:
    skip_without_calls()
    expected = np.array([words_of(rank, n) for rank in range(len(pool))])
    for gathered, summed in pool.run(gather_and_sum, n):
        np.testing.assert_array_equal(gathered, expected)
        np.testing.assert_array_equal(summed, expected.sum(axis=0, dtype=np.uint64))


def test_device_cuda(pool: Pool) -> None:
    """By boosters that believe to be on a GPU while they are configured."""
    if not Pretence.possible:
        pytest.skip("test_exact_on_cuda.py has GPUs")
    expected = train_case(0, 1, {})
    assert_trained(pool.run(train_case, {}, False, True), expected)


def test_rows_of_one_worker_are_deleted(pool: Pool) -> None:
    assert_trained(pool.run(draw_with_deleted_rows), draw_with_deleted_rows(0, 1))


@pytest.mark.parametrize("where", [0, -1], ids=["first", "last"])
def test_table_that_one_worker_has_not(pool: Pool, where: int) -> None:
    """All prepare it again, and then once only."""
    answers = pool.run(train_with_new_table, 2, where % len(pool))
    assert_trained([result for result, _ in answers], train_with_new_table(0, 1, 2, 0)[0])
    for _, set_up in answers:
        assert set_up[0] == set_up[1] != set_up[2] == set_up[3]


def test_table_is_prepared_once(pool: Pool) -> None:
    for _, set_up in pool.run(train_with_new_table, 9, 0):
        assert len(set(set_up)) == 1


@pytest.mark.parametrize("pool", [3], indirect=True)
def test_table_is_prepared_once_where_some_have_had_others(pool: Pool) -> None:
    for set_up in pool.run_in_groups(train_after_others, [2, 3]):
        assert not isinstance(set_up, Failed), set_up
        assert len(set(set_up)) == 1


def test_groups_after_one_another(pool: Pool) -> None:
    """A DMatrix made outside of them is prepared for each one, and for a worker alone."""
    dtrain = dmatrix_of(0, 1)
    expected = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    boost_integers(expected, dtrain, range(4))
    answers = pool.run_in_groups(train_in_two_groups, [len(pool)] * 2)
    for rank, answer in enumerate(answers):
        assert not isinstance(answer, Failed), answers
        together, alone, set_up = answer
        assert together == bytes(expected.save_raw("json"))
        own = dmatrix_of(rank, len(pool))
        booster = xgb.Booster(PARAMS | TAKE_OVER, model_file=bytearray(together))
        boost_integers(booster, own, range(4, 5))
        assert alone == bytes(booster.save_raw("json"))
        assert len(set(set_up)) == (3 if len(pool) > 1 else 1)
