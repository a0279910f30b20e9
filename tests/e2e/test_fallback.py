# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Where the GPU cannot build trees, XGBoost's own builder does, and says so once."""

import json
import os
import pickle
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    BY_NAME,
    NO_GPU,
    TAKE_OVER,
    assert_cache_is_right,
    assert_same_model,
    run_python,
    stock,
)

TRAIN_WITHOUT_A_GPU = """
import json, sys, warnings
import numpy as np, xgboost as xgb
import xgboost_gpu_exact as gpu_exact
params = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 5)).astype(np.float32)
X[rng.random(X.shape) < 0.2] = np.nan
y = X[:, 0] ** 2 + rng.standard_normal(300)
y = np.nan_to_num(y)

def train(**extra):
    sampling = {"subsample": 0.6, "colsample_bylevel": 0.6, "gamma": 0.1, "nthread": 1}
    booster = xgb.train({**sampling, **extra}, xgb.DMatrix(X, y), 5)
    return booster.save_raw("json").decode("latin1")

error, models = "", []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        models = [train(**params), train(**params)]
    except xgb.core.XGBoostError as e:
        error = str(e)
gpu_exact.take_over(False)
stock = train(tree_method="exact")
print(json.dumps({
    "status": gpu_exact.device_status(),
    "warnings": [str(w.message) for w in caught if "gpu_exact_fallback" in str(w.message)],
    "equal": [model == stock for model in models],
    "error": error,
}))
"""

HAND_OVER = """
import warnings
from oracle import BY_NAME, TAKE_OVER
from problems import assert_equals_stock
warnings.simplefilter("ignore")
for seed in range(100):
    for route in (TAKE_OVER, BY_NAME):
        assert_equals_stock(seed, route, on_gpu=False)
"""

# Which reasons are told, when gradients are first NaN and then too far apart.
REASONS = """
import json, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact

def told(value, verbosity):
    grad, hess = np.full(200, 0.3, np.float32), np.ones(200, np.float32)
    grad[7] = value
    dtrain = xgb.DMatrix(np.arange(400).reshape(200, 2), np.zeros(200))
    params = {"tree_method": "exact", "base_score": 0.0, "verbosity": verbosity}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.Booster(params, [dtrain]).boost(dtrain, 0, grad=grad, hess=hess)
    return sum("gpu_exact_fallback" in str(w.message) for w in caught)

nan, far = float("nan"), 1e18
print(json.dumps([told(*p) for p in [(nan, 0), (nan, 1), (nan, 1), (far, 1), (far, 1), (nan, 1)]]))
"""

NOBODY_LISTENS = """
import json, warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact
X, told = np.arange(60).reshape(20, 3), []
for verbosity in (0, 1, 1):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.train({"tree_method": "exact", "verbosity": verbosity}, xgb.DMatrix(X, X[:, 0]), 2)
    told.append(sum("gpu_exact_fallback" in str(w.message) for w in caught))
print(json.dumps(told))
"""

FORK = """
import os, numpy as np, xgboost as xgb
import xgboost_gpu_exact
with open("/proc/self/maps") as maps:
    assert "libcuda.so" not in maps.read(), "a CUDA driver is loaded"
X = np.arange(60, dtype=np.float32).reshape(20, 3)
child = os.fork()
if child == 0:
    xgb.train({"tree_method": "exact", "nthread": 1}, xgb.DMatrix(X, X[:, 0]), 2)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""

# The child has the parent's booster, and so its table on the device, and gives it up. Errors of a
# child, also a CUDA call in one (see support/reference_module.cc), are its exit status.
FORK_AFTER_CUDA = """
import ctypes, gc, os, sys, warnings
import numpy as np, xgboost as xgb
import xgboost_gpu_exact as gpu_exact
X = np.random.default_rng(0).integers(0, 9, (200, 3)).astype(np.float32)
dtrain = xgb.DMatrix(X, X[:, 0] * X[:, 1], nthread=1)

def train(**extra):
    params = {"tree_method": "exact", "nthread": 1, "subsample": 0.5, "gamma": 1.0}
    booster = xgb.Booster(params | extra, [dtrain])  # xgb.train() gives the table up at its end
    for i in range(3):
        booster.update(dtrain, i)
    return booster, booster.save_raw("json")

