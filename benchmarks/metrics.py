# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The same metric for every system, and whether it lets a time count."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

BLOCK_ROWS = 1 << 18
# How far the plugin's trees may be from XGBoost's exact ones. In sums of another order a tie may
# fall differently, and gradients of a GPU differ in their last bits; NDCG jumps where two swap.
TOLERANCE = {"logloss": 1e-5, "mlogloss": 1e-5, "rmse": 1e-5, "ndcg": 1e-3}


def evaluate(metric: str, y: np.ndarray, prediction: np.ndarray, qid: np.ndarray | None) -> float:
    """Of probabilities (mlogloss: of each class), values (rmse) or scores (ndcg), over all rows."""
    if metric == "ndcg":
        return ndcg(y, prediction, qid)
    if metric == "rmse":
        return math.sqrt(_mean(lambda y, p: (y - p) ** 2, y, prediction))
    return _mean(_log_losses, y, prediction)


def _log_losses(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    p = np.where(y > 0, p, 1.0 - p) if p.ndim == 1 else p[np.arange(len(y)), y.astype(int)]
    return -np.log(np.clip(p, 1e-15, 1 - 1e-15))


def _mean(
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray], y: np.ndarray, prediction: np.ndarray
) -> float:
    """Over rows, in blocks, as there may be 10^8."""

    def of_block(begin: int) -> float:
        rows = slice(begin, begin + BLOCK_ROWS)
        return float(np.sum(losses(y[rows], prediction[rows].astype(np.float64))))

    with ThreadPoolExecutor() as pool:
        return math.fsum(pool.map(of_block, range(0, len(y), BLOCK_ROWS))) / len(y)


def ndcg(y: np.ndarray, score: np.ndarray, qid: np.ndarray) -> float:
    """Mean over queries, gain 2^y - 1, all ranks; a query without a relevant document counts 1."""
    starts = np.flatnonzero(np.r_[True, np.diff(qid) != 0])
    rank = np.arange(len(qid)) - np.repeat(starts, np.diff(np.r_[starts, len(qid)]))
    discount = 1.0 / np.log2(rank + 2.0)

    def dcg(order: np.ndarray) -> np.ndarray:
        return np.add.reduceat((2.0 ** y[order].astype(np.float64) - 1.0) * discount, starts)

    ideal = dcg(np.lexsort((-y, qid)))
    found = dcg(np.lexsort((-score, qid)))
    return float(np.mean(np.where(ideal > 0, found / np.where(ideal > 0, ideal, 1.0), 1.0)))


def untrained(metric: str, y: np.ndarray, qid: np.ndarray | None) -> float:
    """What a model without trees reaches: mean label, equal classes, or the table's order."""
    if metric == "mlogloss":
        return math.log(np.max(y) + 1.0)
    return evaluate(metric, y, np.full(len(y), np.mean(y, dtype=np.float64)), qid)


def objection(metric: str, value: float, baseline: float, exact: float | None) -> str | None:
    """Why a time does not count; None where it does.

    Parameters
    ----------
    exact :
        XGBoost's own exact value of the same table, for a system that must reach it.
    """
    better = value > baseline if metric == "ndcg" else value < baseline
    if not better:  # NaN too
        return f"{metric} {value:.6g} is no better than {baseline:.6g} without a tree"
    if exact is not None and abs(value - exact) > TOLERANCE[metric] * abs(exact):
        return f"{metric} {value:.9g} is not the {exact:.9g} of XGBoost's exact"
    return None
