# Copyright 2026, the gpu_exact contributors
"""Seeded tables of the shapes that the benchmarks use; see README.md for the originals.

Rows are made in blocks, each from its own child of the seed, so a table does not depend on the
number of threads. Fewer rows give the first rows of the same table, up to the last block.

    X, y, qid = make("higgs", rows=100_000)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

BLOCK_ROWS = 1 << 16


class Table(NamedTuple):
    """In X, NaN or (sparse) an absent value is missing; qid ascends."""

    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    qid: np.ndarray | None = None


class Shape(NamedTuple):
    """A table and how it is trained."""

    make: Callable[[int, int], Table]  # (rows, seed)
    rows: int
    columns: int
    objective: str
    metric: str
    max_depth: int


def dense(
    rows: int, columns: int, seed: int = 0, distinct: int | None = None, missing: float = 0.0
) -> Table:
    """Normally distributed columns and a binary label that depends on a few of them.

    Parameters
    ----------
    distinct :
        Values a column has; None leaves it continuous.
    missing :
        Part of the values that is missing, at random.
    """
    X = np.empty((rows, columns), np.float32)
    y = np.empty(rows, np.float32)

    def fill(rng: np.random.Generator, begin: int, end: int) -> None:
        block = X[begin:end]
        rng.standard_normal(out=block, dtype=np.float32)
        y[begin:end] = _label(block, rng)
        if distinct is not None:  # steps over six standard deviations, the outer ones open
            np.floor(block * np.float32(distinct / 6), out=block)
            np.clip(block, -(distinct // 2), (distinct - 1) // 2, out=block)
        if missing > 0.0:
            block[rng.random(block.shape, dtype=np.float32) < missing] = np.nan

    _for_blocks(rows, seed, fill)
    return Table(X, y)


def higgs(rows: int, seed: int = 0) -> Table:
    """28 continuous columns, nothing missing."""
    return dense(rows, 28, seed)


def bosch(rows: int, seed: int = 0) -> Table:
    """968 measurements with three decimals at 52 stations; a part passes few stations."""
    columns, stations, passed = 968, 52, 0.19
    X = np.empty((rows, columns), np.float32)
    y = np.empty(rows, np.float32)
    station = np.arange(columns) * stations // columns

    def fill(rng: np.random.Generator, begin: int, end: int) -> None:
        block = X[begin:end]
        rng.standard_normal(out=block, dtype=np.float32)
        np.clip(block, -4.0, 4.0, out=block)
        block *= 100.0
        np.round(block, out=block)
        block /= 1000.0  # -0.4 to 0.4 in steps of 0.001
        defect = _label(block[:, ::97] * np.float32(10.0), rng)
        y[begin:end] = defect * (rng.random(end - begin) < 0.02)
        block[~(rng.random((end - begin, stations)) < passed)[:, station]] = np.nan

    _for_blocks(rows, seed, fill)
    return Table(X, y)


def yltr(rows: int, seed: int = 0) -> Table:
    """Documents of queries: 700 columns in [0, 1] of 2 to 65,536 values; relevance 0 to 4."""
    columns = 700
    X = np.empty((rows, columns), np.float32)
    y = np.empty(rows, np.float32)
    levels = np.float32(2.0) ** (1 + np.arange(columns) % 16)

    def fill(rng: np.random.Generator, begin: int, end: int) -> None:
        block = X[begin:end]
        rng.random(out=block, dtype=np.float32)
        score = block[:, 15:160:16].sum(axis=1) - 5.0 + rng.standard_normal(end - begin)
        y[begin:end] = np.searchsorted([-0.3, 0.6, 1.6, 2.4], score)
        np.floor(block * levels, out=block)
        block /= levels

    _for_blocks(rows, seed, fill)
    # 24 documents a query on average, as 473k rows in 20k queries; from 1 to 47.
    sizes = np.random.default_rng([seed, 1]).integers(1, 48, size=rows)
    qid = np.searchsorted(np.cumsum(sizes), np.arange(rows), side="right")
    return Table(X, y, qid.astype(np.int32))


def news20(rows: int, seed: int = 0) -> Table:
    """Texts: 1,355,191 words of Zipf frequency, about 455 a row, unit length, binary label."""
    columns, words = 1_355_191, 455
    rng = np.random.default_rng(seed)
    # A word drawn twice counts once; 1.35 words are drawn for one that stays.
    lengths = np.maximum(1, 1.35 * words * rng.lognormal(-0.32, 0.8, rows)).astype(np.int64)
    row = np.repeat(np.arange(rows), lengths)
    # Inverse distribution function of a density 1/x: word frequency falls with the rank.
    word = (np.float64(columns) ** rng.random(row.size)).astype(np.int64) - 1
    key = np.unique(row * columns + np.minimum(word, columns - 1))
    row, word = np.divmod(key, columns)
    value = rng.random(key.size, dtype=np.float32) + np.float32(0.1)
    indptr = np.searchsorted(row, np.arange(rows + 1))
    norm = np.sqrt(np.add.reduceat(value**2, indptr[:-1]))
    value /= np.repeat(norm, np.diff(indptr))
    X = sp.csr_matrix((value, word.astype(np.int32), indptr), shape=(rows, columns))
    weight = rng.standard_normal(columns, dtype=np.float32)
    y = (X @ weight + 0.3 * rng.standard_normal(rows) > 0).astype(np.float32)
    return Table(X, y)


SHAPES = {
    "higgs": Shape(higgs, 10_500_000, 28, "binary:logistic", "logloss", 12),
    "bosch": Shape(bosch, 1_070_000, 968, "binary:logistic", "logloss", 6),
    "yltr": Shape(yltr, 473_134, 700, "rank:ndcg", "ndcg", 6),
    "news20": Shape(news20, 19_996, 1_355_191, "binary:logistic", "logloss", 6),
    "small": Shape(higgs, 10_000, 28, "binary:logistic", "logloss", 6),
}


def make(shape: str, rows: int | None = None, seed: int = 0) -> Table:
    """The table of a shape, whole or with another number of rows."""
    if shape not in SHAPES:
        raise ValueError(f"There is no shape `{shape}`; there are {', '.join(SHAPES)}.")
    return SHAPES[shape].make(SHAPES[shape].rows if rows is None else rows, seed)


def _label(block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Binary, from interactions of the first columns, with noise."""
    z = np.pad(block[:, :4], ((0, 0), (0, max(0, 4 - block.shape[1]))))
    signal = z[:, 0] * z[:, 1] + np.abs(z[:, 2]) - 0.8 + 0.5 * z[:, 3]
    return signal + rng.standard_normal(block.shape[0], dtype=np.float32) > 0


def _for_blocks(
    rows: int, seed: int, fill: Callable[[np.random.Generator, int, int], None]
) -> None:
    begins = range(0, rows, BLOCK_ROWS)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))

    def fill_block(i: int) -> None:
        fill(np.random.default_rng(seeds[i]), begins[i], min(begins[i] + BLOCK_ROWS, rows))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill_block, range(len(begins))))
