# Copyright 2026, the gpu_exact contributors
"""The systems that are compared. Each loads a table, then trains trees while the laps ask for more.

A system that cannot run here raises Unavailable with the reason.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import Case, Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugin/python"))

METRIC_ROUNDS = 2  # rounds after which every system is judged, however many follow
LEAST_COUNTED = 5  # iterations, whatever they take
WINDOW = 20  # iterations of a median, at most
OBJECTIVES = {  # XGBoost's: (LightGBM's, CatBoost's)
    "binary:logistic": ("binary", "Logloss"),
    "multi:softprob": ("multiclass", "MultiClass"),
    "reg:squarederror": ("regression", "RMSE"),
    "rank:ndcg": ("lambdarank", "YetiRank"),
}


class Unavailable(Exception):
    """This system cannot run here, and why."""


class Laps:
    """Iterations: how long each took, how many more there shall be.

    The first ones, which warm up, do not count. Late trees are harder to find than early ones:
    the last that count and the first that count have each their own median.
    """

    def __init__(self, iterations: int, budget_s: float, warm_up: int) -> None:
        """
        Parameters
        ----------
        iterations : At most so many.
        budget_s : No further one after so many seconds, if LEAST_COUNTED were counted.
        warm_up : The first ones, which do not count.
        """
        self.least = warm_up + LEAST_COUNTED
        self.most = max(iterations, self.least)
        self.warm_up = warm_up
        self.seconds: list[float] = []
        self._budget_s = budget_s
        self.prediction: np.ndarray | None = None

    @property
    def more(self) -> bool:
        done = len(self.seconds)
        return done < self.least or (done < self.most and self.spent_s < self._budget_s)

    @property
    def spent_s(self) -> float:
        """What counts against the budget."""
        return sum(self.seconds)

    def affordable(self, seconds: float) -> int:
        """How many iterations of so many seconds the budget allows."""
        return max(self.least, min(self.most, int(self._budget_s / seconds)))

    def time(self, step: Callable[[], object]) -> None:
        begin = time.perf_counter()
        step()
        self.seconds.append(time.perf_counter() - begin)

    @property
    def first(self) -> list[float]:
        return self.seconds[self.warm_up :][:WINDOW]

    @property
    def last(self) -> list[float]:
        return self.seconds[self.warm_up :][-WINDOW:]

    @property
    def set_up_s(self) -> float:
        """What the first iteration took longer than early ones do."""
        return self.seconds[0] - statistics.median(self.first)


class XGBoost:
    """XGBoost with some parameters, with the plugin or without."""

    def __init__(
        self,
        params: dict[str, Any],
        plugin: bool = False,
        needs_cuda: bool = False,
        quantile: bool = False,
    ) -> None:
        self._params, self._quantile = params, quantile
        if plugin:
            self._import_plugin()
        self._xgb = importlib.import_module("xgboost")
        if needs_cuda and not self._xgb.build_info()["USE_CUDA"]:
            raise Unavailable("the wheel xgboost-cpu has no CUDA; use the wheel xgboost")

    @staticmethod
    def _import_plugin() -> None:
        plugin = importlib.import_module("xgboost_gpu_exact")
        status = plugin.device_status()
        if not status.usable:
            raise Unavailable(status.text)

    def load(self, table: Table, case: Case, threads: int) -> None:
        make, bins = self._xgb.DMatrix, {}
        if self._quantile:
            make, bins = self._xgb.QuantileDMatrix, {"max_bin": self._params["max_bin"]}
        self._data = make(table.X, table.y, qid=table.qid, nthread=threads, **bins)
        own = {"objective": case.objective, "max_depth": case.max_depth, "nthread": threads}
        if case.classes > 1:
            own["num_class"] = case.classes
        own |= dict(case.params)
        self._booster = self._xgb.Booster(self._params | own, [self._data])

    def train(self, laps: Laps, between: Callable[[], None]) -> None:
        while laps.more:
            i = len(laps.seconds)
            laps.time(lambda i=i: self._booster.update(self._data, i))
            if i + 1 == METRIC_ROUNDS:  # from the prediction cache: nothing is traversed
                laps.prediction = self._booster.predict(self._data)
            between()


class LightGBM:
    """LightGBM's histograms through OpenCL, which is what its wheel has."""

    def __init__(self, device: str) -> None:
        self._lgb, self._device = _import("lightgbm"), device

    def load(self, table: Table, case: Case, threads: int) -> None:
        params = {
            "device_type": self._device,
            "objective": OBJECTIVES[case.objective][0],
            "num_class": case.classes,
            "max_depth": case.max_depth,
            "num_leaves": min(2**case.max_depth, 131072),  # the most that it allows
            "learning_rate": 0.3,
            "lambda_l2": 1.0,
            "min_sum_hessian_in_leaf": 1.0,
            "min_data_in_leaf": 1,
            "num_threads": threads,
            "verbosity": -1,
        }
        group = None if table.qid is None else np.unique(table.qid, return_counts=True)[1]
        self._X = table.X
        data = self._lgb.Dataset(table.X, table.y, group=group, params=params).construct()
        self._booster = self._lgb.Booster(params, data)

    def train(self, laps: Laps, between: Callable[[], None]) -> None:
        while laps.more:
            laps.time(self._booster.update)
            between()
        laps.prediction = self._booster.predict(self._X, num_iteration=METRIC_ROUNDS)


