# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Whatever is put in: a model as XGBoost's own, or the error that XGBoost's own gives. Never a crash.

GPU_EXACT_INPUTS sets how many random tables, parameters and configurations are tried (1000 each).
"""

import copy
import gc
import json
import os
import random
from collections.abc import Callable

import numpy as np
import pytest
import xgboost as xgb
from faults import NAMED
from oracle import TAKE_OVER, assert_same_model, stock, trees, trees_grown

pytestmark = pytest.mark.usefixtures("builder")

N_INPUTS = int(os.environ.get("GPU_EXACT_INPUTS", "1000"))
CHUNKS = 10
FLOAT = np.finfo(np.float32)


def train(X: np.ndarray, y: np.ndarray, params: dict, **info: object) -> xgb.Booster | str:
    """The model, or the error in the words that do not name a line of the sources."""
    try:
        dtrain = xgb.DMatrix(X, y, nthread=1, **info)
        booster = xgb.Booster({"nthread": 1, "base_score": 0.0} | params | TAKE_OVER, [dtrain])
        for i in range(2):
            booster.update(dtrain, i)
    except (xgb.core.XGBoostError, ValueError) as e:
        return error_text(e)
    return booster


def error_text(error: Exception) -> str:
    """Without time, place in the sources and stack."""
    return str(error).split("\nStack trace")[0].split(": ", 1)[-1]


def assert_as_stock(
    X: np.ndarray,
    y: np.ndarray,
    params: dict,
    strategy: str = "auto",
    fallback: str = "error",
    **info: object,
) -> bool:
    """The same model or the same error; gives whether there is a model."""
    with stock():
        theirs = train(X, y, params, **info)
    how = {"gpu_exact_fallback": fallback, "gpu_exact_strategy": strategy}
    ours = train(X, y, params | how, **info)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs, (params, info)
        return False
    if far_apart(y, *(info[name] for name in ("weight", "base_margin") if name in info)):
        assert_close_model(ours, theirs, (params, info))
    else:
        assert_same_model(ours, theirs, (params, info))
    return True


def far_apart(*numbers: np.ndarray) -> bool:
    """Whether a gradient may keep few bits beside another: see "Sums" in src/README.md."""
    sizes = np.concatenate([np.abs(n, dtype=np.float64).ravel() for n in numbers])
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return sizes.size > 0 and sizes.max() > 2.0**36 * sizes.min()


def assert_close_model(ours: xgb.Booster, theirs: xgb.Booster, context: object) -> None:
    """The same splits; weights and gains to four digits."""
    for i, (a, b) in enumerate(zip(trees(ours), trees(theirs), strict=True)):
        for key in ("left_children", "right_children", "split_indices", "default_left"):
            assert a[key] == b[key], f"tree {i}, {key}; {context}"
        for key in ("split_conditions", "base_weights", "loss_changes", "sum_hessian"):
            np.testing.assert_allclose(
                a[key], b[key], 2.0**-14, 2.0**-20, err_msg=f"tree {i}, {key}; {context}"
            )


class Tried:
    """Trainings with random parameters, of one round each."""

    def __init__(self) -> None:
        self.n_models = 0
        self.n_grown = 0  # of them by the plugin's builder
        self.n_errors = 0

    def __call__(self, train_once: Callable[[], None]) -> None:
        """Trains, or raises the error of what was put in, which is none of CUDA or memory."""
        before, _ = trees_grown()
        try:
            train_once()
        except (xgb.core.XGBoostError, ValueError) as e:
            self.n_errors += 1
            for text in NAMED:
                assert text not in str(e), e
            return
        self.n_models += 1
        self.n_grown += trees_grown()[0] > before

    def check(self, record_property: Callable[[str, object], None]) -> None:
        record_property("tried", self.n_models + self.n_errors)
        record_property("models", self.n_models)
        record_property("grown", self.n_grown)
        assert self.n_models > 0
        # All but those with another tree method or updater, or with gradients that the CPU takes.
        assert self.n_grown > 0.75 * self.n_models


def labels(n_rows: int) -> np.ndarray:
    return (np.arange(n_rows) * 7 % 16 / 4).astype(np.float32)


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "huge": lambda rng, shape: rng.choice([1, -1, 0.99, 0.5], shape) * FLOAT.max,
    "denormal": lambda rng, shape: rng.integers(-3, 4, shape) * np.float64(2.0**-149),
    "smallest": lambda rng, shape: rng.integers(-3, 4, shape) * np.float64(FLOAT.tiny),
    "adjacent": lambda rng, shape: 1 + rng.integers(0, 3, shape) * np.float64(FLOAT.eps),
    "adjacent, huge": lambda rng, shape: FLOAT.max * (1 - rng.integers(0, 3, shape) * 2.0**-24),
    "zeros of both signs": lambda rng, shape: rng.choice([0.0, -0.0], shape),
    "all magnitudes": lambda rng, shape: rng.choice([-1, 1], shape)
    * 2.0 ** rng.integers(-149, 128, shape),
    "constant": lambda rng, shape: np.full(shape, 3.0),
    "missing": lambda rng, shape: np.full(shape, np.nan),
    "one present": lambda rng, shape: np.where(np.arange(shape[0])[:, None] == 1, 2.0, np.nan)
    + np.zeros(shape),
}


@pytest.mark.parametrize("n_rows", [1, 2, 37, 700])
@pytest.mark.parametrize("kind", VALUES)
def test_values(kind: str, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    with np.errstate(over="ignore"):
        X = VALUES[kind](rng, (n_rows, 3)).astype(np.float32)
    for strategy in ("sort", "histogram"):
        assert assert_as_stock(X, labels(n_rows), {"max_depth": 4, "eta": 1.0}, strategy)
        X[rng.random(X.shape) < 0.3] = np.nan


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values(value: float) -> None:
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    X[1, 1] = value
    assert not assert_as_stock(X, labels(4), {})
    assert assert_as_stock(X, labels(4), {}, missing=value)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (5, 0), (1, 1)])
def test_empty(shape: tuple[int, int]) -> None:
    assert_as_stock(np.zeros(shape, np.float32), labels(shape[0]), {})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_labels_that_are_no_numbers(value: float) -> None:
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    y = labels(20)
    y[3] = value
    for objective in ("reg:squarederror", "binary:logistic", "reg:absoluteerror"):
        with stock():
            theirs = train(X, y, {"objective": objective})
        ours = train(X, y, {"objective": objective})  # gradients that are none go to the CPU
        assert isinstance(ours, str) == isinstance(theirs, str), (objective, ours, theirs)
        if isinstance(ours, str):
            assert ours == theirs
        else:
            assert_same_model(ours, theirs, objective)


@pytest.mark.parametrize("n", [0, 1, 19, 21, 40])
@pytest.mark.parametrize("what", ["label", "weight", "base_margin", "feature_weights", "group"])
def test_wrong_lengths(what: str, n: int) -> None:
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    info: dict = {what: np.ones(n, np.int32 if what == "group" else np.float32)}
    y = info.pop("label", labels(20))
    assert_as_stock(X, y, {}, **info)


@pytest.mark.parametrize("n", [0, 1, 19, 21])
def test_gradients_of_wrong_length(n: int) -> None:
    X = np.arange(60, dtype=np.float32).reshape(20, 3)

    def boost() -> str:
        dtrain = xgb.DMatrix(X, labels(20), nthread=1)
        booster = xgb.Booster(TAKE_OVER | {"nthread": 1}, [dtrain])
        ones = np.ones(n, np.float32)
        with pytest.raises((xgb.core.XGBoostError, ValueError)) as error:
            booster.boost(dtrain, 0, grad=ones, hess=ones)
        return error_text(error.value)

    with stock():
        theirs = boost()
    assert boost() == theirs


def test_dmatrix_that_is_freed() -> None:
    """Under a living booster, which goes on with others of other sizes."""

    def rounds() -> xgb.Booster:
        first = xgb.DMatrix(np.zeros((1, 3)), labels(1), nthread=1)
        booster = xgb.Booster(TAKE_OVER | {"nthread": 1, "base_score": 0.0}, [first])
        booster.save_config()  # takes the number of columns from it
        del first
        for i in range(6):
            rng = np.random.default_rng(i)
            n_rows = int(rng.integers(1, 400))
            X = rng.integers(0, 9, (n_rows, 3)).astype(np.float32)
            dtrain = xgb.DMatrix(X, labels(n_rows), nthread=1)
            ones = np.ones(n_rows, np.float32)
            booster.boost(dtrain, i, grad=labels(n_rows) - 2, hess=ones)
            del dtrain
            gc.collect()
        return booster

    with stock():
        theirs = rounds()
    before = trees_grown()
    assert_same_model(rounds(), theirs)
    assert trees_grown()[0] == before[0] + 6


NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, FLOAT.max, -FLOAT.max]
NUMBERS += [1 + FLOAT.eps, 1 - FLOAT.eps / 2, 1e18, 3e9]
TINY = [2.0**-149, -1e-30]  # of gradients the GPU takes such for zero where others are 1
OBJECTIVES = "reg:squarederror binary:logistic count:poisson reg:absoluteerror rank:pairwise".split()
INFO = ("weight", "base_margin", "feature_weights", "group", "label_lower_bound")


def random_numbers(
    rng: random.Random, shape: tuple[int, ...], numbers: list[float] = NUMBERS
) -> np.ndarray:
    """Mostly such that a model can be trained."""
    if rng.random() < 0.8:
        return np.random.default_rng(rng.getrandbits(32)).integers(0, 5, shape).astype(np.float32)
    n = int(np.prod(shape))
    return np.array(rng.choices(numbers, k=n), np.float64).reshape(shape).astype(np.float32)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_tables(chunk: int, record_property: Callable[[str, object], None]) -> None:
    """Whatever the values and the numbers of rows, columns, labels and what else a table may have."""
    rng = random.Random(chunk)
    n_tried, n_models = 0, 0
    before = trees_grown()
    for _ in range(N_INPUTS // CHUNKS):
        n_rows, n_columns = rng.choice([0, 1, 2, 7, 30]), rng.choice([0, 1, 2, 5])
        X = random_numbers(rng, (n_rows, n_columns), NUMBERS + TINY)
        info: dict = {"missing": rng.choice([np.nan, 0.0, 1.0, np.inf])}
        if np.isinf(info["missing"]):
            info["missing"] *= (-1) ** n_tried  # the other infinity is a value
            X += 0.0  # next to it a zero is itself the threshold, and zeros have no sign here
        # XGBoost itself reads what is not there where a margin has more rows than an empty table.
        for name in rng.sample(INFO, rng.choice([0, 0, 1, 2]) if n_rows else 0):
            of = n_columns if name == "feature_weights" else n_rows
            n = max(0, of + rng.choice([0, 0, 0, 0, 0, -1, 1]))
            info[name] = np.full(n, 1, np.int32) if name == "group" else random_numbers(rng, (n,))
        y = random_numbers(rng, (max(0, n_rows + rng.choice([0] * 9 + [-1, 1])),))
        params = {"objective": rng.choice(OBJECTIVES), "max_depth": rng.choice([1, 3, 6])}
        strategy = rng.choice(["auto", "sort", "histogram"])
        if params["objective"] == "rank:pairwise":
            info.pop("base_margin", None)  # far apart: sums all but cancel, which the CPU rounds
        n_models += assert_as_stock(X, y, params, strategy, fallback="warn", **info)
        n_tried += 1
    record_property("tried", n_tried)
    record_property("models", n_models)
    assert n_models > N_INPUTS // CHUNKS // 10
    assert trees_grown()[0] - before[0] > n_models  # two rounds, of most of them


TEXTS = ["", " ", "auto", "sort", "histogram", "warn", "error", "exact", "hist", "approx", "none", "0"]
TEXTS += ["-1", "1", "7", "8", "1e400", "-0.0", "nan", "inf", "0x10", "1.5", "2147483648", "9" * 40]
TEXTS += ["(1,-1)", "(1", "[[0,1]]", "[[0,", "[[9]]", "{}", '"', "\\", "\n", "\0x", "ä", "x" * 1000]
TEXTS += ["grow_gpu_exact", "grow_colmaker,prune", "grow_gpu_exact,prune", "prune", ",", "left", "learn"]
NAMES = """gpu_exact_strategy gpu_exact_memory_limit gpu_exact_fallback tree_method updater
max_depth max_leaves eta gamma min_child_weight max_delta_step lambda alpha subsample colsample_bytree
colsample_bylevel colsample_bynode monotone_constraints interaction_constraints opt_dense_col
default_direction num_parallel_tree seed grow_policy max_bin process_type refresh_leaf
sampling_method multi_strategy seed_per_iteration booster""".split()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_parameters(chunk: int, record_property: Callable[[str, object], None]) -> None:
    """XGBoostError or a tree; and a booster that was told something better trains."""
    rng = random.Random(chunk)
    X = np.arange(24, dtype=np.float32).reshape(8, 3)
    dtrain = xgb.DMatrix(X, labels(8), nthread=1)
    tried = Tried()
    for _ in range(N_INPUTS // CHUNKS):
        params = {name: random_text(rng) for name in rng.sample(NAMES, rng.choice([1, 1, 2, 3]))}
        booster = xgb.Booster({"nthread": 1, "verbosity": 0} | TAKE_OVER, [dtrain])

        def train_once(booster: xgb.Booster = booster, params: dict = params) -> None:
            booster.set_param(params)
            booster.update(dtrain, 0)
            json.loads(booster.save_config())

        tried(train_once)
    tried.check(record_property)
    assert isinstance(train(X, labels(8), {}), xgb.Booster)


def random_text(rng: random.Random) -> str:
    if rng.random() < 0.7:
        return rng.choice(TEXTS)
    if rng.random() < 0.5:
        return str(rng.choice([rng.randint(-3, 9), rng.uniform(-2, 2), 10.0 ** rng.randint(-50, 50)]))
    return "".join(chr(rng.randint(1, 300)) for _ in range(rng.randint(0, 12)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_configurations(chunk: int, record_property: Callable[[str, object], None]) -> None:
    """A saved configuration with something changed is loaded, or refused; the booster lives on."""
    rng = random.Random(chunk)
    X = np.arange(24, dtype=np.float32).reshape(8, 3)
    dtrain = xgb.DMatrix(X, labels(8), nthread=1)
    configs = []
    for how in (TAKE_OVER, {"updater": "grow_gpu_exact"}, {"updater": "grow_gpu_exact,prune"}):
        booster = xgb.Booster({"nthread": 1, "gpu_exact_strategy": "sort"} | how, [dtrain])
        booster.update(dtrain, 0)
        configs.append(json.loads(booster.save_config()))
    tried = Tried()
    for _ in range(N_INPUTS // CHUNKS):
        config = copy.deepcopy(rng.choice(configs))
        for _ in range(rng.choice([1, 1, 2, 4])):
            change(config["learner"]["gradient_booster"], rng)
        text = json.dumps(config)
        if rng.random() < 0.1:
            text = text[: rng.randrange(len(text))]
        booster = xgb.Booster({"nthread": 1, "verbosity": 0} | TAKE_OVER, [dtrain])

        def train_once(booster: xgb.Booster = booster, text: str = text) -> None:
            booster.load_config(text)
            booster.update(dtrain, 0)
            booster.save_config()

        tried(train_once)
    tried.check(record_property)


def change(config: dict | list, rng: random.Random) -> None:
    """One random place of it: something else, nothing, or something more."""
    while True:
        keys = list(config) if isinstance(config, dict) else list(range(len(config)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(config[key], dict | list) or rng.random() < 0.15:
            break
        config = config[key]
    what = rng.randrange(8)
    if what == 0:
        del config[key]
    elif what == 1 and isinstance(config, list):
        config.append(copy.deepcopy(config[key]))
    elif what == 2 and isinstance(config, dict):
        config[rng.choice(["gpu_exact", "updater", "updater_seq", "name", "x"])] = config[key]
    elif what == 3:
        config[key] = [copy.deepcopy(config[key])] * rng.randrange(4)
    elif what == 4:
        config[key] = {rng.choice(["name", "tree_method", "updater"]): copy.deepcopy(config[key])}
    else:
        config[key] = rng.choice([None, True, rng.randint(-9, 9), 1e300, random_text(rng), [], {}])
