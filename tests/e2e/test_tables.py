# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Tables at the edges, and tables that are shared, changed and gone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
from oracle import CUDA, TAKE_OVER, assert_same_model, stock, trees, uses_plugin
from small_tables import dyadic, make_table, one_round

pytestmark = pytest.mark.usefixtures("builder")


def test_several_boosters_share_a_dmatrix() -> None:
    X, y = make_table()
    dtrain = xgb.DMatrix(X, y)
    depths = [2, 3, 6]
    boosters = [xgb.Booster({"nthread": 1, "max_depth": d} | TAKE_OVER, [dtrain]) for d in depths]
    for i in range(3):  # in turns
        for booster in boosters:
            booster.update(dtrain, i)
    for depth, booster in zip(depths, boosters, strict=True):
        alone = xgb.Booster({"nthread": 1, "max_depth": depth} | TAKE_OVER, [dtrain])
        for i in range(3):
            alone.update(dtrain, i)
        assert_same_model(booster, alone)


def test_threads_share_a_dmatrix() -> None:
    X, y = make_table(1000)
    dtrain = xgb.DMatrix(X, y)

    def train(depth: int) -> xgb.Booster:
        return xgb.train({"nthread": 1, "max_depth": depth} | TAKE_OVER, dtrain, 5)

    depths = [2, 3, 4, 5]
    with ThreadPoolExecutor(len(depths)) as pool:
        together = list(pool.map(train, depths))
    for depth, booster in zip(depths, together, strict=True):
        assert_same_model(booster, train(depth))


def test_one_booster_on_several_dmatrices() -> None:
    """Each lives for one round only, so that another may get its address."""

    def train() -> xgb.Booster:
        booster = xgb.Booster({"nthread": 1, "base_score": 0.0, "num_feature": 4} | TAKE_OVER)
        for i in range(6):
            rng = np.random.default_rng(i)
            X = rng.integers(0, 9, (200, 4)).astype(np.float32)
            grad = (rng.integers(-64, 65, 200) / 16).astype(np.float32)
            booster.boost(xgb.DMatrix(X, np.zeros(200)), i, grad=grad, hess=np.ones_like(grad))
        return booster

    ours = train()
    with stock():
        theirs = train()
    assert_same_model(ours, theirs)


