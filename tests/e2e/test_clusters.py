# Copyright 2026, the gpu_exact contributors
"""Dask and Spark: workers have the plugin by the parameters alone, and grow the same trees."""

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from oracle import TAKE_OVER, run_python, stock
from xgboost_gpu_exact import EXACT, UPDATER

if TYPE_CHECKING:
    from distributed import Client

X = np.random.default_rng(3).integers(0, 12, (400, 5)).astype(np.float32)
X[np.random.default_rng(4).random(X.shape) < 0.2] = np.nan
Y = (np.random.default_rng(5).integers(-64, 65, 400) / 16).astype(np.float32)
# One round from a margin of 0: gradients whose sums are exact in any order of rows.
PARAMS = {"base_score": 0.0, "max_depth": 5, "reg_lambda": 0.5}


def expected() -> bytes:
    """By XGBoost's own builder, of all rows."""
    with stock():
        return bytes(xgb.train(PARAMS | TAKE_OVER, xgb.DMatrix(X, Y), 1).save_raw("json"))


@contextmanager
def cluster(preload: list[str] | None = None, processes: bool = True) -> Iterator["Client"]:
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "processes": processes, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.worker.preload": preload or []}),
        distributed.LocalCluster(n_workers=2, **options) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(builder: str) -> Iterator["Client"]:
    with cluster() as client:
        yield client


def dask_train(client: "Client", params: dict) -> bytes:
    import dask.array as da

    rows, labels = da.from_array(X, chunks=(100, 5)), da.from_array(Y, chunks=100)
    dtrain = xgb.dask.DaskDMatrix(client, rows, labels)
    booster = xgb.dask.train(client, PARAMS | params, dtrain, 1)["booster"]
    return bytes(booster.save_raw("json"))


@pytest.mark.usefixtures("builder")
class TestDask:
    """In this order: the first test needs workers that have not imported the plugin yet."""

    @pytest.fixture(autouse=True)
    def _dask(self) -> None:
        pytest.importorskip("xgboost.dask", reason="Dask is not installed", exc_type=ImportError)

    def test_workers_do_not_have_it_by_themselves(self, client: "Client") -> None:
        with pytest.raises(xgb.core.XGBoostError, match="doesn't support distributed training"):
            dask_train(client, TAKE_OVER)

    def test_parameter_brings_it(self, client: "Client") -> None:
        assert dask_train(client, {"tree_method": EXACT}) == expected()

    def test_updater_brings_it(self, client: "Client") -> None:
        model = dask_train(client, {"updater": UPDATER})
        with stock():
            assert model == expected()

    def test_estimator(self, client: "Client") -> None:
        import dask.array as da

        rows, labels = da.from_array(X, chunks=(100, 5)), da.from_array(Y, chunks=100)
        model = xgb.dask.DaskXGBRegressor(n_estimators=1, tree_method=EXACT, **PARAMS)
        model.client = client
        model.fit(rows, labels)
        assert bytes(model.get_booster().save_raw("json")) == expected()
        alone = xgb.Booster(model_file=bytearray(expected()))
        np.testing.assert_array_equal(model.predict(rows).compute(), alone.predict(xgb.DMatrix(X)))

    def test_worker_without_rows(self, client: "Client") -> None:
        """One worker holds the rows, the other one those to evaluate."""
        import dask.array as da

        train, evaluate = client.scheduler_info()["workers"]

        def put(values: np.ndarray, worker: str) -> da.Array:
            return client.persist(da.from_array(values, chunks=values.shape), workers=[worker])

        dtrain = xgb.dask.DaskDMatrix(client, put(X, train), put(Y, train))
        dtest = xgb.dask.DaskDMatrix(client, put(X, evaluate), put(Y, evaluate))
        params = PARAMS | {"tree_method": EXACT}
        trained = xgb.dask.train(client, params, dtrain, 1, evals=[(dtest, "test")])
        assert bytes(trained["booster"].save_raw("json")) == expected()
        assert trained["history"]["test"]["rmse"][0] < Y.std()

    def test_failure_of_a_worker(self, client: "Client") -> None:
        with pytest.raises(xgb.core.XGBoostError, match="unlimited depth"):
            dask_train(client, {"tree_method": EXACT, "max_depth": 0})
        assert dask_train(client, {"tree_method": EXACT}) == expected()

    def test_preload_brings_it(self) -> None:
        with cluster(preload=["xgboost_gpu_exact"]) as client:
            assert dask_train(client, TAKE_OVER) == expected()

    def test_workers_that_are_threads(self) -> None:
        """XGBoost has a communicator for each thread."""
        with cluster(processes=False) as client:
            assert dask_train(client, TAKE_OVER) == expected()


@pytest.mark.parametrize("word", [EXACT, UPDATER])
def test_unpickling_imports_the_plugin(word: str) -> None:
    """As Spark sends what its tasks run: a function and what it refers to."""
    cloudpickle = pytest.importorskip("cloudpickle")
    params = {"tree_method": word, "max_depth": 3}
    closure = base64.b64encode(cloudpickle.dumps(lambda: dict(params))).decode()
    code = """
import base64, pickle, sys
assert "xgboost_gpu_exact" not in sys.modules
params = pickle.loads(base64.b64decode(sys.argv[1]))()
assert "xgboost_gpu_exact" in sys.modules
print(params)
"""
    assert run_python(code, closure).strip() == str({"tree_method": str(word), "max_depth": 3})


SPARK = """
import sys
import numpy as np, xgboost as xgb
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession
from xgboost.spark import SparkXGBRegressor
from test_clusters import PARAMS, X, Y
from xgboost_gpu_exact import UPDATER

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = [(Vectors.dense(x.tolist()), float(y)) for x, y in zip(X, Y)]
frame = spark.createDataFrame(rows, ["features", "label"])
params = {"updater": UPDATER, "tree_method": "approx"}  # of a DMatrix, not a QuantileDMatrix
model = SparkXGBRegressor(num_workers=2, n_estimators=1, **params, **PARAMS).fit(frame)
sys.stdout.write(model.get_booster().save_raw("json").decode())
spark.stop()
"""


def test_spark(builder: str) -> None:
    pytest.importorskip("pyspark")
    assert run_python(SPARK, PYSPARK_PYTHON=sys.executable).endswith(expected().decode())
