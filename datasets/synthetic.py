# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Seeded tables of the shapes that the benchmarks use; see README.md for the originals.

Rows are made in blocks, each from its own child of the seed, so a table does not depend on the
number of threads. Fewer rows give the first rows of the same table, up to the last block.

    X, y, qid = make("higgs", rows=100_000)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import NormalDist
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
    classes: int = 1  # of a multi-class objective


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

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=block, dtype=np.float32)
        label = _label(block, rng)
        if distinct is not None:
            _step(block, distinct)
        if missing > 0.0:
            block[rng.random(block.shape, dtype=np.float32) < missing] = np.nan
        return label

    return _table(rows, columns, seed, fill)


def sparse(rows: int, columns: int, a_row: int, seed: int = 0, ones: bool = False) -> Table:
    """Values above zero in some columns of each row, and a label that depends on the commonest.

    Parameters
    ----------
    a_row :
        Columns drawn for a row, equal ones once; column c as often as 1 / sqrt(c).
    ones :
        All values are 1; otherwise distributed exponentially.
    """
    rng = np.random.default_rng(seed)
    column = np.sort((columns * rng.random((rows, a_row)) ** 2).astype(np.int32), axis=1)
    kept = np.ones(column.shape, bool)
    kept[:, 1:] = column[:, 1:] != column[:, :-1]
    value = np.where(ones, np.float32(1), rng.standard_exponential(column.shape, np.float32))
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    X = sp.csr_matrix((value[kept], column[kept], indptr), shape=(rows, columns))
    weight = rng.standard_normal(columns, dtype=np.float32)
    score = X @ weight + rng.standard_normal(rows, dtype=np.float32)
    return Table(X, (score > np.median(score)).astype(np.float32))


def coded(rows: int, categories: Sequence[int], columns: int, seed: int = 0) -> Table:
    """Categorical columns, then continuous ones; a binary label that depends on the first ones of each.

    Parameters
    ----------
    categories :
        Of each categorical column; code c occurs as often as 1 / sqrt(c).
    columns :
        How many are continuous.
    """
    effects = np.random.default_rng([seed, 1])
    weights = [effects.standard_normal(n, dtype=np.float32) for n in categories[:6]]

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.random(out=block, dtype=np.float32)
        code, number = block[:, : len(categories)], block[:, len(categories) :]
        np.floor(code**2 * np.array(categories, np.float32), out=code)
        score = np.sin(6 * number[:, :2]).sum(axis=1) + rng.standard_normal(len(block), dtype=np.float32)
        for j, weight in enumerate(weights):
            score += 0.4 * weight[code[:, j].astype(int)]
        return score > 0.5

    return _table(rows, len(categories) + columns, seed, fill)


def higgs(rows: int, seed: int = 0) -> Table:
    """28 continuous columns, nothing missing."""
    return dense(rows, 28, seed)


def noise(rows: int, seed: int = 0) -> Table:
    """As higgs, but labels are at random: no split is better than others."""

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=block, dtype=np.float32)
        return rng.random(len(block), dtype=np.float32) < 0.5

    return _table(rows, 28, seed, fill)


def bosch(rows: int, seed: int = 0, spread: float = 4.0, steps: int = 800) -> Table:
    """968 measurements with three decimals at 52 stations; a part passes few stations.

    Parameters
    ----------
    spread :
        Standard deviations on either side after which measurements are cut off.
    steps :
        From one end to the other, of 0.001 each.
    """
    columns, stations, passed = 968, 52, 0.19
    station = np.arange(columns) * stations // columns
    scale = steps / (2.0 * spread)

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=block, dtype=np.float32)
        np.clip(block, -spread, spread, out=block)
        block *= scale
        np.round(block, out=block)
        block /= 1000.0
        defect = _label(block[:, ::97] * np.float32(1000.0 / scale), rng)
        defect &= rng.random(len(block)) < 0.02
        block[~(rng.random((len(block), stations)) < passed)[:, station]] = np.nan
        return defect

    return _table(rows, columns, seed, fill)


def bosch1600(rows: int, seed: int = 0) -> Table:
    """As bosch, with twice the values: 1,601, all of them taken by some row."""
    return bosch(rows, seed, spread=3.0, steps=1_600)


