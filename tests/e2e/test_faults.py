# Copyright 2026, the gpu_exact contributors
"""Every place that makes a CUDA call or allocates has it fail once, amid a training.

Each time there is one error that names the call and the remedy, or none and the right model: where
something is given back, or is done without. The round is then repeated by the same booster, and the
model is as if nothing had happened, so the random generator is as it was. Nothing is lost.

It takes a module with the hook: build/tests/libxgboost_gpu_exact_faults.so on a GPU. That of the
reference builder has a call to fail wherever the adapter asks the builder for something.
"""

import faulthandler
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from faults import DEVICE, HOST, ILLEGAL_ADDRESS, OUT_OF_MEMORY, OUT_OF_RESOURCES, Faults, Site
from oracle import CUDA, TAKE_OVER, cuda_context_reason, rng_state

pytestmark = pytest.mark.skipif(
    not Faults.possible, reason="this module's calls cannot be made to fail, see support/faults.h"
)
ROUNDS = 2
STICKY_FAULTS = 12  # a training
NAMED = ("CUDA error", "Out of device memory", "Out of page-locked host memory", "Out of host memory")
REMEDIES = ("estart the process", "Free memory", "Train again")

SAMPLED = {"subsample": 0.7, "colsample_bylevel": 0.7, "monotone_constraints": "(1,0,-1)"}
SORT = {"gpu_exact_strategy": "sort", "max_depth": 6, "gamma": 0.1}
HISTOGRAM = {"gpu_exact_strategy": "histogram", "max_depth": 5}


def table(n_rows: int, n_columns: int, missing: float) -> xgb.DMatrix:
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2]).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return xgb.DMatrix(X, y, nthread=2)


TABLES: dict[str, tuple[Callable[[], xgb.DMatrix], dict]] = {
    "sort": (lambda: table(3_000, 5, 0.2), SORT | SAMPLED),
    # So many rows that arrays go through page-locked memory, and that nodes have ranges.
    "histogram": (lambda: table(150_000, 3, 0.0), HISTOGRAM | SAMPLED),
    "histogram, missing": (lambda: table(30_000, 4, 0.7), HISTOGRAM),
    "histogram, few rows": (lambda: table(2_000, 4, 0.1), HISTOGRAM | {"colsample_bynode": 0.5}),
    "classes": (
        lambda: table(100, 3, 0.1),
        SAMPLED | {"objective": "multi:softprob", "num_class": 3, "gamma": 0.1},
    ),
    "forest": (
        lambda: table(100, 3, 0.1),
        {"num_parallel_tree": 3, "eta": 0.3, "subsample": 0.5},
    ),
}


ROUTES = {"cpu": TAKE_OVER, "cuda": CUDA}
if not Faults.possible:  # skipped once, not once for each
    TABLES, ROUTES = {"sort": TABLES["sort"]}, {"cpu": TAKE_OVER}


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A training that hangs ends the process, and says where."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> dict:
    reason = cuda_context_reason()
    if request.param == "cuda" and reason:
        pytest.skip(reason)
    return ROUTES[request.param]


@pytest.fixture(params=TABLES)
def problem(request: pytest.FixtureRequest, route: dict) -> tuple[xgb.DMatrix, dict]:
    make, params = TABLES[request.param]
    reference = gpu_exact.device_status().text.startswith("reference builder")
    if reference and "gpu_exact_strategy" in params:
        pytest.skip("the reference builder has no strategies")
    return make(), {"nthread": 2, "gpu_exact_fallback": "error"} | params | route


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
    booster = make_booster(dtrain, params)
    states = [rng_state(booster)]
    for i in range(ROUNDS):
        booster.update(dtrain, i)
        states.append(rng_state(booster))
    return Trained(booster.save_raw(), states)


def train_with_fault(dtrain: xgb.DMatrix, params: dict, expected: Trained, *fault: int) -> str:
    """Repeat the round that fails, by the same booster; gives the error.

    Afterwards all must be as without it.
    """
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
    return error


def sites_of(kind: int, dtrain: xgb.DMatrix, params: dict, expected: Trained) -> list[Site]:
    train_with_fault(dtrain, params, expected, kind, 0)
    return Faults.sites()


def walk(kind: int, dtrain: xgb.DMatrix, params: dict) -> tuple[int, int]:
    """Let each site's first call fail, and of CUDA its last one; gives how many, and the errors."""
    expected = train(dtrain, params)
    sites = sites_of(kind, dtrain, params, expected)
    kept = Faults.held()
    n_errors = 0
    numbers = {site.first: site.call for site in sites}
    if kind == DEVICE:
        numbers |= {site.last: site.call for site in sites}
    for number, call in sorted(numbers.items()):
        status = OUT_OF_MEMORY if "Alloc" in call or "Malloc" in call else OUT_OF_RESOURCES
        error = train_with_fault(dtrain, params, expected, kind, number, status)
        if error:
            n_errors += 1
            assert any(name in error for name in NAMED), (call, error)
            assert any(remedy in error for remedy in REMEDIES), (call, error)
        assert Faults.held() == kept, (call, number, error)
    return len(numbers), n_errors


def test_device_calls(
    problem: tuple[xgb.DMatrix, dict], record_property: Callable[[str, object], None]
) -> None:
    n_faults, n_errors = walk(DEVICE, *problem)
    record_property("faults", n_faults)
    record_property("errors", n_errors)
    assert n_errors > 0


def test_host_allocations(
    problem: tuple[xgb.DMatrix, dict], record_property: Callable[[str, object], None]
) -> None:
    n_faults, n_errors = walk(HOST, *problem)
    record_property("faults", n_faults)
    record_property("errors", n_errors)
    assert n_errors > 0


def test_error_that_sticks(
    problem: tuple[xgb.DMatrix, dict], record_property: Callable[[str, object], None]
) -> None:
    """As after an illegal address: every later call fails, and each error says to restart."""
    dtrain, params = problem
    expected = train(dtrain, params)
    numbers = sorted({site.first for site in sites_of(DEVICE, dtrain, params, expected)})
    numbers = numbers[:: -(-len(numbers) // STICKY_FAULTS)]
    kept = Faults.held()
    for number in numbers:
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
    record_property("faults", len(numbers))
    record_property("errors", len(numbers))
