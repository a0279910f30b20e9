# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Train on files, one after the other: a table that is never in memory as a whole.

XGBoost's own exact refuses such a table, so this needs a usable GPU. The trees are those of all rows.
"""

import tempfile
from pathlib import Path

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes


class Files(xgb.DataIter):
    """Gives XGBoost the rows of one file at a time; it keeps them in `cache` as it needs them."""

    def __init__(self, files: list[Path], cache: str) -> None:
        super().__init__(cache_prefix=cache)
        self._files, self._next = files, 0

    def next(self, input_data) -> bool:
        if self._next == len(self._files):
            return False
        with np.load(self._files[self._next]) as arrays:
            input_data(data=arrays["X"], label=arrays["y"])
        self._next += 1
        return True

    def reset(self) -> None:
        self._next = 0


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    files = [folder / f"{i}.npz" for i in range(4)]
    for i, file in enumerate(files):
        rng = np.random.default_rng(i)
        X = rng.standard_normal((5_000, 6), dtype=np.float32)
        np.savez(file, X=X, y=X[:, 0] * X[:, 1] + X[:, 2] > 0)

    train = xgb.DMatrix(Files(files, str(folder / "cache")))
    params = {"tree_method": "exact", "objective": "binary:logistic", "max_depth": 6}
    model = xgb.train(params, train, 20)
    print(f"{train.num_row()} rows of {len(files)} files")
    print(model.eval(train))
    del train  # before its cache