def yltr(rows: int, seed: int = 0) -> Table:
    """Documents of queries: 700 columns in [0, 1] of 2 to 65,536 values; relevance 0 to 4."""
    columns = 700
    levels = np.float32(2.0) ** (1 + np.arange(columns) % 16)

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.random(out=block, dtype=np.float32)
        score = block[:, 15:160:16].sum(axis=1) - 5.0 + rng.standard_normal(len(block))
        block *= levels
        np.floor(block, out=block)
        block /= levels
        return np.searchsorted([-0.3, 0.6, 1.6, 2.4], score)

    # 24 documents a query on average, as 473k rows in 20k queries; from 1 to 47.
    sizes = np.random.default_rng([seed, 1]).integers(1, 48, size=rows)
    qid = np.searchsorted(np.cumsum(sizes), np.arange(rows), side="right")
    return _table(rows, columns, seed, fill)._replace(qid=qid.astype(np.int32))


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


def epsilon(rows: int, seed: int = 0) -> Table:
    """2,000 continuous columns, rows of unit length; the label depends on 60 of them."""
    weight = np.random.default_rng([seed, 1]).standard_normal(60, dtype=np.float32)

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=block, dtype=np.float32)
        score = np.einsum("ij,j->i", block[:, :1980:33], weight)
        block /= np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        return score + 4.0 * rng.standard_normal(len(block), dtype=np.float32) > 0

    return _table(rows, 2_000, seed, fill)


def distinct(rows: int, columns: int, seed: int = 0) -> Table:
    """Columns without equal values (up to 2^27 rows), log-uniform from 2^-8 to 2^8; regression."""
    keys = _keys(np.random.default_rng([seed, 1]), columns)
    weight = 0.3 / np.arange(1, columns + 1, dtype=np.float32)
    X = np.empty((rows, columns), np.float32)
    y = np.empty(rows, np.float32)

    def fill(rng: np.random.Generator, begin: int, end: int) -> None:
        y[begin:end] = 0.5 * rng.standard_normal(end - begin, dtype=np.float32)
        z = np.empty((min(columns, 4), end - begin), np.float32)
        for j in range(columns):
            # As the bits of a float32, 2^27 numbers in a row are 16 powers of two.
            number = _permute(np.arange(begin, end, dtype=np.uint32), 27, keys[j])
            X[begin:end, j] = (number + np.uint32((127 - 8) << 23)).view(np.float32)
            uniform = number * np.float32(2.0**-25) - np.float32(2.0)
            y[begin:end] += weight[j] * uniform
            z[j : j + 1] = uniform  # no more than the first four
        y[begin:end] += _signal(z.T)

    _for_blocks(rows, seed, fill)
    return Table(X, y)


def year(rows: int, seed: int = 0) -> Table:
    """90 columns without equal values, regression."""
    return distinct(rows, 90, seed)


def tall(rows: int, seed: int = 0) -> Table:
    """10 columns without equal values, regression."""
    return distinct(rows, 10, seed)


def covtype(rows: int, seed: int = 0) -> Table:
    """10 columns of 67 to 5,827 integers, indicators of 4 areas and 40 soils, 7 uneven classes."""
    values = np.array([1978, 361, 67, 551, 700, 5785, 207, 185, 255, 5827], np.float32)
    classes = np.cumsum([0.365, 0.488, 0.062, 0.005, 0.016, 0.030])
    bounds = [NormalDist().inv_cdf(share) for share in classes]

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        every = np.arange(len(block))
        z = rng.standard_normal((len(block), 10), dtype=np.float32)
        area = np.searchsorted([0.449, 0.501, 0.937], rng.random(len(block)))
        soil = (40 * rng.random(len(block)) ** 2).astype(int)
        score = 0.7 * z[:, 0] + 0.5 * np.where(area > 1, z[:, 5], z[:, 9]) + 0.3 * np.sin(soil)
        score += 0.5 * rng.standard_normal(len(block), dtype=np.float32)
        block[:, :10] = _step(z, values)
        block[:, 10:] = 0.0
        block[every, 10 + area] = 1.0
        block[every, 14 + soil] = 1.0
        return np.searchsorted(bounds, score)

    return _table(rows, 54, seed, fill)