class CatBoost:
    """CatBoost's symmetric trees. It trains in one call; its own log tells the iterations apart."""

    def __init__(self, device: str) -> None:
        self._catboost, self._device = _import("catboost"), device

    def load(self, table: Table, case: Case, threads: int) -> None:
        self._loss = OBJECTIVES[case.objective][1]
        self._params = {
            "task_type": self._device,
            "loss_function": self._loss,
            "depth": min(case.max_depth, 16),  # the most that it allows
            "learning_rate": 0.3,
            "thread_count": threads,
        }
        if case.classes > 1:
            self._params["classes_count"] = case.classes
        X = np.asarray(table.X) if not sp.issparse(table.X) else table.X
        self._pool = self._catboost.Pool(X, np.asarray(table.y), group_id=table.qid)

    def train(self, laps: Laps, between: Callable[[], None]) -> None:
        _, trial = self._fit(laps.least)
        model, laps.seconds = self._fit(laps.affordable(trial[-1]))
        between()
        kind = "Probability" if self._loss in ("Logloss", "MultiClass") else "RawFormulaVal"
        prediction = model.predict(self._pool, prediction_type=kind, ntree_end=METRIC_ROUNDS)
        laps.prediction = prediction[:, 1] if self._loss == "Logloss" else prediction

    def _fit(self, iterations: int) -> tuple[Any, list[float]]:
        """A model, and the seconds of each iteration; set-up counts to the first."""
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            own = {"iterations": iterations, "train_dir": folder, "verbose": False}
            model = self._catboost.CatBoost(self._params | own).fit(self._pool)
            log = json.loads(Path(folder, "catboost_training.json").read_text())
        total = time.perf_counter() - begin
        seconds = np.diff([i["passed_time"] for i in log["iterations"]]).tolist()
        return model, [total - sum(seconds), *seconds]


def _import(name: str) -> Any:
    if importlib.util.find_spec(name) is None:
        raise Unavailable(f"the package {name} is not installed")
    return importlib.import_module(name)


STRATEGIES = ("auto", "sort", "histogram")  # of the plugin


def _ours(strategy: str) -> dict[str, Any]:
    """Never the time of XGBoost's own builder."""
    return {"gpu_exact_fallback": "error", "gpu_exact_strategy": strategy}


def _hist(bins: int, quantile: bool) -> Callable[[], XGBoost]:
    params = {"tree_method": "hist", "device": "cuda", "max_bin": bins}
    return lambda: XGBoost(params, needs_cuda=True, quantile=quantile)


# In the order of running: XGBoost's own exact comes first, as the judge of the plugin. Those of
# EXACT are made for a strategy.
SYSTEMS = {
    "xgb_exact_cpu": lambda: XGBoost({"tree_method": "exact"}),
    "gpu_exact_cpu_context": lambda strategy: XGBoost(
        {"tree_method": "exact"} | _ours(strategy), plugin=True
    ),
    "gpu_exact_cuda": lambda strategy: XGBoost(
        {"tree_method": "exact", "device": "cuda"} | _ours(strategy),
        plugin=True,
        needs_cuda=True,
    ),
    "xgb_hist_gpu_256": _hist(256, quantile=True),
    "xgb_hist_gpu_256_dmatrix": _hist(256, quantile=False),
    "xgb_hist_gpu_4096": _hist(4096, quantile=True),
    "xgb_hist_gpu_4096_dmatrix": _hist(4096, quantile=False),
    "lightgbm_gpu": lambda: LightGBM("gpu"),
    "catboost_gpu": lambda: CatBoost("GPU"),
}
JUDGE = "xgb_exact_cpu"
EXACT = ("gpu_exact_cpu_context", "gpu_exact_cuda")
NEED_NO_GPU = (JUDGE, "gpu_exact_cpu_context")  # the latter runs on what the plugin finds
PEERS = ("lightgbm_gpu", "catboost_gpu")  # where they do not run, that is no failure
