# Copyright 2026, the gpu_exact contributors
"""What bins cost in accuracy: exact against hist of 64, 256 and 4,096 bins, on rows held out.

    python benchmarks/accuracy.py FOLDER

FOLDER has NAME/data.npz each: X, or indptr, indices, data, shape of a sparse table whose absent
values are missing; y; and for ranking qid or group. Depth, rounds and learning rate are the same
for all systems. A seed is another split: a quarter of the rows, or of the queries, is held out and
judged. Of large tables some rows are drawn, once, to keep the study short (--work). The plugin is
not used: its trees are those of XGBoost's exact on the CPU.

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
from arguments import above_zero
from train import origin

OUT = Path(__file__).resolve().parent / "results/accuracy.jsonl"
SYSTEMS = {
    "xgb_exact_cpu": {"tree_method": "exact"},
    "xgb_hist_cpu_64": {"tree_method": "hist", "max_bin": 64},
    "xgb_hist_cpu_256": {"tree_method": "hist", "max_bin": 256},
    "xgb_hist_cpu_4096": {"tree_method": "hist", "max_bin": 4096},
}
MOST_CLASSES = 30  # whole numbers from 0 of more kinds are a regression
HELD_OUT = 0.25


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


def drawn(task: Task, most_work: float) -> Task:
    """As many rows as have so many entries times trees of a round, queries left whole."""
    share = most_work / (task.entries * task.classes)
    if share >= 1:
        return task
    if task.qid is not None:
        return task.take(_of_queries(task.qid, share, np.random.default_rng(0)))
    n = len(task.y)
    return task.take(np.sort(np.random.default_rng(0).permutation(n)[: int(n * share)]))


def split(task: Task, seed: int) -> tuple[Task, Task]:
    """Rows to learn from and rows held out."""
    rng, n = np.random.default_rng([seed, 1]), len(task.y)
    if task.qid is not None:
        test = _of_queries(task.qid, HELD_OUT, rng)
    else:
        test = rng.permutation(n)[: int(n * HELD_OUT)]
    is_test = np.zeros(n, bool)
    is_test[test] = True
    return task.take(np.flatnonzero(~is_test)), task.take(np.flatnonzero(is_test))


def _of_queries(qid: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of a share of the queries."""
    queries = rng.permutation(np.unique(qid))
    return np.flatnonzero(np.isin(qid, queries[: int(len(queries) * share)]))


def loss(task: Task, prediction: np.ndarray) -> float:
    """Less is better."""
    value = metrics.evaluate(task.metric, task.y, prediction, task.qid)
    return 1.0 - value if task.metric == "ndcg" else value


def study(task: Task, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A line for each seed and system."""
    size = {"rows": len(task.y), "columns": task.X.shape[1], "entries": task.entries}
    size["most_values"] = task.most_values()
    params = {"objective": task.objective, "max_depth": options.max_depth, "eta": options.eta}
    shared = params | {"rounds": options.rounds}
    params["nthread"] = options.threads
    if task.classes > 1:
        params["num_class"] = task.classes
    for seed in range(options.seeds):
        parts = split(task, seed)
        train, test = (xgb.DMatrix(p.X, p.y, qid=p.qid, nthread=options.threads) for p in parts)
        for system, own in SYSTEMS.items():
            begin = time.perf_counter()
            model = xgb.train(params | own, train, options.rounds)
            seconds = time.perf_counter() - begin
            losses = [loss(p, model.predict(m)) for p, m in zip(parts, (train, test), strict=True)]
            print(f"{task.name} {seed} {system}: {losses[1]:.6g}, {seconds:.1f} s", flush=True)
            yield {
                "system": system,
                "table": task.name,
                **size,
                **shared,
                "seed": seed,
                "metric": "1 - ndcg" if task.metric == "ndcg" else task.metric,
                "loss_train": losses[0],
                "loss_test": losses[1],
                "xgboost": xgb.__version__,
                **options.origin,
            }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="has NAME/data.npz each")
    parser.add_argument("--tables", help="some names, separated by commas; without it all")
    parser.add_argument("--out", type=Path, help=f"default results/{OUT.name}, of the whole study")
    parser.add_argument("--seeds", type=above_zero(int), default=5)
    parser.add_argument("--rounds", type=above_zero(int), default=100)
    parser.add_argument("--max-depth", type=above_zero(int), default=6)
    parser.add_argument("--eta", type=above_zero(float), default=0.1)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument(
        "--work", type=above_zero(float), default=5e7, help="entries times trees of a round, at most"
    )
    options = parser.parse_args(arguments)
    options.files = sorted(options.folder.glob("*/data.npz"))
    if not options.files:
        parser.error(f"`{options.folder}` has no NAME/data.npz")
    if options.tables is not None:
        there = {f.parent.name: f for f in options.files}
        absent = [name for name in options.tables.split(",") if name not in there]
        if absent:
            parser.error(f"there is no table {', '.join(absent)}; there are {', '.join(there)}")
        options.files = [there[name] for name in options.tables.split(",")]
    if options.out is None:
        names = ("tables", "seeds", "rounds", "max_depth", "eta", "work")
        changed = [n for n in names if getattr(options, n) != parser.get_default(n)]
        if changed:
            of = ", ".join(f"--{name.replace('_', '-')}" for name in changed)
            parser.error(f"with {of} it is another study than that of {OUT.name}: name --out")
        options.out = OUT
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    options.origin = origin()
    made = options.out.with_name(options.out.name + ".part")  # an earlier study stays until the end
    with made.open("w") as out:
        for file in options.files:
            for line in study(drawn(load(file), options.work), options):
                print(json.dumps(line), file=out, flush=True)
    made.rename(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