def gisette(rows: int, seed: int = 0) -> Table:
    """5,000 columns, 13% of the values not zero; of 6,000 rows about 780 values a column."""
    weight = np.random.default_rng([seed, 1]).standard_normal(200, dtype=np.float32)

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.random(out=block, dtype=np.float32)
        block *= 65_536 / 0.13
        np.floor(block, out=block)
        block[block >= 65_536] = 0.0
        score = np.einsum("ij,j->i", (block[:, ::25] > 0) - np.float32(0.13), weight)
        return score + rng.standard_normal(len(block), dtype=np.float32) > 0

    return _table(rows, 5_000, seed, fill)


def airline(rows: int, seed: int = 0) -> Table:
    """Flights in integers: month, day, weekday, minute, carrier, from, to, miles; a fifth late."""
    values = np.array([12, 31, 7, 1_440, 22, 300, 300, 4_000], np.float32)
    skew = np.array([1, 1, 1, 1, 2, 3, 3, 2], np.float32)

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.random(out=block, dtype=np.float32)
        np.power(block, skew, out=block)
        block *= values
        np.floor(block, out=block)
        month, _, weekday, minute, carrier, origin, to, _ = block.T
        score = minute / np.float32(960) + np.sin(carrier) * 0.5 + np.sin(weekday) * 0.3
        score += np.sin(origin) * np.cos(month) * 0.5 + np.sin(origin + to) * 0.5
        return score + rng.standard_normal(len(block), dtype=np.float32) > 1.8

    return _table(rows, 8, seed, fill)


def credit(rows: int, seed: int = 0) -> Table:
    """30 columns, a third with heavy tails; columns 0, 4, ... raise the risk, 2, 6, ... lower it."""

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=block, dtype=np.float32)
        score = np.tanh(block[:, ::4]).sum(axis=1) - np.tanh(block[:, 2::4]).sum(axis=1)
        score += np.sin(2 * block[:, 1:9:2]).sum(axis=1) + block[:, 11] * block[:, 13]
        np.exp(block[:, ::3], out=block[:, ::3])
        return score + 2 * rng.standard_normal(len(block), dtype=np.float32) > 5

    return _table(rows, 30, seed, fill)


def segments(rows: int, seed: int = 0) -> Table:
    """A position whose 2,000 segments each have a label of their own, and 7 columns of noise.

    A tenth of the labels is wrong. So 256 bins, of 8 segments each, cannot tell most labels.
    """
    rng = np.random.default_rng([seed, 1])
    bounds, labels = np.sort(rng.random(1_999)), rng.random(2_000) < 0.5

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        rng.random(out=block, dtype=np.float32)
        label = labels[np.searchsorted(bounds, block[:, 0])]
        return label ^ (rng.random(len(block), dtype=np.float32) < 0.1)

    return _table(rows, 8, seed, fill)


def criteo(rows: int, seed: int = 0) -> Table:
    """13 counts with heavy tails, some missing; 26 hashed codes of up to 2^20 values, Zipf."""
    missing = [0.45, 0, 0.21, 0.22, 0.03, 0.22, 0.04, 0, 0.04, 0.45, 0.04, 0.77, 0.22]
    missing = np.array(missing, np.float32)
    bits = np.linspace(2, 20, 26).astype(int)
    keys = _keys(np.random.default_rng([seed, 1]), len(bits))

    def fill(rng: np.random.Generator, block: np.ndarray) -> np.ndarray:
        count, code = block[:, :13], block[:, 13:]
        z = rng.standard_normal(count.shape, dtype=np.float32)
        count[:] = np.floor(np.exp(np.float32(1.5) * z + np.float32(1.0)))
        count[rng.random(count.shape, dtype=np.float32) < missing] = np.nan
        for j, b in enumerate(bits):
            # Inverse distribution function of a density 1/x; a hash hides the rank.
            rank = np.exp2(rng.random(len(block), dtype=np.float32) * np.float32(b))
            code[:, j] = _permute(rank.astype(np.uint32) - np.uint32(1), b, keys[j])
        score = 0.5 * z[:, 1] + 0.3 * z[:, 2] * z[:, 4] + 0.5 * np.sin(code[:, ::5]).sum(axis=1)
        return score + rng.standard_normal(len(block), dtype=np.float32) > 1.25

    return _table(rows, 39, seed, fill)


