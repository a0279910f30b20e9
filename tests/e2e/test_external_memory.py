# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A `DMatrix` of several batches trains like one of all rows: the models are the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import BY_NAME, CUDA, TAKE_OVER, assert_same_model, stock
from problems import STRATEGIES
from small_tables import make_table

pytestmark = pytest.mark.usefixtures("builder")
ROUTES = [TAKE_OVER, BY_NAME]
IDS = ["take_over", "by_name"]
PARAMS = {"nthread": 1, "max_depth": 5, "subsample": 0.8, "colsample_bylevel": 0.7}
ROUNDS = 4


class Batches(xgb.DataIter):
    """Rows between neighbouring bounds; a page each, kept in files."""

    def __init__(self, X: object, y: np.ndarray, bounds: list[int], cache: Path) -> None:
        super().__init__(cache_prefix=str(cache))
        self._rows, self._X, self._y = list(zip(bounds, bounds[1:], strict=False)), X, y
        self._next = 0

    def next(self, input_data: Callable) -> bool:
        if self._next == len(self._rows):
            return False
        begin, end = self._rows[self._next]
        input_data(data=self._X[begin:end], label=self._y[begin:end])
        self._next += 1
        return True

    def reset(self) -> None:
        self._next = 0


def in_batches(X: object, y: np.ndarray, bounds: list[int], path: Path) -> xgb.DMatrix:
    return xgb.DMatrix(Batches(X, y, bounds, path / "cache"))


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "bounds",
    [[0, 3000], [0, 1000, 3000], [0, 1, 33, 700, 701, 2000, 2001, 2999, 3000]],
    ids=["one batch", "two", "eight"],
)
def test_same_model(tmp_path: Path, route: dict, strategy: str, bounds: list[int]) -> None:
    X, y = make_table(3000)
    params = PARAMS | route | {"gpu_exact_strategy": strategy}
    in_parts = in_batches(X, y, bounds, tmp_path)
    model = xgb.train(params, in_parts, ROUNDS)
    assert_same_model(model, xgb.train(params, xgb.DMatrix(X, y), ROUNDS))
    np.testing.assert_array_equal(model.predict(in_parts), model.predict(xgb.DMatrix(X)))


def test_same_model_as_xgboost(tmp_path: Path) -> None:
    X, y = make_table(3000)
    y = np.round(y * 4) / 4  # sums of gradients are exact in the first round
    params = PARAMS | TAKE_OVER | {"base_score": 0.5}
    model = xgb.train(params, in_batches(X, y, [0, 1500, 2000, 3000], tmp_path), 1)
    with stock():
        expected = xgb.train(params, xgb.DMatrix(X, y), 1)
    assert_same_model(model, expected)


@pytest.mark.parametrize("n_batches", [1, 8])
def test_sorted_columns_on_the_host(tmp_path: Path, n_batches: int) -> None:
    """The device has room for the least that a table takes."""
    X, y = make_table(20_000)
    room = gpu_exact.memory_estimate(*X.shape, np.count_nonzero(~np.isnan(X)), max_depth=5)
    params = PARAMS | TAKE_OVER | {"gpu_exact_strategy": "histogram"}
    limited = params | {"gpu_exact_memory_limit": room["histogram"].least}
    bounds = [len(X) * i // n_batches for i in range(n_batches + 1)]
    model = xgb.train(limited, in_batches(X, y, bounds, tmp_path), ROUNDS)
    planned = gpu_exact.last_run().planned_host_bytes
    assert planned > 0 or gpu_exact.device_status().text.startswith("reference builder")
    assert_same_model(model, xgb.train(params, xgb.DMatrix(X, y), ROUNDS))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sparse_rows(tmp_path: Path, strategy: str) -> None:
    """Most values are missing, and some rows have none."""
    X = scipy.sparse.random(2000, 40, 0.1, "csr", np.float32, np.random.default_rng(1))
    y = np.asarray(X.sum(axis=1)).ravel() - X[:, 3].toarray().ravel()
    params = PARAMS | TAKE_OVER | {"gpu_exact_strategy": strategy}
    model = xgb.train(params, in_batches(X, y, [0, 300, 1300, 2000], tmp_path), ROUNDS)
    assert_same_model(model, xgb.train(params, xgb.DMatrix(X, y), ROUNDS))


def test_on_a_cuda_context(cuda_context: None, tmp_path: Path) -> None:
    X, y = make_table(3000)
    model = xgb.train(PARAMS | CUDA, in_batches(X, y, [0, 1000, 3000], tmp_path), ROUNDS)
    assert_same_model(model, xgb.train(PARAMS | CUDA, xgb.DMatrix(X, y), ROUNDS))


def test_several_gpus_are_refused(tmp_path: Path) -> None:
    X, y = make_table(300)
    dtrain = in_batches(X, y, [0, 100, 300], tmp_path)
    with pytest.raises(xgb.core.XGBoostError, match="several batches trains on one GPU alone"):
        xgb.train(PARAMS | TAKE_OVER | {"gpu_exact_devices": "0,0"}, dtrain, 1)


def test_xgboost_s_own_builder_refuses(tmp_path: Path) -> None:
    """Where the GPU cannot grow a tree, nobody can: the reason is told."""
    X, y = make_table(300)
    dtrain = in_batches(X, y, [0, 100, 300], tmp_path)

    def broken(margin: np.ndarray, _: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(margin, np.nan), np.ones_like(margin)

    wording = "`exact` tree method doesn't support external memory training."
    with pytest.raises(xgb.core.XGBoostError) as error:
        xgb.train(PARAMS | TAKE_OVER, dtrain, 1, obj=broken)
    for part in (wording, "NaN or infinite", "Make one `DMatrix`"):
        assert part in str(error.value)
    with stock(), pytest.raises(xgb.core.XGBoostError, match=wording):
        xgb.train(PARAMS | TAKE_OVER, dtrain, 1)