def in_child():
    usable, reason = gpu_exact.device_status()
    assert not usable and "forked after CUDA was used" in reason, reason
    assert gpu_exact.device_status(1) == (usable, reason)
    if sys.argv[1] != "trained, and does so first":
        run = gpu_exact.last_run()
        assert (run.gpu_trees, run.cpu_trees) == (0, 0), run  # the parent's are not the child's
    gpu_exact.default_device("cuda")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = [train()[1], train(gpu_exact_devices="0,99")[1]]  # nobody counts devices
    gpu_exact.default_device("cpu")
    assert [reason in str(w.message) for w in caught] == [True], caught
    assert models == [expected, expected]
    run = gpu_exact.last_run()
    assert (run.gpu_trees, run.cpu_trees) == (0, 6), run
    for extra, told in (
        ({"gpu_exact_fallback": "error"}, reason),
        ({"gpu_exact_devices": "0;1"}, "which is no list of devices; set it to"),
    ):
        try:
            train(**extra)
        except xgb.core.XGBoostError as error:
            assert told in str(error), error
        else:
            raise AssertionError("no error")

gpu_exact.take_over(False)
expected = train()[1]
gpu_exact.take_over(True)
if sys.argv[1] == "asked":
    gpu_exact.device_status()
elif sys.argv[1] == "asked for another":
    gpu_exact.device_status(99)
elif sys.argv[1] == "another library":
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
elif sys.argv[1] == "XGBoost":
    xgb.train({"tree_method": "hist", "nthread": 1}, dtrain, 1)
else:
    booster, model = train()
    assert model == expected
child = os.fork()
if child == 0:
    try:
        in_child()
        booster = None
        gc.collect()
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert train()[1] == expected
    assert gpu_exact.device_status().usable
"""

# The child ends as processes do: what was to be written is, and its own handlers run.
FORK_AND_END = """
import atexit, ctypes, gc, os, sys
import numpy as np, xgboost as xgb
import xgboost_gpu_exact
X = np.arange(60, dtype=np.float32).reshape(20, 3)
dtrain = xgb.DMatrix(X, X[:, 0], nthread=1)
booster = xgb.Booster({"tree_method": "exact", "nthread": 1, "verbosity": 0}, [dtrain])
booster.update(dtrain, 0)
child = os.fork()
if child == 0:
    if "trains" in sys.argv[1]:
        booster.update(dtrain, 1)
    if "gives up" in sys.argv[1]:
        del booster, dtrain
        gc.collect()
    atexit.register(ctypes.CDLL(None).printf, b"handled, ")
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
booster.update(dtrain, 1)
print(code)
"""

# XGBoost moves the leaves of absolute errors to medians of the rows that the tree was trained on. Where
# gamma leaves the root alone, it has all of them.
MOVED_LEAVES = """
import numpy as np, xgboost as xgb
import xgboost_gpu_exact as gpu_exact
X = np.random.default_rng(0).standard_normal((200, 3)).astype(np.float32)
dtrain = xgb.DMatrix(X, X[:, 0] ** 2, nthread=1)
params = {"tree_method": "exact", "objective": "reg:absoluteerror", "subsample": 0.5, "nthread": 1}
params |= {"max_depth": 3, "verbosity": 0}
for gamma in (0.5, 1e9):
    models = []
    for taken_over in (False, True):
        gpu_exact.take_over(taken_over)
        models.append(xgb.train(params | {"gamma": gamma}, dtrain, 3).save_raw("json"))
    assert models[0] == models[1], gamma
