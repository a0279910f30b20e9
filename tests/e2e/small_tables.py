# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Tables for the tests of training."""

import numpy as np
import xgboost as xgb
from oracle import TAKE_OVER, stock


def make_table(n_rows: int = 300, n_features: int = 6, seed: int = 0) -> tuple:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + rng.standard_normal(n_rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y.astype(np.float32)


def dyadic(n_rows: int, seed: int = 0) -> np.ndarray:
    """Labels whose squared-error gradients have exact sums in the first round."""
    return (np.random.default_rng(seed).integers(-32, 33, n_rows) / 16).astype(np.float32)


def one_round(
    X: np.ndarray, y: np.ndarray, missing: float = np.nan, **params: object
) -> tuple[xgb.Booster, xgb.Booster]:
    """The same round by the plugin and by XGBoost's own builder."""
    params = {"nthread": 1, "base_score": 0.5} | TAKE_OVER | params
    ours = xgb.train(params, xgb.DMatrix(X, y, missing=missing), 1)
    with stock():
        theirs = xgb.train(params, xgb.DMatrix(X, y, missing=missing), 1)
    return ours, theirs
