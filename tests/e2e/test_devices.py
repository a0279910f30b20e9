# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""`gpu_exact_devices` shares the columns among GPUs and changes no bit of a model.

A device may be named twice, so that one GPU tries what several do.
"""

import ctypes
import json

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    BY_NAME,
    CUDA,
    TAKE_OVER,
    assert_cache_is_right,
    assert_grown,
    assert_same_model,
    run_python,
    trees_grown,
)
from problems import STRATEGIES, make_problem
from small_tables import make_table

pytestmark = pytest.mark.usefixtures("builder")
ALONE = {"gpu_exact_fallback": "error"}


SEVERAL = gpu_exact.device_status(1).usable


def shared(n: int = 2) -> dict:
    """By the GPUs that there are in turn."""
    ordinals = [str(i % (2 if SEVERAL else 1)) for i in range(n)]
    return ALONE | {"gpu_exact_devices": ",".join(ordinals)}


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
@pytest.mark.parametrize("seed", range(30))
def test_same_model(route: dict, seed: int) -> None:
    problem = make_problem(seed)
    strategy = {"gpu_exact_strategy": STRATEGIES[seed % len(STRATEGIES)]}
    one, _ = problem.train(route | ALONE)
    before = trees_grown()
    several, dtrain = problem.train(route | strategy | shared(2 + seed % 3))
    n_trees = several.num_boosted_rounds() * problem.params["num_parallel_tree"]
    assert_grown(before, gpu=n_trees, context=str(problem))
    assert_same_model(several, one, str(problem))
    assert_cache_is_right(several, dtrain, str(problem))


def test_same_model_on_a_cuda_context(cuda_context: None) -> None:
    X, y = make_table(5000)
    params = CUDA | {"max_depth": 6, "subsample": 0.7, "gamma": 0.1}
    one = xgb.train(params | ALONE, xgb.DMatrix(X, y), 5)
    assert_same_model(xgb.train(params | shared(), xgb.DMatrix(X, y), 5), one)


@pytest.mark.parametrize("pool", [False, True])
def test_xgboost_s_own_pool(cuda_context: None, pool: bool) -> None:
    """Its memory holds the gradients, which other devices read, and the positions."""
    X, y = make_table(5000)
    params = CUDA | {"max_depth": 6}
    one = xgb.train(params | ALONE, xgb.DMatrix(X, y), 5)
    sampled = {"subsample": 0.7}  # each device has its rows' positions
    one_sampled = xgb.train(params | ALONE | sampled, xgb.DMatrix(X, y), 5)
    with xgb.config_context(use_cuda_async_pool=pool):
        assert_same_model(xgb.train(params | shared(), xgb.DMatrix(X, y), 5), one)
        several = xgb.train(params | shared() | sampled, xgb.DMatrix(X, y), 5)
        assert_same_model(several, one_sampled)
        assert xgb.get_config()["use_cuda_async_pool"] is pool


class DevicePool:
    """What vectors have taken of the pool of the first GPU since this was made, bytes at most."""

    USED_MEM_HIGH = 8

    def __init__(self) -> None:
        self._driver, self._pool = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        assert self._driver.cuDeviceGetDefaultMemPool(ctypes.byref(self._pool), 0) == 0
        self._call("cuMemPoolSetAttribute", 0)

    def used(self) -> int:
        return self._call("cuMemPoolGetAttribute", 0)

    def _call(self, name: str, value: int) -> int:
        number = ctypes.c_uint64(value)
        call = getattr(self._driver, name)
        assert call(self._pool, self.USED_MEM_HIGH, ctypes.byref(number)) == 0
        return number.value


def test_positions_come_from_the_pool(cuda_context: None) -> None:
    """Where they are many, and few beside the table."""
    rows = 300_000
    rng = np.random.default_rng(1)
    dtrain = xgb.DMatrix(rng.random((rows, 100), dtype=np.float32), rng.random(rows))
    for n, used in ((1, 0), (2, 4 * rows)):
        pool = DevicePool()
        xgb.train(CUDA | shared(n) | {"max_depth": 2}, dtrain, 2)
        assert pool.used() >= used
        assert (pool.used() == 0) is (used == 0)


def test_estimators() -> None:
    X, y = make_table()
    params = {"tree_method": "exact", "n_estimators": 3, "max_depth": 4, "subsample": 0.8}
    one = xgb.XGBRegressor(**params).fit(X, y).get_booster()
    assert_same_model(xgb.XGBRegressor(**params, **shared()).fit(X, y).get_booster(), one)


@pytest.mark.skipif(not SEVERAL, reason="there are not two GPUs")
def test_all_shares_a_large_table(cuda_context: None) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400_000, 100), dtype=np.float32)  # more than 33 million entries
    y = (X[:, 0] * X[:, 1] > 0).astype(np.float32)
    dtrain = xgb.DMatrix(X, y)
    one = xgb.train(CUDA | ALONE | {"max_depth": 6}, dtrain, 2)
    held = gpu_exact.last_run().device_bytes
    every = xgb.train(CUDA | ALONE | {"max_depth": 6, "gpu_exact_devices": "all"}, dtrain, 2)
    assert_same_model(every, one)
    assert gpu_exact.last_run().device_bytes != held


def test_changes_between_iterations() -> None:
    """Another builder takes over the table."""
    X, y = make_table()
    dtrain = xgb.DMatrix(X, y)
    booster = xgb.Booster(TAKE_OVER | {"max_depth": 4}, [dtrain])
    for i, how in enumerate([{}, shared(), shared(3), {"gpu_exact_devices": ""}, shared()]):
        booster.set_param(how)
        booster.update(dtrain, i)
    one = xgb.train(TAKE_OVER | {"max_depth": 4}, xgb.DMatrix(X, y), 5)
    assert_same_model(booster, one)


def test_all_is_for_large_tables() -> None:
    """A small one stays on the booster's device, which costs nothing."""
    X, y = make_table()
    one = xgb.train(TAKE_OVER | ALONE, xgb.DMatrix(X, y), 2)
    held = gpu_exact.last_run().device_bytes
    every = xgb.train(TAKE_OVER | ALONE | {"gpu_exact_devices": "all"}, xgb.DMatrix(X, y), 2)
    assert_same_model(every, one)
    assert gpu_exact.last_run().device_bytes == held


