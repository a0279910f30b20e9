# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The same gradients give the same trees on every machine, to the last bit: those that are stored here."""

import hashlib
import json

import numpy as np
import pytest
import xgboost as xgb
from oracle import RELEASE, TAKE_OVER, stock, trees
from problems import STRATEGIES

ROWS, COLUMNS, ROUNDS = 20_000, 12, 3
# SHA-256 of the trees by release of XGBoost, as its own exact builder grew them.
BEFORE_3_4 = "46501f963e694eff57dd2a947eaf1d192d6a17fdde0d4f979830847c4d045286"
STORED = {
    (3, 2): BEFORE_3_4,
    (3, 3): BEFORE_3_4,
    (3, 4): "51c94765653771db43fccb58a324a71d4580fdba3f58d8b0d95654240b27fb78",
}


def whole_numbers(seed: int, *shape: int) -> np.ndarray:
    """At random, 0 to 2^24 - 1; of no library whose numbers may change."""
    x = (np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return (x >> np.uint64(40)).reshape(shape)


def grown(params: dict) -> str:
    """The hash of trees of gradients whose sums must be rounded, with values missing."""
    X = whole_numbers(1, ROWS, COLUMNS).astype(np.float32)
    X[whole_numbers(2, ROWS, COLUMNS) % 5 == 0] = np.nan
    X[:, ::3] %= 50
    dtrain = xgb.DMatrix(X, np.zeros(ROWS))
    booster = xgb.Booster(params | {"max_depth": 8, "base_score": 0.0}, [dtrain])
    for i in range(ROUNDS):
        unit = (whole_numbers(3 + i, 2, ROWS) / np.float64(3 << 22)).astype(np.float32)
        known = np.nan_to_num(X[:, i], nan=9.0) % 7 / np.float32(7)
        booster.boost(dtrain, i, grad=unit[0] - known, hess=unit[1] + np.float32(0.1))
    return hashlib.sha256(json.dumps(trees(booster)).encode()).hexdigest()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_trees_are_those_of_another_machine(exact: dict, strategy: str) -> None:
    params = {"gpu_exact_fallback": "error", "gpu_exact_strategy": strategy}
    assert grown(exact | params) == STORED[RELEASE]


def test_stored_trees_are_those_of_xgboost(builder: str) -> None:
    with stock():
        assert grown(TAKE_OVER) == STORED[RELEASE]
