# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Calls of CUDA and allocations fail amid a training, one in each training.

Of every table each place that makes calls has its first one fail, of CUDA its last one too. Of the
tables in `EVERY` all calls fail. Threads of several GPUs make calls in no certain order: there the
number tells which call fails, not the place.

Each time there is one error that names the call and the remedy, or none and the right model: where
something is given back, or is done without. The round is then repeated by the same booster, and the
model is as if nothing had happened, so the random generator is as it was. Nothing is lost, of the GPU
or of the host.

It takes a module with the hook: build/tests/libxgboost_gpu_exact_faults.so on a GPU. That of the
reference builder has a call to fail wherever the adapter asks the builder for something.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from faults import (
    DEVICE,
    HOST,
    ILLEGAL_ADDRESS,
    OUT_OF_MEMORY,
    OUT_OF_RESOURCES,
    Faults,
    HostMemory,
    Site,
    Watchdog,
    assert_explained,
)
from oracle import CUDA, TAKE_OVER, cuda_context_reason, rng_state
from test_external_memory import in_batches

pytestmark = pytest.mark.skipif(
    not Faults.possible, reason="this module's calls cannot be made to fail, see support/faults.h"
)
ROUNDS = 2
STICKY_FAULTS = 12  # a training

SAMPLED = {"subsample": 0.7, "colsample_bylevel": 0.7, "monotone_constraints": "(1,0,-1)"}
SORT = {"gpu_exact_strategy": "sort", "max_depth": 6, "gamma": 0.1}
HISTOGRAM = {"gpu_exact_strategy": "histogram", "max_depth": 5}
FOREST = {"num_parallel_tree": 3, "subsample": 0.5}


