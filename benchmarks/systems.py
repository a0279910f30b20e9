# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The systems that are compared. Each loads a table, then trains trees while the laps ask for more.

A system that cannot run here raises Unavailable with the reason.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugin/python"))

METRIC_ROUNDS = 2  # rounds after which every system is judged, however many follow
LEAST_COUNTED = 5  # iterations, whatever they take
WINDOW = 20  # iterations of a median, at most


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
        budget_s : No further one once those that count took so long, if LEAST_COUNTED were counted.
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
        done, spent_s = len(self.seconds), sum(self.seconds[self.warm_up :])
        return done < self.least or (done < self.most and spent_s < self._budget_s)

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

    def __init__(self, params: dict[str, Any], quantile: bool = False) -> None:
        self._params, self._quantile = params, quantile
        if "gpu_exact_fallback" in params:
            status = importlib.import_module("xgboost_gpu_exact").device_status()
            if not status.usable:
                raise Unavailable(status.text)
        self._xgb = importlib.import_module("xgboost")
        if params.get("device", "cpu") != "cpu" and not self._xgb.build_info()["USE_CUDA"]:
            raise Unavailable("the wheel xgboost-cpu has no CUDA; use the wheel xgboost")

    def load(self, table: Table, case: Case, threads: int) -> None:
        make, bins = self._xgb.DMatrix, {}
        if self._quantile:
            make, bins = self._xgb.QuantileDMatrix, {"max_bin": self._params["max_bin"]}
        types = {"feature_types": case.feature_types, "enable_categorical": True}
        self._data = make(table.X, table.y, qid=table.qid, nthread=threads, **types, **bins)
        own = {"objective": case.objective, "max_depth": case.max_depth, "nthread": threads}
        if case.classes > 1:
            own["num_class"] = case.classes
        self.booster = self._xgb.Booster(self._params | own | dict(case.params), [self._data])

    def train(self, laps: Laps, between: Callable[[], None] = lambda: None) -> None:
        while laps.more:
            i = len(laps.seconds)
            laps.time(lambda i=i: self.booster.update(self._data, i))
            if i + 1 == METRIC_ROUNDS:  # from the prediction cache: nothing is traversed
                laps.prediction = self.booster.predict(self._data)
            between()


PLUGIN = {"tree_method": "exact", "gpu_exact_fallback": "error"}  # never XGBoost's own builder


def _hist(bins: int, quantile: bool) -> Callable[[], XGBoost]:
    params = {"tree_method": "hist", "device": "cuda", "max_bin": bins}
    return lambda: XGBoost(params, quantile)


# In the order of running: XGBoost's own exact comes first, as the judge of the plugin.
SYSTEMS = {
    "xgb_exact_cpu": lambda: XGBoost({"tree_method": "exact"}),
    "gpu_exact_cpu_context": lambda: XGBoost(PLUGIN),
    "gpu_exact_cuda": lambda: XGBoost(PLUGIN | {"device": "cuda"}),
    "xgb_hist_gpu_256": _hist(256, quantile=True),
    "xgb_hist_gpu_256_dmatrix": _hist(256, quantile=False),
    "xgb_hist_gpu_4096": _hist(4096, quantile=True),
    "xgb_hist_gpu_4096_dmatrix": _hist(4096, quantile=False),
}
JUDGE = "xgb_exact_cpu"
EXACT = ("gpu_exact_cpu_context", "gpu_exact_cuda")
NEED_NO_GPU = (JUDGE, "gpu_exact_cpu_context")  # the latter runs on what the plugin finds