@pytest.mark.parametrize("missing", [False, True])
def test_deep_tree(missing: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    y = (rng.integers(-32, 33, len(X)) / 16).astype(np.float32)
    ours, theirs = one_round(X, y, max_depth=30, min_child_weight=0, reg_lambda=0)
    assert_same_model(ours, theirs)
    assert len(trees(ours)[0]["parents"]) > 1000


@pytest.mark.parametrize("max_depth", [31, 38, 64])
def test_chain(max_depth: int) -> None:
    """The largest label is always far from the rest: every level splits off one row."""
    X = np.arange(40, dtype=np.float32).reshape(-1, 1)
    params = {"max_depth": max_depth, "reg_lambda": 0, "base_score": 0.0}
    ours, theirs = one_round(X, np.floor(2.5 ** X[:, 0]), **params)
    assert_same_model(ours, theirs)
    depth = max(line.count("\t") for line in ours.get_dump()[0].splitlines())
    assert depth == min(max_depth, 39)


ROWS, COLUMNS = 200, 5


def dense_table() -> np.ndarray:
    rng = np.random.default_rng(0)
    table = rng.integers(1, 9, (ROWS, COLUMNS)).astype(np.float32)
    table[rng.random(table.shape) < 0.3] = np.nan
    return table


def sparse_table() -> sp.csr_matrix:
    """What is absent is what the dense table misses."""
    dense = dense_table()
    return sp.csr_matrix(np.nan_to_num(dense))


class Batches(xgb.DataIter):
    """A page of each part of a table's rows."""

    def __init__(self, cache: str, parts: list[tuple]) -> None:
        super().__init__(cache_prefix=cache)
        self._parts, self._next = parts, 0

    def next(self, input_data: Callable) -> bool:
        if self._next == len(self._parts):
            return False
        data, label = self._parts[self._next]
        input_data(data=data, label=label)
        self._next += 1
        return True

    def reset(self) -> None:
        self._next = 0


class OneBatch(Batches):
    """Makes a DMatrix of one page."""

    def __init__(self, cache: str) -> None:
        super().__init__(cache, [(dense_table(), dyadic(ROWS))])


def read_libsvm(folder: Path) -> xgb.DMatrix:
    datasets = pytest.importorskip("sklearn.datasets")
    path = folder / "table.libsvm"
    datasets.dump_svmlight_file(sparse_table(), dyadic(ROWS), str(path))
    return xgb.DMatrix(f"{path}?format=libsvm")


def from_library(library: str, make: Callable) -> Callable:
    return lambda _: xgb.DMatrix(make(pytest.importorskip(library)), dyadic(ROWS))


SOURCES = {
    "numpy_c": lambda _: xgb.DMatrix(dense_table(), dyadic(ROWS)),
    "numpy_fortran": lambda _: xgb.DMatrix(np.asfortranarray(dense_table()), dyadic(ROWS)),
    "numpy_missing": lambda _: xgb.DMatrix(np.nan_to_num(dense_table()), dyadic(ROWS), missing=0),
    "scipy_csr": lambda _: xgb.DMatrix(sparse_table(), dyadic(ROWS)),
    "scipy_csc": lambda _: xgb.DMatrix(sparse_table().tocsc(), dyadic(ROWS)),
    "pandas": from_library("pandas", lambda pd: pd.DataFrame(dense_table())),
    "arrow": from_library(
        "pyarrow",
        lambda pa: pa.table(
            {str(i): pa.array(c, from_pandas=True) for i, c in enumerate(dense_table().T)}
        ),
    ),
    "polars": from_library("polars", lambda pl: pl.DataFrame(dense_table()).fill_nan(None)),
    "libsvm": read_libsvm,
    "one_batch": lambda folder: xgb.DMatrix(OneBatch(f"{folder}/cache")),
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source: str, tmp_path: Path) -> None:
    """The same trees, whatever the DMatrix is made of."""
    params = {"nthread": 1, "base_score": 0.5} | TAKE_OVER
    dtrain = SOURCES[source](tmp_path)
    assert (dtrain.num_row(), dtrain.num_col()) == (ROWS, COLUMNS)
    ours = xgb.train(params, dtrain, 1)
    with stock():
        theirs = xgb.train(params, xgb.DMatrix(dense_table(), dyadic(ROWS)), 1)
    assert uses_plugin(ours)
    (ours,), (theirs,) = trees(ours), trees(theirs)
    assert ours == theirs and len(ours["parents"]) > 20


ON_THE_GPU = {  # a table or its labels, by library
    "cupy": lambda cupy, array: cupy.asarray(array),
    "torch": lambda torch, array: torch.from_numpy(array).cuda(),
    "cudf": lambda cudf, array: cudf.DataFrame(array).fillna(np.nan),
}


@pytest.mark.parametrize("library", ON_THE_GPU)
def test_tables_of_the_gpu(library: str, cuda_context: None, tmp_path: Path) -> None:
    """Whole and in two batches: the trees of the same table on the host, on both contexts."""
    module = pytest.importorskip(library)
    labels = dyadic(ROWS).astype(np.float32)
    X, y = (ON_THE_GPU[library](module, array) for array in (dense_table(), labels))
    tables = [xgb.DMatrix(X, y)]
    if library != "cudf":
        parts = [(X[:50], y[:50]), (X[50:], y[50:])]
        tables.append(xgb.DMatrix(Batches(f"{tmp_path}/cache", parts)))
    for params in (TAKE_OVER, CUDA):
        params = params | {"gpu_exact_fallback": "error", "base_score": 0.5}
        expected = xgb.train(params, xgb.DMatrix(dense_table(), labels), 3)
        assert len(trees(expected)[0]["parents"]) > 20
        for dtrain in tables:
            model = xgb.train(params, dtrain, 3)
            assert trees(model) == trees(expected)
            np.testing.assert_array_equal(model.predict(dtrain), expected.predict(tables[0]))


def test_sparse_table_wider_than_long() -> None:
    table = sp.random(60, 5000, 0.02, "csr", np.float32, np.random.default_rng(0))
    ours, theirs = one_round(table, dyadic(60))
    assert_same_model(ours, theirs)
    assert len(trees(ours)[0]["parents"]) > 3


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 4), np.float32), np.empty(0)),
        (np.ones((1, 1), np.float32), np.ones(1)),
        (np.arange(50, dtype=np.float32).reshape(-1, 1), dyadic(50)),
        (np.full((50, 3), np.nan, np.float32), dyadic(50)),
        (np.c_[np.arange(50), np.full(50, np.nan)].astype(np.float32), dyadic(50)),
    ],
    ids=["no_rows", "one_row", "one_column", "all_missing", "a_missing_column"],
)
def test_edges(X: np.ndarray, y: np.ndarray) -> None:
    ours, theirs = one_round(X, y)
    assert_same_model(ours, theirs)


@pytest.mark.parametrize("strategy", ["sort", "histogram"])
@pytest.mark.parametrize(("n_columns", "index"), [(4, 4), (40, 340), (40, 2_000_000_000)])
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "not in order"])
def test_a_column_beyond_the_table_is_refused(
    strategy: str, n_columns: int, index: int, in_order: bool
) -> None:
    """SciPy makes such matrices; an error names row, feature and columns, and nothing is harmed."""
    n_rows = 500
    rng = np.random.default_rng(0)
    values = rng.random(3 * n_rows).astype(np.float32)
    indptr = np.arange(0, 3 * n_rows + 1, 3)
    label = rng.integers(-16, 17, n_rows) / 16

    def make(last: int) -> xgb.DMatrix:
        columns = np.tile(np.array([0, 2, 3], np.int32), n_rows)
        columns[3 * 417 + (2 if in_order else 0)] = last
        return xgb.DMatrix(sp.csr_matrix((values, columns, indptr), (n_rows, n_columns)), label)

    params = TAKE_OVER | {"gpu_exact_strategy": strategy, "gpu_exact_fallback": "error"}
    good = make(1)
    other = xgb.Booster(params, [good])
    other.update(good, 0)
    told = f"Row 417 has a value of feature {index}, but the table has {n_columns} columns"
    with pytest.raises(xgb.core.XGBoostError, match=told):
        xgb.train(params, make(index), 2)
    for i in (1, 2):
        other.update(good, i)
    assert_same_model(other, xgb.train(params, good, 3))
