# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Workers of Dask grow the same trees together, each with a part of the rows.

Each worker needs a GPU, best one of its own: here two workers share what there is. EXACT brings the
plugin to workers that do not import it.
"""

import dask.array as da
from dask.distributed import Client, LocalCluster
from xgboost import dask as dxgb
from xgboost_gpu_exact import EXACT

if __name__ == "__main__":  # workers are processes, which read this file again
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        X = da.random.default_rng(0).standard_normal((10_000, 8), chunks=(2_500, 8))
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)

        model = dxgb.DaskXGBClassifier(tree_method=EXACT, n_estimators=30, max_depth=5)
        model.client = client
        model.fit(X, y)
        right = (model.predict(X) == y).mean().compute()
        print(f"{len(client.scheduler_info()['workers'])} workers, accuracy {right:.3f}")