run = gpu_exact.last_run()
assert (run.gpu_trees, run.cpu_trees) == (0, 6), run
"""


def train_without_a_gpu(params: dict) -> dict:
    result = json.loads(run_python(TRAIN_WITHOUT_A_GPU, json.dumps(params), **NO_GPU))
    assert result["status"][1]
    return result


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_warns_once_and_gives_stock_trees(gpu_module: None, route: dict) -> None:
    result = train_without_a_gpu(route)
    assert result["error"] == ""
    assert result["equal"] == [True, True]
    (warning,) = result["warnings"]
    assert result["status"][1] in warning


def test_a_warning_that_nobody_hears_is_told_later(gpu_module: None) -> None:
    assert json.loads(run_python(NOBODY_LISTENS, **NO_GPU)) == [0, 1, 0]


def test_each_reason_is_told_once(builder: str) -> None:
    assert json.loads(run_python(REASONS)) == [0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_error_names_the_reason(gpu_module: None, route: dict) -> None:
    result = train_without_a_gpu(route | {"gpu_exact_fallback": "error"})
    assert result["status"][1] in result["error"]
    assert 'gpu_exact_fallback="warn"' in result["error"]
    assert result["warnings"] == [] and result["equal"] == []


@pytest.mark.parametrize(
    ("params", "wording", "remedy"),
    [
        (
            {"colsample_bynode": 0.5},
            "column sample by node is not yet supported by the exact tree method.",
            "use `colsample_bylevel`",
        ),
        (
            {"max_depth": 0, "max_leaves": 9},
            "exact tree method doesn't support unlimited depth.",
            "Set `max_depth`",
        ),
    ],
    ids=["colsample_bynode", "leaf_limit"],
)
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_what_only_the_gpu_can_do(
    gpu_module: None, route: dict, params: dict, wording: str, remedy: str
) -> None:
    result = train_without_a_gpu(route | params)
    for part in (wording, remedy, result["status"][1]):
        assert part in result["error"]


def test_hand_over_equals_stock(gpu_module: None) -> None:
    run_python(HAND_OVER, **NO_GPU)


def test_leaves_are_moved_after_a_fallback(builder: str) -> None:
    run_python(MOVED_LEAVES, **NO_GPU, GPU_EXACT_REFERENCE_REFUSES="there is none")


def test_gradients_that_are_not_finite(builder: str, recwarn: pytest.WarningsRecorder) -> None:
    """The tree is handed over, as if the plugin had never drawn a random number for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)).astype(np.float32)
    grad, hess = rng.standard_normal(300).astype(np.float32), np.ones(300, np.float32)
    grad[7] = np.nan
    sampling = {"subsample": 0.6, "colsample_bytree": 0.6, "gamma": 0.1, "num_parallel_tree": 3}

    def train(params: dict) -> tuple[xgb.Booster, xgb.DMatrix]:
        dtrain = xgb.DMatrix(X, np.zeros(300))
        booster = xgb.Booster({"nthread": 1, "base_score": 0.0} | sampling | params, [dtrain])
        for i in range(2):
            booster.boost(dtrain, i, grad=grad, hess=hess)
        return booster, dtrain

    with stock():
        theirs, _ = train(TAKE_OVER)
    for route in (TAKE_OVER, BY_NAME):
        ours, dtrain = train(route)
        assert_same_model(ours, theirs)
        assert_cache_is_right(ours, dtrain)
        with pytest.raises(xgb.core.XGBoostError, match="(?s)NaN or infinite.*gpu_exact_fallback"):
            train(route | {"gpu_exact_fallback": "error"})
    warnings = [w for w in recwarn if "NaN or infinite" in str(w.message)]
    assert len(warnings) <= 1


@pytest.mark.parametrize(
    ("said", "given", "raises"),
    [
        (None, None, False),
        ("", None, False),
        ("warn", None, False),
        ("error", None, True),
        ("error", "default", True),
        ("error", "warn", False),
        ("warn", "error", True),
    ],
)
def test_the_environment_says_what_happens_where_no_tree_can_grow(
    builder: str, monkeypatch: pytest.MonkeyPatch, said: str | None, given: str | None, raises: bool
) -> None:
    """Unless a parameter does; a booster that is unpickled elsewhere does as that process says."""
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    grad, hess = np.full(20, np.nan, np.float32), np.ones(20, np.float32)
    dtrain = xgb.DMatrix(X, X[:, 0])
    monkeypatch.delenv("GPU_EXACT_FALLBACK", raising=False)
    params = TAKE_OVER | ({"gpu_exact_fallback": given} if given else {})
    pickled = pickle.dumps(xgb.train(params, dtrain, 1))
    if said is not None:
        monkeypatch.setenv("GPU_EXACT_FALLBACK", said)
    for booster in (xgb.Booster(params, [dtrain]), pickle.loads(pickled)):
        with pytest.raises(xgb.core.XGBoostError, match="NaN") if raises else nullcontext():
            booster.boost(dtrain, 1, grad=grad, hess=hess)


