# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Who else is in the process and on the GPU: each finds everything as it was left.

Threads, PyTorch, CuPy, a GPU that others have filled, that is taken by one process alone, that is cut
into parts, or that is not the first one.
"""

import ctypes
import gc
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from faults import Faults
from oracle import CUDA, TAKE_OVER, assert_same_model, run_python, stock
from small_tables import make_table

MIB = 1 << 20
ALONE = {"gpu_exact_fallback": "error"}
SAMPLED = {"max_depth": 5, "subsample": 0.7, "colsample_bylevel": 0.6, "nthread": 1}

# A training that fails leaves no error behind, neither ours nor in what libraries share.
FAILING = """
import ctypes, re
import numpy as np, xgboost as xgb, xgboost_gpu_exact
params = {"tree_method": "exact", "gpu_exact_fallback": "error", "max_depth": 5}
rng = np.random.default_rng(0)
large = xgb.DMatrix(rng.standard_normal((400_000, 6)).astype(np.float32), rng.random(400_000))

def last_errors():
    maps = open("/proc/self/maps").read()
    runtimes = [ctypes.CDLL(path) for path in set(re.findall(r"/\\S*/libcudart\\S*", maps))]
    return [f() for r in runtimes for f in (r.cudaPeekAtLastError, r.cudaGetLastError)]

def fail(**how):
    last_errors()  # of others, before
    try:
        xgb.train(params | how, large, 1)
    except xgb.core.XGBoostError as error:
        assert "memory on the GPU" in str(error), error
    else:
        raise AssertionError(f"{how}: it has trained")
    assert not any(last_errors()), how
"""
# XGBoost and the other library on one GPU, in turn; what it computes and its state are as without us.
WITH_TORCH = (
    FAILING
    + """
import torch
last = torch.cuda.device_count() - 1
torch.cuda.set_device(last)
stream = torch.cuda.Stream()
X = np.random.default_rng(0).standard_normal((5000, 6)).astype(np.float32)

def train(**route):
    return xgb.train(params | route, xgb.DMatrix(X, X[:, 0] * X[:, 1]), 3)

with torch.cuda.stream(stream):
    a = torch.arange(1 << 20, device="cuda", dtype=torch.float64)
    product = a * 2
    for route in ({}, {"device": "cuda:0"}, {"device": f"cuda:{last}"}):
        held = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        train(**route)
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == held
        assert torch.cuda.current_device() == last, route
        assert torch.cuda.current_stream() == stream
        product += a
    assert torch.equal(product, a * 5)

    def check():
        assert torch.cuda.current_device() == last and torch.cuda.current_stream() == stream
        assert torch.equal(product * 2, a * 10)

    for route in ({}, {"device": f"cuda:{last}"}):
        fail(gpu_exact_memory_limit=4096, **route)
        check()
    free, _ = torch.cuda.mem_get_info(0)
    filled = torch.empty(free - (16 << 20), dtype=torch.uint8, device="cuda:0")
    fail()
    del filled
    torch.cuda.empty_cache()
    check()
    train()
    check()
torch.cuda.synchronize()
try:
    torch.empty(1 << 50, device="cuda", dtype=torch.uint8)
except torch.cuda.OutOfMemoryError:
    pass
train(device="cuda")
assert float(torch.ones(8, device="cuda").sum()) == 8
"""
)
WITH_CUPY = (
    FAILING
    + """
import cupy
last = cupy.cuda.runtime.getDeviceCount() - 1
cupy.cuda.Device(last).use()
X = np.random.default_rng(0).standard_normal((5000, 6)).astype(np.float32)
y = X[:, 0] * X[:, 1]
params["device"] = f"cuda:{last}"
expected = xgb.train(params, xgb.DMatrix(X, y), 3).save_raw()
with cupy.cuda.Stream(non_blocking=True) as stream:
    a = cupy.arange(1 << 20, dtype=cupy.float64)
    pool = cupy.get_default_memory_pool()
    held = pool.used_bytes()
    assert xgb.train(params, xgb.DMatrix(X, y), 3).save_raw() == expected
    assert pool.used_bytes() == held and cupy.cuda.get_current_stream() == stream
    there = xgb.DMatrix(cupy.asarray(X), cupy.asarray(y))
    assert xgb.train(params, there, 3).save_raw() == expected

    def check():
        assert cupy.cuda.runtime.getDevice() == last and cupy.cuda.get_current_stream() == stream
        assert float(a.sum()) == (1 << 19) * ((1 << 20) - 1)

    check()
    for device in ("cpu", f"cuda:{last}"):
        fail(gpu_exact_memory_limit=4096, device=device)
        check()
    with cupy.cuda.Device(0):
        free, _ = cupy.cuda.runtime.memGetInfo()
        filled = cupy.cuda.runtime.malloc(free - (16 << 20))
    fail(device="cpu")
    with cupy.cuda.Device(0):
        cupy.cuda.runtime.free(filled)
    check()
    assert xgb.train(params, xgb.DMatrix(X, y), 3).save_raw() == expected
    check()
