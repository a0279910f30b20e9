#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Train in one way, on one device, and print in JSON whether the trees are XGBoost's own.

    python ways.py WAY DEVICE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
import xgboost as xgb

rng = np.random.default_rng(3)
X = rng.integers(0, 12, (400, 5)).astype(np.float32)
X[rng.random(X.shape) < 0.2] = np.nan
Y = (rng.integers(-64, 65, 400) / 16).astype(np.float32)
# One round from a margin of 0: gradients whose sums are exact in any order of rows.
PARAMS = {
    "tree_method": "exact",
    "base_score": 0.0,
    "max_depth": 5,
    "reg_lambda": 0.5,
    "num_parallel_tree": 2,
    "colsample_bylevel": 0.7,
    "seed": 7,
}
TREES = 2  # of a booster


def by_train(params: dict) -> list[xgb.Booster]:
    return [xgb.train(params, xgb.DMatrix(X, Y), 1)]


def by_cv(params: dict) -> list[xgb.Booster]:
    class Keep(xgb.callback.TrainingCallback):
        def after_iteration(self, model: object, *_: object) -> bool:
            self.boosters = [fold.bst for fold in model.cvfolds]
            return False

    keep = Keep()
    xgb.cv(params, xgb.DMatrix(X, Y), 1, nfold=3, seed=1, callbacks=[keep])
    return keep.boosters


def by_scikit_learn(params: dict) -> list[xgb.Booster]:
    return [xgb.XGBRegressor(n_estimators=1, **params).fit(X, Y).get_booster()]


def by_dask(params: dict) -> list[xgb.Booster]:
    """Workers have the plugin by the parameter alone; two, where they need no GPU each."""
    import dask.array as da
    import distributed
    from xgboost import dask as dxgb
    from xgboost_gpu_exact import EXACT

    n_workers = 1 if params["device"] == "cuda" else 2
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=n_workers, **options) as workers,
        distributed.Client(workers) as client,
    ):
        rows = da.from_array(X, chunks=(200, 5)), da.from_array(Y, chunks=200)
        trained = dxgb.train(
            client, params | {"tree_method": EXACT}, dxgb.DaskDMatrix(client, *rows), 1
        )
        assert list(client.run(trees_grown).values()) == [TREES] * n_workers
    return [trained["booster"]]


def trees_grown() -> int:
    import xgboost_gpu_exact

    return xgboost_gpu_exact.last_run().gpu_trees


WAYS: dict[str, Callable[[dict], list[xgb.Booster]]] = {
    "train": by_train,
    "cv": by_cv,
    "scikit_learn": by_scikit_learn,
    "dask": by_dask,
    "runner": by_train,  # `python -m xgboost_gpu_exact ways.py` gives it plugin and device
}


def main() -> None:
    way, device = sys.argv[1:]
    unchanged = way == "runner"
    assert ("xgboost_gpu_exact" in sys.modules) == unchanged
    import xgboost_gpu_exact as gpu_exact

    usable, builder = gpu_exact.device_status()
    told = {"release": xgb.__version__, "usable": usable, "builder": builder}
    if usable:
        ours = PARAMS | {"gpu_exact_fallback": "error"}
        boosters = WAYS[way](ours if unchanged else ours | {"device": device})
        of_here = 0 if way == "dask" else len(boosters) * TREES
        assert trees_grown() == of_here
        devices = {
            json.loads(booster.save_config())["learner"]["generic_param"]["device"]
            for booster in boosters
        }
        gpu_exact.take_over(False)
        judge = by_train if way == "dask" else WAYS[way]
        theirs = judge(PARAMS | {"device": "cpu"})
        told["device"] = ", ".join(devices)
        told["splits"] = [sum(t.count("<") for t in b.get_dump()) for b in theirs]
        told["same"] = [b.save_raw("json") for b in boosters] == [
            b.save_raw("json") for b in theirs
        ]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