def table(
    folder: Path, n_rows: int, n_columns: int, missing: float, n_batches: int = 1
) -> xgb.DMatrix:
    """Several batches are in external memory, in the folder."""
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2]).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    if n_batches > 1:
        bounds = [n_rows * i // n_batches for i in range(n_batches + 1)]
        return in_batches(X, y, bounds, folder)
    return xgb.DMatrix(X, y, nthread=2)


LIMITED = (20_000, 4)
LEAST = gpu_exact.memory_estimate(*LIMITED, max_depth=HISTOGRAM["max_depth"])["histogram"].least

# Arguments of table(), and parameters.
TABLES: dict[str, tuple[tuple, dict]] = {
    "sort": ((3_000, 5, 0.2), SORT | SAMPLED),
    # So many rows that arrays go through page-locked memory, and that nodes have ranges.
    "histogram": ((150_000, 3, 0.0), HISTOGRAM | SAMPLED),
    "histogram, missing": ((30_000, 4, 0.7), HISTOGRAM),
    "histogram, few rows": ((2_000, 4, 0.1), HISTOGRAM | {"colsample_bynode": 0.5}),
    # Sorted rows and values lie in page-locked memory.
    "little memory": ((*LIMITED, 0.0), HISTOGRAM | SAMPLED | {"gpu_exact_memory_limit": LEAST}),
    "classes": (
        (100, 3, 0.1),
        SAMPLED | {"objective": "multi:softprob", "num_class": 3, "gamma": 0.1},
    ),
    "forest": ((100, 3, 0.1), FOREST | {"eta": 0.1}),
    "external memory": ((3_000, 4, 0.1, 3), {"max_depth": 5, "subsample": 0.7}),
    "external memory, sort": ((3_000, 5, 0.2, 3), SORT),
    "one GPU twice": ((3_000, 6, 0.1), {"max_depth": 5, "gpu_exact_devices": "0,0"} | SAMPLED),
}
EVERY = ("sort", "histogram", "histogram, few rows")
if Faults.possible and gpu_exact.device_status(1).usable:
    TABLES |= {
        "two GPUs": ((3_000, 6, 0.1), {"max_depth": 5, "gpu_exact_devices": "0,1"} | SAMPLED),
        "two GPUs, sort": ((3_000, 6, 0.1), SORT | {"gpu_exact_devices": "0,1"}),
    }


ROUTES = {"cpu": TAKE_OVER, "cuda": CUDA}
if not Faults.possible:  # skipped once, not once for each
    TABLES, ROUTES = {"sort": TABLES["sort"]}, {"cpu": TAKE_OVER}


@pytest.fixture(autouse=True)
def watchdog(capfd: pytest.CaptureFixture) -> Iterator[None]:
    with Watchdog.of_test(capfd):
        yield


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> dict:
    reason = cuda_context_reason()
    if request.param == "cuda" and reason:
        pytest.skip(reason)
    return ROUTES[request.param]


@dataclass(frozen=True)
class Problem:
    dtrain: xgb.DMatrix
    params: dict
    every: bool  # call shall fail


@pytest.fixture(params=TABLES)
def problem(request: pytest.FixtureRequest, route: dict, tmp_path: Path) -> Problem:
    sizes, params = TABLES[request.param]
    reference = gpu_exact.device_status().text.startswith("reference builder")
    if reference and "gpu_exact_strategy" in params:
        pytest.skip("the reference builder has no strategies")
    params = {"nthread": 2, "gpu_exact_fallback": "error"} | params | route
    return Problem(table(tmp_path, *sizes), params, request.param in EVERY)


@dataclass(frozen=True)
class Trained:
    """A model, and the state of the generator before each round and at the end."""

    model: bytes
    states: list[str]


def make_booster(dtrain: xgb.DMatrix, params: dict) -> xgb.Booster:
    """Configured already: what fails there is not the trees'."""
    if "num_class" in params:
        dtrain.set_label(np.arange(dtrain.num_row()) % params["num_class"])
    booster = xgb.Booster(params, [dtrain])
    booster.save_config()
    return booster


def train(dtrain: xgb.DMatrix, params: dict) -> Trained:
    Watchdog.start()
    booster = make_booster(dtrain, params)
    states = [rng_state(booster)]
    for i in range(ROUNDS):
        booster.update(dtrain, i)
        states.append(rng_state(booster))
    limited = "gpu_exact_memory_limit" in params
    assert not limited or gpu_exact.last_run().planned_host_bytes != 0
    return Trained(booster.save_raw(), states)


def train_with_fault(
    dtrain: xgb.DMatrix, params: dict, expected: Trained, *fault: int
) -> tuple[str, str]:
    """Repeat the round that fails, by the same booster; gives the call that failed and the error.

    Afterwards all must be as without it.
    """
    Watchdog.start()
    booster = make_booster(dtrain, params)
    error = ""
    Faults.begin(*fault)
    for i in range(ROUNDS):
        try:
            booster.update(dtrain, i)
        except xgb.core.XGBoostError as e:
            Faults.end()
            assert not error, f"a second error: {e}, after {error}"
            error = str(e)
            assert rng_state(booster) == expected.states[i], error
            booster.update(dtrain, i)
    failed = Faults.end()
    context = f"{fault} {failed}, {params}: {error}"
    assert (failed == "") == (fault[1] == 0), context
    assert booster.save_raw() == expected.model, context
    assert rng_state(booster) == expected.states[-1], context
    return failed, error


def sites_of(kind: int, dtrain: xgb.DMatrix, params: dict, expected: Trained) -> list[Site]:
    train_with_fault(dtrain, params, expected, kind, 0)
    return Faults.sites()


def count(sites: list[Site]) -> int:
    """Their calls: each call is of a site."""
    return max(site.last for site in sites)


def numbers_of(sites: list[Site], kind: int, every: bool) -> list[int]:
    """Of the calls that shall fail: see the head of this file."""
    if every:
        return list(range(1, count(sites) + 1))
    numbers = {site.first for site in sites}
    if kind == DEVICE:
        numbers |= {site.last for site in sites}
    return sorted(numbers)


@dataclass(frozen=True)
class Walk:
    """What was made to fail, of how many calls, and how many gave an error."""

    faults: int
    calls: int
    errors: int


def walk(kind: int, problem: Problem) -> Walk:
    dtrain, params = problem.dtrain, problem.params
    expected = train(dtrain, params)
    sites = sites_of(kind, dtrain, params, expected)
    call_of = {number: site.call for site in sites for number in (site.first, site.last)}
    kept = Faults.held()
    n_errors = 0
    numbers = numbers_of(sites, kind, problem.every)
    for i, number in enumerate(numbers):
        if i == len(numbers) // 10:
            memory = HostMemory()
        call = call_of.get(number, "")
        status = OUT_OF_MEMORY if "Alloc" in call or "Malloc" in call else OUT_OF_RESOURCES
        failed, error = train_with_fault(dtrain, params, expected, kind, number, status)
        if error:
            n_errors += 1
            assert_explained(error, failed)
        assert Faults.held() == kept, (failed, number, error)
    memory.assert_kept()
    return Walk(len(numbers), count(sites), n_errors)


def record(walked: Walk, record_property: Callable[[str, object], None]) -> None:
    for name, value in vars(walked).items():
        record_property(name, value)
    assert walked.errors > 0


def test_numbers_of_calls() -> None:
    """Without a fault: which calls would be made to fail."""
    sites = [Site("a", 1, 5), Site("b", 2, 2), Site("c", 3, 3_000)]
    assert numbers_of(sites, HOST, every=False) == [1, 2, 3]
    assert numbers_of(sites, DEVICE, every=False) == [1, 2, 3, 5, 3_000]
    assert numbers_of(sites, DEVICE, every=True) == list(range(1, 3_001))
    assert numbers_of(sites[:2], HOST, every=True) == [1, 2, 3, 4, 5]


@pytest.mark.skipif(not HostMemory.KNOWN, reason="AddressSanitizer keeps what is freed")
def test_host_memory_that_is_lost() -> None:
    memory = HostMemory()
    memory.assert_kept()
    lost = np.ones(HostMemory.BOUND, np.int8)
    with pytest.raises(AssertionError, match="64 MiB"):
        memory.assert_kept()
    del lost
    memory.assert_kept()


def test_errors_that_do_not_name_the_call() -> None:
    remedy = ". Train again"
    for failed, error in (
        ("cudaMemcpyAsync_ptsz", "CUDA error 701 from cudaMemcpyAsync(to, from, 8)"),
        ("cudaMemsetAsync_ptsz", "CUDA error 701 from CUB at a.cu:1"),
        ("__cudaLaunchKernel_ptsz", "CUDA error 701 from MarkKernel"),
    ):
        assert_explained(error + remedy, failed)
        with pytest.raises(AssertionError):
            assert_explained(error, failed)
    with pytest.raises(AssertionError):
        assert_explained("CUDA error 701 from MarkKernel" + remedy, "cudaEventRecord_ptsz")


def test_device_calls(problem: Problem, record_property: Callable[[str, object], None]) -> None:
    record(walk(DEVICE, problem), record_property)


def test_host_allocations(problem: Problem, record_property: Callable[[str, object], None]) -> None:
    record(walk(HOST, problem), record_property)


@pytest.mark.parametrize("eta", [0.1, 0.1234567])  # a third of the first, times 3, is another number
def test_learning_rate_of_a_forest(tmp_path: Path, route: dict, eta: float) -> None:
    """XGBoost divides it among the trees of a round; one that fails leaves it as it was given."""

    def rate(booster: xgb.Booster) -> str:
        config = json.loads(booster.save_config())["learner"]["gradient_booster"]
        return config["tree_train_param"]["learning_rate"]

    dtrain = table(tmp_path, 100, 3, 0.1)
    params = FOREST | {"nthread": 2, "gpu_exact_fallback": "error", "eta": eta} | route
    expected = train(dtrain, params)
    sites = sites_of(HOST, dtrain, params, expected)
    n_errors = 0
    for number in numbers_of(sites, HOST, every=False):
        booster = make_booster(dtrain, params)
        given = rate(booster)
        Faults.begin(HOST, number, OUT_OF_RESOURCES)
        try:
            booster.update(dtrain, 0)
        except xgb.core.XGBoostError:
            n_errors += 1
            assert rate(booster) == given
        Faults.end()
    assert n_errors > 0


def test_error_that_sticks(
    problem: Problem, record_property: Callable[[str, object], None]
) -> None:
    """As after an illegal address: every later call fails, and each error says to restart."""
    dtrain, params = problem.dtrain, problem.params
    expected = train(dtrain, params)
    sites = sites_of(DEVICE, dtrain, params, expected)
    numbers = sorted({site.first for site in sites})
    numbers = numbers[:: -(-len(numbers) // STICKY_FAULTS)]
    kept = Faults.held()
    for number in numbers:
        Watchdog.start()
        booster = make_booster(dtrain, params)
        errors = []
        Faults.begin(DEVICE, number, ILLEGAL_ADDRESS, sticks=True)
        for i in range(ROUNDS + 1):
            try:
                booster.update(dtrain, i)
            except xgb.core.XGBoostError as e:
                errors.append(str(e))
        Faults.end()
        del booster
        assert errors, f"call {number}, {params}"
        for error in errors:
            assert "estart the process" in error, error
        assert Faults.held() == kept
    assert train(dtrain, params) == expected
    record(Walk(len(numbers), count(sites), len(numbers)), record_property)