@pytest.mark.parametrize("variable", ["GPU_EXACT_FALLBACK", "XGBOOST_GPU_EXACT_FALLBACK"])
def test_what_the_environment_cannot_say(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name of earlier releases, too."""
    monkeypatch.setenv(variable, "maybe")
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    for params in (TAKE_OVER, TAKE_OVER | {"gpu_exact_fallback": "warn"}):
        with pytest.raises(xgb.core.XGBoostError) as error:
            xgb.train(params, xgb.DMatrix(X, X[:, 0]), 1)
        told = "GPU_EXACT_FALLBACK is `maybe`: set it to `warn` or `error`."
        assert told in str(error.value)
    xgb.train({"tree_method": "hist"}, xgb.DMatrix(X, X[:, 0]), 1)  # has none of it


def test_predictions_are_right_after_a_round_that_failed_in_its_second_class(builder: str) -> None:
    """The first one's tree was in them; `boost` takes those that there are."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (200, 4)).astype(np.float32)
    dtrain = xgb.DMatrix(X, rng.integers(0, 3, 200))
    params = {"nthread": 1, "objective": "multi:softprob", "num_class": 3, "max_depth": 3}
    booster = xgb.Booster(params | TAKE_OVER | {"gpu_exact_fallback": "error"}, [dtrain])
    grad, hess = rng.integers(-9, 9, (200, 3)).astype(np.float32), np.ones((200, 3), np.float32)
    for i in range(3):
        booster.boost(dtrain, i, grad=grad, hess=hess)
    not_finite = grad.copy()
    not_finite[0, 1] = np.nan
    with pytest.raises(xgb.core.XGBoostError, match="NaN or infinite"):
        booster.boost(dtrain, 3, grad=not_finite, hess=hess)
    booster.boost(dtrain, 3, grad=grad, hess=hess)
    assert booster.num_boosted_rounds() == 4
    assert_cache_is_right(booster, dtrain)


# Says what comes next, however long the question took before.
ASKED_AGAIN = """
import sys, time
import xgboost_gpu_exact as gpu_exact
end = time.monotonic() + 60
for text in sys.argv[1:]:
    while text not in (told := gpu_exact.device_status().text):
        assert time.monotonic() < end, f"{told}, not {text}"
"""


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("802,304,100", ["system not yet initialized", "OS call failed", "No NVIDIA GPU is visible"]),
        ("35,802", ["No NVIDIA driver was found", "does not answer"]),
        ("3", ["This process was forked after CUDA was used"]),
    ],
)
def test_a_driver_that_cannot_be_started_for_the_moment(
    gpu_module: None, answers: str, told: list[str]
) -> None:
    """It is asked again, and not CUDA's runtime, which remembers what it was told."""
    build = next((f for f in Path(gpu_exact._module._name).resolve().parents if (f / "tests").exists()), None)
    driver = build and build / "tests/refusing_driver"
    if not (driver and driver.is_dir()):
        pytest.skip("the driver that tests build is not there")
    path = os.pathsep.join([str(driver), os.environ.get("LD_LIBRARY_PATH", "")])
    run_python(ASKED_AGAIN, *told, LD_LIBRARY_PATH=path, GPU_EXACT_CUINIT=answers)


def test_import_makes_no_cuda_context_and_survives_a_fork() -> None:
    assert run_python(FORK).strip() == "0"


@pytest.mark.parametrize(
    "parent",
    ["asked", "asked for another", "another library", "XGBoost", "trained", "trained, and does so first"],
)
def test_forked_after_cuda_was_used(builder: str, parent: str) -> None:
    """The child warns once and gives stock trees, and the parent goes on with the GPU."""
    if parent in ("another library", "XGBoost") and builder.startswith("reference builder"):
        pytest.skip("needs a GPU")
    if parent == "XGBoost" and not xgb.build_info()["USE_CUDA"]:
        pytest.skip("this XGBoost is built without CUDA")
    run_python(FORK_AFTER_CUDA, parent)


@pytest.mark.parametrize("child", ["as it is", "trains", "gives up", "trains, gives up"])
def test_a_forked_child_ends_with_its_own_status(builder: str, child: str) -> None:
    assert run_python(FORK_AND_END, child) == "handled, 7\n"


@pytest.fixture
def X(builder: str) -> np.ndarray:
    """A table of 60 entries, which fills the device that the reference builder pretends to have."""
    if not builder.startswith("reference builder"):
        pytest.skip("needs a GPU that is full")
    return np.arange(60, dtype=np.float32).reshape(20, 3)