SHAPES = {
    "higgs": Shape(higgs, 10_500_000, 28, "binary:logistic", "logloss", 12),
    "bosch": Shape(bosch, 1_070_000, 968, "binary:logistic", "logloss", 6),
    "bosch1600": Shape(bosch1600, 1_070_000, 968, "binary:logistic", "logloss", 6),
    "yltr": Shape(yltr, 473_134, 700, "rank:ndcg", "ndcg", 6),
    "news20": Shape(news20, 19_996, 1_355_191, "binary:logistic", "logloss", 6),
    "epsilon": Shape(epsilon, 400_000, 2_000, "binary:logistic", "logloss", 6),
    "year": Shape(year, 463_715, 90, "reg:squarederror", "rmse", 8),
    "covtype": Shape(covtype, 581_012, 54, "multi:softprob", "mlogloss", 8, classes=7),
    "gisette": Shape(gisette, 6_000, 5_000, "binary:logistic", "logloss", 6),
    "airline": Shape(airline, 20_000_000, 8, "binary:logistic", "logloss", 8),
    "criteo": Shape(criteo, 10_000_000, 39, "binary:logistic", "logloss", 8),
    "tall": Shape(tall, 50_000_000, 10, "reg:squarederror", "rmse", 6),
    "noise": Shape(noise, 10_000_000, 28, "binary:logistic", "logloss", 8),
    "credit": Shape(credit, 1_000_000, 30, "binary:logistic", "logloss", 6),
    "segments": Shape(segments, 1_000_000, 8, "binary:logistic", "logloss", 12),
    "small": Shape(higgs, 10_000, 28, "binary:logistic", "logloss", 6),
}


def make(shape: str, rows: int | None = None, seed: int = 0) -> Table:
    """The table of a shape, whole or with another number of rows."""
    if shape not in SHAPES:
        raise ValueError(f"There is no shape `{shape}`; there are {', '.join(SHAPES)}.")
    return SHAPES[shape].make(SHAPES[shape].rows if rows is None else rows, seed)


def _signal(block: np.ndarray) -> np.ndarray:
    """Interactions of the first columns."""
    z = np.pad(block[:, :4], ((0, 0), (0, max(0, 4 - block.shape[1]))))
    return z[:, 0] * z[:, 1] + np.abs(z[:, 2]) - 0.8 + 0.5 * z[:, 3]


def _label(block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Binary, from interactions of the first columns, with noise."""
    return _signal(block) + rng.standard_normal(block.shape[0], dtype=np.float32) > 0


def _step(block: np.ndarray, distinct: int | np.ndarray) -> np.ndarray:
    """Steps over six standard deviations, the outer ones open; in place."""
    block *= np.float32(1 / 6) * distinct
    np.floor(block, out=block)
    return np.clip(block, -(distinct // 2), (distinct - 1) // 2, out=block)


def _keys(rng: np.random.Generator, n: int) -> np.ndarray:
    """For `_permute`: a summand and three factors, all odd."""
    return rng.integers(0, 1 << 32, (n, 4), dtype=np.uint32) | np.uint32(1)


def _permute(number: np.ndarray, bits: int, key: np.ndarray) -> np.ndarray:
    """A permutation of the numbers of so many bits, at least two; in place."""
    number += key[0]
    for factor in key[1:]:
        number *= factor
        number &= np.uint32((1 << bits) - 1)
        number ^= number >> np.uint32(bits // 2)
    return number


def _table(
    rows: int,
    columns: int,
    seed: int,
    fill: Callable[[np.random.Generator, np.ndarray], np.ndarray],
) -> Table:
    """A dense table; `fill` fills a block of it and returns the labels."""
    X = np.empty((rows, columns), np.float32)
    y = np.empty(rows, np.float32)

    def fill_block(rng: np.random.Generator, begin: int, end: int) -> None:
        y[begin:end] = fill(rng, X[begin:end])

    _for_blocks(rows, seed, fill_block)
    return Table(X, y)


def _for_blocks(
    rows: int, seed: int, fill: Callable[[np.random.Generator, int, int], None]
) -> None:
    begins = range(0, rows, BLOCK_ROWS)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))

    def fill_block(i: int) -> None:
        fill(np.random.default_rng(seeds[i]), begins[i], min(begins[i] + BLOCK_ROWS, rows))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill_block, range(len(begins))))