"""
)
# From some call on all fail, as in a process that may not use the GPU.
REFUSED = """
import json, sys, warnings
import numpy as np, xgboost as xgb
from faults import DEVICE, Faults
import xgboost_gpu_exact as gpu_exact
status = int(sys.argv[1])
X = np.arange(60, dtype=np.float32).reshape(20, 3)
Faults.begin(DEVICE, int(sys.argv[2]), status, sticks=True)
usable, reason = gpu_exact.device_status()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = xgb.train({"tree_method": "exact"}, xgb.DMatrix(X, X[:, 0]), 2).save_raw("json")
Faults.end()
gpu_exact.take_over(False)
same = model == xgb.train({"tree_method": "exact"}, xgb.DMatrix(X, X[:, 0]), 2).save_raw("json")
print(json.dumps([usable, reason, len(caught), same]))
"""
MODEL = """
import hashlib, sys, xgboost as xgb, xgboost_gpu_exact as gpu_exact
from small_tables import make_table
params = {"tree_method": "exact", "gpu_exact_fallback": "error", "max_depth": 5}
booster = xgb.train(params, xgb.DMatrix(*make_table(3000)), 4)
print(hashlib.sha256(booster.save_raw()).hexdigest())
"""


class Driver:
    """Memory of a device, by the driver's own calls."""

    def __init__(self, ordinal: int = 0) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        self._device = ctypes.c_int()
        assert self._cuda.cuInit(0) == 0
        assert self._cuda.cuDeviceGet(ctypes.byref(self._device), ordinal) == 0
        assert self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), self._device) == 0

    @contextmanager
    def _current(self) -> Iterator[None]:
        assert self._cuda.cuCtxPushCurrent_v2(self._context) == 0
        try:
            yield
        finally:
            assert self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0

    def free(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._current():
            assert self._cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
        return free.value

    def reset(self) -> None:
        """As recipes do that are to free the memory of the device."""
        assert self._cuda.cuDevicePrimaryCtxReset_v2(self._device) == 0

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """A stream of this thread is captured in the mode that also watches the other threads."""
        stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
        assert self._cuda.cuCtxSetCurrent(self._context) == 0
        assert self._cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert self._cuda.cuStreamBeginCapture_v2(stream, 0) == 0
        try:
            yield
        finally:
            assert self._cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0

    @contextmanager
    def filled(self, leave: int) -> Iterator[None]:
        """Somebody takes all but so many bytes."""
        taken = ctypes.c_void_p()
        with self._current():
            size = ctypes.c_size_t(self.free() - leave)
            assert self._cuda.cuMemAlloc_v2(ctypes.byref(taken), size) == 0
        try:
            yield
        finally:
            with self._current():
                assert self._cuda.cuMemFree_v2(taken) == 0


def n_gpus() -> int:
    return sum(gpu_exact.device_status(i).usable for i in range(16))


@pytest.mark.parametrize("route", [TAKE_OVER, CUDA], ids=["cpu", "cuda"])
def test_a_booster_for_each_thread(builder: str, route: dict, request: pytest.FixtureRequest) -> None:
    """On one GPU or, where there are several, on one each: models as if each were alone."""
    on_cuda = "device" in route
    if on_cuda:
        request.getfixturevalue("cuda_context")
    several = on_cuda and n_gpus() > 1
    tables = [make_table(2000 + 500 * i, seed=i) for i in range(4)]

    def train(i: int) -> xgb.Booster:
        device = {"device": f"cuda:{i % n_gpus()}"} if several else {}
        dtrain = xgb.DMatrix(*tables[i], nthread=1)
        return xgb.train(route | SAMPLED | ALONE | device, dtrain, 8)

    alone = [train(i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for i, booster in enumerate(pool.map(train, range(4))):
                assert_same_model(booster, alone[i])


@pytest.mark.parametrize(
    ("library", "code"), [("torch", WITH_TORCH), ("cupy", WITH_CUPY)], ids=["torch", "cupy"]
)
def test_other_libraries(cuda_context: None, library: str, code: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"this environment has no {library}")
    run_python(code)


def test_memory_of_another_device_is_given_back(cuda_context: None) -> None:
    """The table goes while another device is the thread's current one."""
    if n_gpus() < 2:
        pytest.skip("needs two GPUs")
    X, y = make_table(200_000)

    def train() -> None:
        booster = xgb.Booster(CUDA | ALONE | {"device": "cuda:1"}, [dtrain := xgb.DMatrix(X, y)])
        booster.update(dtrain, 0)
        xgb.train(CUDA | ALONE, xgb.DMatrix(X[:99], y[:99]), 1)  # the first is the current one

    train()
    gc.collect()
    driver = Driver(1)
    before = driver.free()
    for _ in range(4):
        train()
        gc.collect()
    assert before - driver.free() < 2 * MIB


def test_a_booster_leaves_the_gpu_that_it_has_left(cuda_context: None) -> None:
    """XGBoost itself goes from one GPU to another with no booster: this one began on the CPU."""
    if n_gpus() < 2:
        pytest.skip("needs two GPUs")
    driver = Driver(0)
    dtrain = xgb.DMatrix(*make_table(400_000))
    booster = xgb.Booster(TAKE_OVER | ALONE, [dtrain])  # trees grow on the first GPU
    before = driver.free()
    booster.update(dtrain, 0)
    held = before - driver.free()
    booster.set_param({"device": "cuda:1"})
    booster.update(dtrain, 1)
    assert before - driver.free() < held // 2


RESET = """
import pickle, sys
import numpy as np, xgboost as xgb, xgboost_gpu_exact as gpu_exact
from small_tables import make_table
from test_neighbours import Driver
params = {"tree_method": "exact", "gpu_exact_fallback": "error", "subsample": 0.8, "nthread": 2}
X, y = make_table(int(sys.argv[1]))
tables = [xgb.DMatrix(X, y) for _ in range(3)]
booster, idle, other = (xgb.Booster(params, [dtrain]) for dtrain in tables)
for b, dtrain in zip((booster, idle, other), tables):
    b.update(dtrain, 0)
Driver().reset()
before = gpu_exact.last_run()
del idle
booster.predict(tables[0])
again = pickle.loads(pickle.dumps(booster))
for i in (1, 2):
    booster.update(tables[0], i)
    again.update(tables[0], i)
fresh = xgb.train(params, xgb.DMatrix(X, y), 3)
assert gpu_exact.last_run().gpu_trees == before.gpu_trees + 7, gpu_exact.last_run()
assert booster.save_raw() == fresh.save_raw() == again.save_raw()
other.update(tables[2], 1)
"""


@pytest.mark.parametrize("n_rows", [2_000, 300_000])
def test_another_library_resets_the_context(builder: str, gpu_module: None, n_rows: int) -> None:
    """Tables are made anew; nothing that lay in the old context is touched."""
    run_python(RESET, str(n_rows))


def test_another_thread_captures_a_graph(builder: str, gpu_module: None) -> None:
    """Trees grow, tables come and go, and the capture is none the worse for it."""
    driver = Driver()
    X, y = make_table(400_000)

    def train() -> bytes:
        return xgb.train(TAKE_OVER | ALONE, xgb.DMatrix(X, y), 2).save_raw()

    expected = train()
    booster = xgb.Booster(TAKE_OVER | ALONE, [dtrain := xgb.DMatrix(X, y)])
    gc.collect()
    before = driver.free()
    booster.update(dtrain, 0)
    with ThreadPoolExecutor(1) as pool, driver.capturing():
        assert pool.submit(train).result() == expected  # made and freed meanwhile
        pool.submit(booster.update, dtrain, 1).result()
        pool.submit(booster.__del__).result()
    assert before - driver.free() < 2 * MIB


def test_a_gpu_that_others_have_filled(builder: str) -> None:
    """One error that says what is missing. Tables of boosters that wait make room before there is one."""
    if builder.startswith("reference builder"):
        pytest.skip("needs a GPU")
    tables = [xgb.DMatrix(*make_table(400_000, seed=i)) for i in range(2)]
    expected = [xgb.train(TAKE_OVER | ALONE, dtrain, 2) for dtrain in tables]
    boosters = [xgb.Booster(TAKE_OVER | ALONE, [dtrain]) for dtrain in tables]
    driver = Driver()
    with driver.filled(leave=8 * MIB), pytest.raises(xgb.core.XGBoostError, match="ree memory on"):
        boosters[0].update(tables[0], 0)
    for i in range(2):
        boosters[0].update(tables[0], i)
        with driver.filled(leave=8 * MIB):
            boosters[1].update(tables[1], i)
    for booster, theirs in zip(boosters, expected, strict=True):
        assert_same_model(booster, theirs)


@pytest.mark.parametrize("route", [TAKE_OVER, CUDA], ids=["cpu", "cuda"])
def test_memory_is_taken_after_it_was_planned(
    builder: str, route: dict, request: pytest.FixtureRequest
) -> None:
    """By others, so that the plan fits but not what it allocates: one error, and nothing is lost."""
    if not Faults.possible or builder.startswith("reference builder"):
        pytest.skip("needs a GPU and a module whose calls can be made to fail, see support/faults.h")
    if "device" in route:
        request.getfixturevalue("cuda_context")
    gc.collect()  # tables of others, which would be given up
    dtrain = xgb.DMatrix(*make_table(400_000))
    expected = xgb.train(route | ALONE, dtrain, 2).save_raw("json")
    kept = Faults.held()
    booster = xgb.Booster(route | ALONE, [dtrain])
    driver, free = Driver(), []
    for _ in range(3):
        with Faults.taken(leave=8 * MIB), pytest.raises(xgb.core.XGBoostError) as error:
            booster.update(dtrain, 0)
        told = "Out of device memory: [0-9]+ bytes asked for .*, [0-9]+ of [0-9]+ bytes free. Free"
        assert re.search(told, str(error.value)), error.value
        assert Faults.held() == kept
        free.append(driver.free())
    assert free[0] - free[-1] < 2 * MIB
    for i in range(2):
        booster.update(dtrain, i)
    assert booster.save_raw("json") == expected


@pytest.mark.parametrize(
    ("error", "remedy"),
    [(46, "another process"), (2, "cannot be used"), (101, "nvidia-smi"), (802, "nvidia-smi")],
    ids=["exclusive process", "full", "part that is gone", "not ready"],
)
def test_a_gpu_that_may_not_be_used(builder: str, error: int, remedy: str) -> None:
    """What a process sees beside one that has the GPU for itself, or of a part that was taken away."""
    if not Faults.possible or builder.startswith("reference builder"):
        pytest.skip("needs a GPU and a module whose calls can be made to fail, see support/faults.h")
    told = [json.loads(run_python(REFUSED, str(error), str(n))) for n in (1, 2, 3, 4, 5)]
    refused = [(reason, warned, same) for usable, reason, warned, same in told if not usable]
    assert refused, told
    assert any(remedy in reason for reason, *_ in refused), refused
    for reason, warned, same in refused:
        assert reason and warned == 1 and same, refused


@pytest.mark.parametrize("visible", ["", "-1", "MIG-0b1c2d3e-0000-0000-0000-000000000000", "99"])
def test_no_gpu_is_visible(builder: str, gpu_module: None, visible: str) -> None:
    code = "import json, xgboost_gpu_exact as g\nprint(json.dumps(g.device_status()))"
    usable, reason = json.loads(run_python(code, CUDA_VISIBLE_DEVICES=visible))
    assert not usable and "CUDA_VISIBLE_DEVICES" in reason


def test_visible_devices_are_renumbered(builder: str, gpu_module: None) -> None:
    """The last GPU as the only one gives the first one's trees."""
    last = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[-1] or str(n_gpus() - 1)
    assert run_python(MODEL, CUDA_VISIBLE_DEVICES=last) == run_python(MODEL)


def test_stock_trains_in_another_thread(builder: str) -> None:
    """XGBoost's histograms beside us: neither changes the other's model."""
    X, y = make_table(4000)

    def train(params: dict) -> xgb.Booster:
        return xgb.train(params | {"nthread": 1, "max_depth": 5}, xgb.DMatrix(X, y, nthread=1), 6)

    hist = {"tree_method": "hist"}
    with stock():
        theirs = [train(TAKE_OVER), train(hist)]
    with ThreadPoolExecutor(2) as pool:
        for booster, expected in zip(pool.map(train, [TAKE_OVER | ALONE, hist]), theirs, strict=True):
            assert_same_model(booster, expected)
