# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Dask and Spark: workers have the plugin by the parameters alone, and grow the same trees."""

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from oracle import TAKE_OVER, run_python, stock
from workers import DEADLINE
from xgboost_gpu_exact import EXACT, UPDATER

if TYPE_CHECKING:
    from distributed import Client

X = np.random.default_rng(3).integers(0, 12, (400, 5)).astype(np.float32)
X[np.random.default_rng(4).random(X.shape) < 0.2] = np.nan
Y = (np.random.default_rng(5).integers(-64, 65, 400) / 16).astype(np.float32)
# One round from a margin of 0: gradients whose sums are exact in any order of rows.
PARAMS = {"base_score": 0.0, "max_depth": 5, "reg_lambda": 0.5}


def expected(labels: np.ndarray = Y, **params: object) -> bytes:
    """By XGBoost's own builder, of all rows."""
    params = PARAMS | TAKE_OVER | params
    with stock():
        return bytes(xgb.train(params, xgb.DMatrix(X, labels), 1).save_raw("json"))


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
    """Its workers do not have the plugin by their environment, as where others have started them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU_EXACT_CHILDREN", "0")
        with cluster() as client:
            yield client


def dask_arrays(labels: np.ndarray = Y, rows: tuple[int, ...] = (100,) * 4) -> tuple:
    import dask.array as da

    return da.from_array(X, chunks=(rows, 5)), da.from_array(labels, chunks=(rows,))


def dask_train(client: "Client", params: dict, dtrain: object = None, **more: object) -> bytes:
    dtrain = dtrain or xgb.dask.DaskDMatrix(client, *dask_arrays())
    booster = xgb.dask.train(client, PARAMS | params, dtrain, 1, **more)["booster"]
    return bytes(booster.save_raw("json"))


def fail_on_one(how: str) -> Callable:
    """An objective that all but one worker can compute; sent to the workers as it is."""

    def objective(margins: np.ndarray, dtrain: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        if xgb.collective.get_rank() == 1:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("This worker's objective is broken.")
        return margins - dtrain.get_label(), np.ones_like(margins)

    return objective


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

    @pytest.mark.parametrize("rows", [(250, 1, 149), (400,)], ids=["uneven", "all of one"])
    def test_shards(self, client: "Client", rows: tuple[int, ...]) -> None:
        dtrain = xgb.dask.DaskDMatrix(client, *dask_arrays(rows=rows))
        assert dask_train(client, {"tree_method": EXACT}, dtrain) == expected()

    def test_a_table_is_used_again(self, client: "Client") -> None:
        """By other boosters, and by another one between."""
        dtrain = xgb.dask.DaskDMatrix(client, *dask_arrays())
        for params in ({}, {"max_depth": 3}, {}):
            trained = dask_train(client, {"tree_method": EXACT} | params, dtrain)
            assert trained == expected(**params)

    @pytest.mark.parametrize(
        ("name", "labels", "params"),
        [
            ("DaskXGBRegressor", Y, {}),
            ("DaskXGBClassifier", (Y > 0).astype(int), {"objective": "binary:logistic"}),
            ("DaskXGBRFRegressor", Y, {"num_parallel_tree": 2, "eta": 1}),
        ],
    )
    def test_estimators(self, client: "Client", name: str, labels: np.ndarray, params: dict) -> None:
        forest = "num_parallel_tree" in params
        given = {"subsample": 1, "colsample_bynode": 1} if forest else {}
        margin = {"base_score": 0.5} if name == "DaskXGBClassifier" else {}  # of 0
        model = getattr(xgb.dask, name)(
            n_estimators=params.get("num_parallel_tree", 1),
            **PARAMS | {"tree_method": EXACT} | margin | given,
        )
        model.client = client
        rows, labels_of_rows = dask_arrays(labels)
        model.fit(rows, labels_of_rows)
        alone = xgb.Booster(model_file=bytearray(expected(labels, **params, **margin)))
        trees = json.loads(alone.save_raw("json"))["learner"]["gradient_booster"]
        booster = model.get_booster()
        assert json.loads(booster.save_raw("json"))["learner"]["gradient_booster"] == trees
        theirs = booster.predict(xgb.DMatrix(X))
        np.testing.assert_array_equal(theirs, alone.predict(xgb.DMatrix(X)))
        if name == "DaskXGBRegressor":
            np.testing.assert_array_equal(model.predict(rows).compute(), theirs)

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
        refused = {"subsample": 0.5, "sampling_method": "gradient_based"}
        with pytest.raises(xgb.core.XGBoostError, match="Only uniform sampling is supported"):
            dask_train(client, {"tree_method": EXACT} | refused)
        assert dask_train(client, {"tree_method": EXACT}) == expected()

    def test_objective_of_one_worker_fails(self, client: "Client") -> None:
        """Dask tells the error of whichever worker it hears of first, which may be XGBoost's own of a
        worker that takes its leave."""
        begin = time.monotonic()
        told = "objective is broken|has lost another worker|Failed to shutdown"
        with pytest.raises((ValueError, xgb.core.XGBoostError), match=told):
            dask_train(client, {"tree_method": EXACT}, obj=fail_on_one("raise"))
        assert time.monotonic() - begin < DEADLINE
        assert dask_train(client, {"tree_method": EXACT}) == expected()

    def test_a_worker_is_killed(self) -> None:
        """The other one's error may be XGBoost's, which cannot take leave of the worker that is gone."""
        told = "has lost another worker|Failed to shutdown|killed|died|Resilience"
        with cluster() as client:
            dask_train(client, {"tree_method": EXACT})  # the time to import all is not counted
            begin = time.monotonic()
            with pytest.raises(Exception, match=told):
                dask_train(client, {"tree_method": EXACT}, obj=fail_on_one("kill"))
            assert time.monotonic() - begin < DEADLINE

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