def test_out_of_device_memory(X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of XGBoost's kind, after which training goes on; R's, not this one, names gc()."""
    dtrain = xgb.DMatrix(X, X[:, 0])
    monkeypatch.setenv("GPU_EXACT_REFERENCE_ENTRIES", "59")
    with pytest.raises(xgb.core.XGBoostError, match="Out of device memory") as caught:
        xgb.train(TAKE_OVER, dtrain, 1)
    assert "gc()" not in str(caught.value)
    monkeypatch.setenv("GPU_EXACT_REFERENCE_ENTRIES", "60")
    xgb.train(TAKE_OVER, dtrain, 1)


def test_tables_of_idle_boosters_make_room(X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits gives its table up, and makes it anew when it goes on."""
    tables = [xgb.DMatrix(X, X[:, i]) for i in range(2)]
    boosters = [xgb.Booster(TAKE_OVER, [dtrain]) for dtrain in tables]
    monkeypatch.setenv("GPU_EXACT_REFERENCE_ENTRIES", "60")  # room for one
    for i in range(3):
        for booster, dtrain in zip(boosters, tables, strict=True):
            booster.update(dtrain, i)
    for booster, dtrain in zip(boosters, tables, strict=True):
        assert_same_model(booster, xgb.train(TAKE_OVER, dtrain, 3))


def test_tables_of_idle_boosters_go_before_the_host_is_used(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once: boosters that train in turns do not take the device from each other for ever."""
    tables = [xgb.DMatrix(X, X[:, i]) for i in range(2)]
    boosters = [xgb.Booster(TAKE_OVER, [dtrain]) for dtrain in tables]
    monkeypatch.setenv("GPU_EXACT_REFERENCE_DEVICE_ENTRIES", "60")  # room for one
    on_host = []
    for i in range(4):
        for booster, dtrain in zip(boosters, tables, strict=True):
            booster.update(dtrain, i)
            on_host.append(gpu_exact.last_run().planned_host_bytes)
    assert on_host[:3] == [0, 0, 0]  # the first one came back, and was not idle
    assert [bool(n) for n in on_host[3:]] == [True, False, True, False, True]
    for booster, dtrain in zip(boosters, tables, strict=True):
        assert_same_model(booster, xgb.train(TAKE_OVER, dtrain, 4))


def test_a_context_that_is_reset_takes_its_tables_along(builder: str) -> None:
    """What lay in it is neither used nor freed; boosters go on, and so do models and pickles."""
    if not builder.startswith("reference builder"):
        pytest.skip("tests/e2e/test_neighbours.py resets that of a GPU")
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    dtrain = xgb.DMatrix(X, X[:, 0])
    params = TAKE_OVER | {"gpu_exact_fallback": "error"}
    other = xgb.DMatrix(X, X[:, 1])
    booster, idle = xgb.Booster(params, [dtrain]), xgb.Booster(params, [other])
    booster.update(dtrain, 0)
    idle.update(other, 0)
    gpu_exact._module.GpuExactReferenceReset()
    del idle
    for i in (1, 2):
        booster.update(dtrain, i)
    expected = xgb.train(params, dtrain, 3)
    assert_same_model(booster, expected)
    np.testing.assert_array_equal(booster.predict(dtrain), expected.predict(dtrain))
    assert_same_model(pickle.loads(pickle.dumps(booster)), expected)
    assert gpu_exact.last_run().gpu_trees > 0


def test_a_table_made_anew_needs_no_room_for_two(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one before it, of another strategy, goes first."""
    booster = xgb.Booster(TAKE_OVER, [dtrain := xgb.DMatrix(X, X[:, 0])])
    monkeypatch.setenv("GPU_EXACT_REFERENCE_ENTRIES", "60")
    for i, strategy in enumerate(["sort", "histogram", "sort"]):
        booster.set_param({"gpu_exact_strategy": strategy, "gpu_exact_fallback": "error"})
        booster.update(dtrain, i)
    assert_same_model(booster, xgb.train(TAKE_OVER, dtrain, 3))


@pytest.mark.parametrize(
    "first", ["gpu_exact.device_status()", "train(0)", "gpu_exact.default_device('cuda'), train()"]
)
def test_a_faster_build_is_advised_once(builder: str, first: str) -> None:
    """By the first tree that is to be heard, and in the text of each device_status()."""
    if not builder.startswith("reference"):
        pytest.skip("a GPU's advice depends on its build")
    code = f"""
import warnings
import numpy as np, xgboost as xgb, xgboost_gpu_exact as gpu_exact
X = np.arange(60, dtype=np.float32).reshape(20, 3)

def train(verbosity=1):
    xgb.train({{"tree_method": "exact", "verbosity": verbosity}}, xgb.DMatrix(X, X[:, 0]), 2)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {first}
    train()
    gpu_exact.device_status()
    told = gpu_exact.device_status(1).text
print(sum("build it anew" in str(w.message) for w in caught), told.endswith("build it anew."))
"""
    assert run_python(code, GPU_EXACT_REFERENCE_ADVICE="Slow: build it anew.") == "1 True\n"
    assert run_python(code) == "0 False\n"
