# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A worker that fails, is gone or is told something else ends training everywhere, with the reason.

`Pool` fails a test that takes longer than 30 seconds.
"""

import re
from collections.abc import Iterator

import pytest
from oracle import NO_GPU, REFERENCE, run_python
from workers import Failed, Pool, connections_after_a_loss, train_and_fail, train_and_repeat, train_case, train_from

N_WORKERS = 3
OTHER = N_WORKERS - 1  # the worker that does something else
NO_MEMORY = "Out of host memory while an exact tree was grown."
LOST = r"has lost another worker{}, which was killed, raised an error or waits for something else"
GONE = r" \(Ranks? [0-9, and]*\)"  # others may have ended by then, too


@pytest.fixture
def pool(shared_pool: list[Pool]) -> Pool:
    """Workers that have survived the test before; those that did not are replaced."""
    if any(not process.is_alive() for process in shared_pool[0].processes):
        shared_pool.append(Pool(N_WORKERS))
        shared_pool.pop(0).close()
    return shared_pool[0]


@pytest.fixture(scope="module")
def shared_pool(builder: str) -> Iterator[list[Pool]]:
    pools = [Pool(N_WORKERS)]
    yield pools
    pools[0].close()


def skip_without_reference() -> None:
    if not REFERENCE:
        pytest.skip("the reference module fails where a test wants it, and has no other connections")


def errors_of(pool: Pool, how: str, **communicator: int) -> list[str]:
    answers = pool.run(train_and_fail, how, **communicator)
    assert all(isinstance(answer, Failed) for answer in answers), answers
    return [answer.text for answer in answers]


def assert_lost(text: str, rank: int) -> None:
    """Its error names those that it has lost: the one that did something else, or others by then."""
    assert re.search(f"Rank {rank} of {N_WORKERS} {LOST.format(GONE)}", text), text


def assert_usable(pool: Pool) -> None:
    """The same processes train in another group."""
    expected = train_case(0, 1, {})
    assert [answer.model for answer in pool.run(train_case, {})] == [expected.model] * N_WORKERS


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("other_depth", "Rank 2 of 3 differs from rank 0 in its training parameters: give every"),
        ("other_direction", "Rank 2 of 3 differs from rank 0 in its training parameters: give"),
        ("other_policy", "Rank 2 of 3 differs from rank 0 in its training parameters: give every"),
        ("other_strategy", "Rank 2 of 3 differs from rank 0 in its training parameters: give"),
        ("other_forest", "Rank 2 of 3 differs from rank 0 in its training parameters: give every"),
        ("other_route", "Rank 2 of 3 differs from rank 0 in its training parameters: give every"),
        ("other_seed", "Rank 2 of 3 differs from rank 0 in its random numbers: give every worker"),
        ("refused", "Rank 2 of 3: Failed to parse feature interaction constraint:\n[[0, 0.5]]"),
        ("not_finite", "is NaN or infinite"),
    ],
)
def test_all_are_told(pool: Pool, how: str, error: str) -> None:
    for text in errors_of(pool, how):
        assert error in text
    assert_usable(pool)


def test_no_memory_for_the_table(pool: Pool) -> None:
    skip_without_reference()
    for text in errors_of(pool, "set up"):
        assert re.search("Rank 2 of 3: " + NO_MEMORY + " Free", text), text
    assert_usable(pool)


def test_one_is_short_of_device_memory(pool: Pool) -> None:
    for text in errors_of(pool, "short_of_memory"):
        assert text.startswith("Rank 2 of 3: The table does not fit on the GPU")
        assert "gpu_exact_memory_limit=4096 allows 4096" in text
        assert re.search(r"take at least \d+ bytes", text)
        assert "Raise gpu_exact_memory_limit" in text
    assert_usable(pool)


@pytest.mark.parametrize(
    ("how", "own"),
    [
        ("raise", "This worker's objective is broken."),
        ("build", NO_MEMORY),
        ("positions", NO_MEMORY),
        ("not_taken_over", "doesn't support distributed training."),
    ],
)
def test_others_lose_the_one_that_raises(pool: Pool, how: str, own: str) -> None:
    if own == NO_MEMORY:
        skip_without_reference()
    errors = errors_of(pool, how)
    assert own in errors[OTHER]
    for rank, text in enumerate(errors[:OTHER]):
        assert_lost(text, rank)
        assert "import xgboost_gpu_exact on every worker" in text
    assert_usable(pool)


@pytest.mark.parametrize("failing", [0, 2])
def test_round_that_one_worker_repeats(pool: Pool, failing: int) -> None:
    """The others have its tree, and would go on from other predictions than it has."""
    skip_without_reference()
    for answer in pool.run(train_and_repeat, failing):
        assert isinstance(answer, Failed), "a model of trees that do not fit together"
        assert "Rank 2 of 3 differs from rank 0 in the tree that it grew last: give" in answer.text
    assert_usable(pool)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("fewer rounds", "the rounds that its model has"),
        ("loaded", "the rounds that its model has"),
        ("fewer classes", "the trees of a round"),
    ],
)
def test_one_goes_on_from_another_model(pool: Pool, other: str, what: str) -> None:
    for answer in pool.run(train_from, other):
        assert isinstance(answer, Failed), "a model of trees that do not fit together"
        assert f"Rank 2 of 3 differs from rank 0 in {what}: give" in answer.text
    assert_usable(pool)


@pytest.mark.parametrize("how", ["other_method", "fewer_rounds", "sends_more"])
def test_others_lose_the_one_that_does_something_else(pool: Pool, how: str) -> None:
    """What it sends is not what they wait for, or it has ended. They may not have read all of it."""
    *errors, other = pool.run(train_and_fail, how, dmlc_timeout=10)
    for rank, error in enumerate(errors):
        assert_lost(error.text, rank)
        assert "2)" in error.text  # the rank
    assert isinstance(other, bytes) == (how == "fewer_rounds")
    assert_usable(pool)


@pytest.mark.parametrize("how", ["sleep", "sleep among signals"])
def test_others_lose_the_one_that_is_stuck(pool: Pool, how: str) -> None:
    errors = errors_of(pool, how, dmlc_timeout=3)
    waited = "Nothing has come for 3 s (dmlc_timeout)."
    assert any(LOST.format("") in text and waited in text for text in errors[:OTHER]), errors
    assert_usable(pool)


def test_who_has_lost_one_ends_all_connections(pool: Pool) -> None:
    """Else what is left of the call would be read for the answer to XGBoost's next one."""
    skip_without_reference()  # NCCL has connections of its own
    *ended, other = pool.run(connections_after_a_loss)
    assert ended == [[True] * OTHER] * OTHER
    assert other.text == "This worker's objective is broken."
    assert_usable(pool)


