# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What bins cost in accuracy: exact against hist of 64, 256 and 4,096 bins, on rows held out.

    python benchmarks/accuracy.py FOLDER
    python benchmarks/accuracy.py --shape segments --out benchmarks/results/accuracy-made.jsonl

FOLDER has NAME/data.npz each: X, or indptr, indices, data, shape of a sparse table whose absent
values are missing; y; and for ranking qid or group. Depth, rounds and learning rate are the same
for all systems. A seed is another split: a quarter of the rows, or of the queries, is held out and
judged. Of large tables some rows are drawn, once, to keep the study short. The plugin is not used:
its trees are those of XGBoost's exact on the CPU.

One JSON line a run is written to --out; `tables.py` makes tables of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import metrics
import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from cases import synthetic
from train import origin

OUT = Path(__file__).resolve().parent / "results/accuracy.jsonl"
SYSTEMS = {
    "xgb_exact_cpu": {"tree_method": "exact"},
    "xgb_hist_cpu_64": {"tree_method": "hist", "max_bin": 64},
    "xgb_hist_cpu_256": {"tree_method": "hist", "max_bin": 256},
    "xgb_hist_cpu_4096": {"tree_method": "hist", "max_bin": 4096},
}
SEEDS, ROUNDS = 5, 100
SHARED = {"max_depth": 6, "eta": 0.1}
MOST_WORK = 5e7  # entries times trees of a round
MOST_CLASSES = 30  # whole numbers from 0 of more kinds are a regression
HELD_OUT = 0.25
ROWS_MADE = 100_000


class Task(NamedTuple):
    """A table, and what is learnt from it."""

    name: str
    X: np.ndarray | sp.csr_matrix  # shape: (rows, columns); NaN or absent is missing
    y: np.ndarray
    qid: np.ndarray | None  # ascending, of a ranking
    objective: str
    metric: str
    classes: int = 1  # trees a round, too

    def take(self, rows: np.ndarray) -> Task:
        """The same with these rows only."""
        qid = None if self.qid is None else self.qid[rows]
        return self._replace(X=self.X[rows], y=self.y[rows], qid=qid)

    @property
    def entries(self) -> int:
        """Values that are present."""
        return self.X.nnz if sp.issparse(self.X) else int(np.count_nonzero(~np.isnan(self.X)))

    def most_values(self) -> int:
        """Different values of the column that has the most."""
        if not sp.issparse(self.X):
            return max(len(np.unique(c[~np.isnan(c)])) for c in self.X.T)
        columns = self.X.tocsc()
        bounds = zip(columns.indptr, columns.indptr[1:], strict=False)
        return max(len(np.unique(columns.data[begin:end])) for begin, end in bounds)


def load(file: Path) -> Task:
    """The table of a file; its label says what is learnt."""
    with np.load(file, allow_pickle=False) as arrays:
        wanted = {"y"} if "X" in arrays else {"y", "data", "indices", "indptr", "shape"}
        if absent := sorted(wanted - {*arrays}):
            raise SystemExit(f"error: {file} has no {', '.join(absent)}; --help has what it must have")
        if "X" in arrays:
            X = arrays["X"]
        else:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
        y, qid = arrays["y"].astype(np.float32), arrays.get("qid")
        if qid is None and "group" in arrays:
            qid = np.repeat(np.arange(len(arrays["group"])), arrays["group"])
    name, kinds = file.parent.name, np.unique(y)
    if qid is not None:
        order = np.argsort(qid, kind="stable")
        return Task(name, X[order], y[order], qid[order], "rank:ndcg", "ndcg")
    if len(kinds) == 2:
        return Task(name, X, np.float32(y == kinds[1]), None, "binary:logistic", "logloss")
    if len(kinds) <= MOST_CLASSES and np.array_equal(kinds, np.arange(len(kinds))):
        return Task(name, X, y, None, "multi:softprob", "mlogloss", len(kinds))
    return Task(name, X, y, None, "reg:squarederror", "rmse")


def made(name: str) -> Task:
    """A table of a shape."""
    shape, (X, y, qid) = synthetic.SHAPES[name], synthetic.make(name, ROWS_MADE)
    return Task(name, X, y, qid, shape.objective, shape.metric, shape.classes)


def drawn(task: Task) -> Task:
    """As many rows as keep it to MOST_WORK, queries left whole."""
    share = MOST_WORK / (task.entries * task.classes)
    return task if share >= 1 else task.take(_part(task, share, np.random.default_rng(0)))


def split(task: Task, seed: int) -> tuple[Task, Task]:
    """Rows to learn from and rows held out."""
    is_test = np.zeros(len(task.y), bool)
    is_test[_part(task, HELD_OUT, np.random.default_rng([seed, 1]))] = True
    return task.take(np.flatnonzero(~is_test)), task.take(np.flatnonzero(is_test))


def _part(task: Task, share: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of a share of the table, or of its queries; ascending."""
    kinds = np.arange(len(task.y)) if task.qid is None else task.qid
    chosen = rng.permutation(np.unique(kinds))
    return np.flatnonzero(np.isin(kinds, chosen[: int(len(chosen) * share)]))


def loss(task: Task, prediction: np.ndarray) -> float:
    """Less is better."""
    value = metrics.evaluate(task.metric, task.y, prediction, task.qid)
    return 1.0 - value if task.metric == "ndcg" else value


def study(task: Task) -> Iterator[dict[str, Any]]:
    """A line for each seed and system."""
    about = {"table": task.name, "rows": len(task.y), "columns": task.X.shape[1]}
    about |= {"entries": task.entries, "most_values": task.most_values()}
    about |= {"objective": task.objective, **SHARED, "rounds": ROUNDS}
    about["metric"] = "1 - ndcg" if task.metric == "ndcg" else task.metric
    params = {"objective": task.objective, **SHARED}
    if task.classes > 1:
        params["num_class"] = task.classes
    for seed in range(SEEDS):
        parts = split(task, seed)
        train, test = (xgb.DMatrix(p.X, p.y, qid=p.qid) for p in parts)
        for system, own in SYSTEMS.items():
            begin = time.perf_counter()
            model = xgb.train(params | own, train, ROUNDS)
            seconds = time.perf_counter() - begin
            losses = [loss(p, model.predict(m)) for p, m in zip(parts, (train, test), strict=True)]
            print(f"{task.name} {seed} {system}: {losses[1]:.6g}, {seconds:.1f} s", flush=True)
            yield {"system": system, **about, "seed": seed} | dict(
                zip(("loss_train", "loss_test"), losses, strict=True)
            )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", type=Path, nargs="?", help="has NAME/data.npz each")
    rows = f"a table of datasets/synthetic.py instead, of {ROWS_MADE:,} rows"
    what.add_argument("--shape", choices=synthetic.SHAPES, metavar="NAME", help=rows)
    parser.add_argument("--out", type=Path, default=OUT, help=f"default: results/{OUT.name}")
    options = parser.parse_args(arguments)
    files = sorted(options.folder.glob("*/data.npz")) if options.folder else []
    if options.folder and not files:
        parser.error(f"`{options.folder}` has no NAME/data.npz")
    tasks = map(load, files) if files else [made(options.shape)]
    about = {"xgboost": xgb.__version__, **origin()}
    part = options.out.with_name(options.out.name + ".part")  # an earlier study stays until the end
    with part.open("w") as out:
        for task in tasks:
            for line in study(drawn(task)):
                print(json.dumps(line | about), file=out, flush=True)
    part.rename(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