@pytest.mark.parametrize("devices", ["0,99", "1,2,", "both", "0 1"])
def test_refused(devices: str) -> None:
    dtrain = xgb.DMatrix(np.eye(3), [0, 1, 0])
    with pytest.raises(xgb.core.XGBoostError, match="gpu_exact_devices is .*; set it to"):
        xgb.train(TAKE_OVER | {"gpu_exact_devices": devices}, dtrain, 1)


def test_the_wheels_nccl_is_named(tmp_path) -> None:
    """For several processes; what the user names stays."""
    library = tmp_path / "nvidia/nccl/lib/libnccl.so.2"
    library.parent.mkdir(parents=True)
    library.touch()
    code = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "os.environ.pop('GPU_EXACT_NCCL', None)\n"
    code += "os.environ.update(named.split('=') for named in sys.argv[1:])\n"
    code += "import xgboost_gpu_exact; print(os.environ['GPU_EXACT_NCCL'])"
    assert run_python(code).strip() == str(library)
    assert run_python(code, "GPU_EXACT_NCCL=/mine.so").strip() == "/mine.so"


def test_is_in_the_configuration() -> None:
    X, y = make_table(50)
    config = xgb.train(TAKE_OVER | shared(), xgb.DMatrix(X, y), 1).save_config()
    updaters = json.loads(config)["learner"]["gradient_booster"]["updater"]
    (param,) = (u["gpu_exact_train_param"] for u in updaters if "gpu_exact_train_param" in u)
    assert param["gpu_exact_devices"] == shared()["gpu_exact_devices"]