def test_others_lose_the_one_that_is_killed(pool: Pool) -> None:
    errors = errors_of(pool, "kill")
    assert errors[OTHER] == "The process is gone."
    for rank, text in enumerate(errors[:OTHER]):
        assert_lost(text, rank)


def test_others_lose_one_to_which_some_are_not_connected(builder: str) -> None:
    """XGBoost connects each of four workers with some of the others only."""
    four = Pool(4)
    try:
        *errors, killed = errors_of(four, "kill")
    finally:
        four.close()
    assert killed == "The process is gone."
    for rank, text in enumerate(errors):
        assert re.search(f"Rank {rank} of 4 {LOST.format(f'({GONE})?')}", text), text


def test_others_end_where_one_is_killed_in_a_tree(pool: Pool) -> None:
    """Whether they wait for it in a level, where GPUs have a deadline of their own, or for a round."""
    errors = errors_of(pool, "kill in a tree")
    assert errors[OTHER] == "The process is gone."
    for rank, text in enumerate(errors[:OTHER]):
        if f"Rank {rank} of {N_WORKERS}: " not in text:
            assert_lost(text, rank)


def test_others_end_where_one_is_stopped_in_a_tree(pool: Pool) -> None:
    """It is there, and says nothing: a deadline ends the others, not that it is gone."""
    pool.kills_last = True
    errors = errors_of(pool, "stop in a tree", dmlc_timeout=6)
    assert errors[OTHER] == "The process is gone."
    assert any("Nothing has come for 6 s" in text or "Worker" in text for text in errors[:OTHER]), errors
    for text in errors[:OTHER]:
        assert "(Rank 2)" not in text


def test_nothing_fails(pool: Pool) -> None:
    """So that it is the failures above that are seen."""
    models = pool.run(train_and_fail, "not at all")
    assert isinstance(models[0], bytes) and models == [models[0]] * N_WORKERS


ALONE_WITHOUT_A_GPU = """
import numpy as np, xgboost as xgb, xgboost_gpu_exact
from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker
tracker = RabitTracker(n_workers=1, host_ip="127.0.0.1")
tracker.start()
with CommunicatorContext(**tracker.worker_args()):
    try:
        xgb.train({"tree_method": "exact"}, xgb.DMatrix(np.eye(9), np.arange(9)), 1)
    except xgb.core.XGBoostError as error:
        print(error)
"""


def test_no_gpu(gpu_module: None) -> None:
    """XGBoost's own builder, which takes a GPU's place elsewhere, refuses groups of workers."""
    told = run_python(ALONE_WITHOUT_A_GPU, **NO_GPU)
    assert "doesn't support distributed training. Only the GPU's builder does, and: " in told


FORKED_FROM_THE_OTHER = """
import json, os
import numpy as np, xgboost as xgb, xgboost_gpu_exact as gpu_exact
from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker
gpu_exact.device_status()  # uses CUDA
told, tell = os.pipe()
child = os.fork()
if child == 0:
    arguments = json.loads(os.read(told, 10000))
else:  # no thread of the tracker's is forked
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    arguments = tracker.worker_args()
    os.write(tell, json.dumps(arguments).encode())
with CommunicatorContext(**arguments, dmlc_timeout=20):
    dtrain = xgb.DMatrix(np.eye(9), np.arange(9), nthread=1)
    try:
        xgb.train({"tree_method": "exact", "nthread": 1}, dtrain, 1)
    except xgb.core.XGBoostError as error:
        print(error, flush=True)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""


def test_one_has_no_gpu(builder: str) -> None:
    """A process forked after CUDA was used has none."""
    told = run_python(FORKED_FROM_THE_OTHER)
    refusal = "doesn't support distributed training. Only the GPU's builder does, and: This process"
    assert told.count(refusal) == 2, told
