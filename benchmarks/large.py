# Copyright 2026, the gpu_exact contributors
"""Train one GPU on a table larger than it holds without the host's help, or several: one JSON line.

    python benchmarks/large.py --entries 12e9 --cache /dev/shm
    python benchmarks/large.py --entries 1e10 --workers 4

For one GPU the table is a `DMatrix` of several batches, made one after the other, as no machine has
room for it twice. XGBoost keeps it as pages below `--cache`, 8 bytes an entry, in memory where that
folder is. Workers, a process and a GPU each, have a `DMatrix` of their part of the rows in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import scale
import train
import xgboost as xgb
from arguments import above_zero, folder

import device

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "datasets"))
import synthetic


class Batches(xgb.DataIter):
    """Dense rows of normally distributed values, a page a batch."""

    def __init__(self, rows: int, columns: int, batch_rows: int, cache: str) -> None:
        super().__init__(cache_prefix=cache)
        self._rows, self._columns, self._batch_rows = rows, columns, batch_rows
        self._begin = 0

    def next(self, input_data: Callable) -> bool:
        n = min(self._batch_rows, self._rows - self._begin)
        if n == 0:
            return False
        table = synthetic.dense(n, self._columns, seed=self._begin)
        input_data(data=table.X, label=table.y)
        self._begin += n
        return True

    def reset(self) -> None:
        self._begin = 0


@contextlib.contextmanager
def paged(options: argparse.Namespace) -> Iterator[tuple[xgb.DMatrix, int]]:
    """The whole table, and the bytes of its pages."""
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=options.cache) as cache:
        batch_rows = max(1, int(options.batch // options.columns))
        batches = Batches(options.rows, options.columns, batch_rows, f"{cache}/pages")
        # Nothing here keeps the table: pages go with it, before the folder does.
        yield xgb.DMatrix(batches), sum(file.stat().st_size for file in Path(cache).iterdir())


def own_rows(options: argparse.Namespace, rank: int) -> xgb.DMatrix:
    """A worker's part of the table."""
    begin, end = (options.rows * r // options.workers for r in (rank, rank + 1))
    table = synthetic.dense(end - begin, options.columns, seed=begin)
    return xgb.DMatrix(table.X, table.y, nthread=options.threads_each)


def grow(table: xgb.DMatrix, options: argparse.Namespace, rank: int) -> dict[str, Any]:
    """Trains; gives times and memory of this process."""
    import xgboost_gpu_exact as plugin

    where = f"cuda:{rank}" if options.device == "cuda" else "cpu"
    params = {"tree_method": "exact", "device": where, "gpu_exact_fallback": "error"}
    params |= {"objective": "binary:logistic", "base_score": 0.5, "max_depth": options.max_depth}
    params |= {"nthread": options.threads_each}
    if options.memory_limit:
        params["gpu_exact_memory_limit"] = options.memory_limit
    booster = xgb.Booster(params, [table])
    seconds = []
    for i in range(options.rounds):
        begin = time.perf_counter()
        booster.update(table, i)
        seconds.append(time.perf_counter() - begin)
        if rank == 0:
            train.say(f"round {i}: {seconds[-1]:.2f} s")
    last = plugin.last_run()
    steady = float(np.median(seconds[1:]))
    return {
        "s_per_tree": round(steady, 6),
        "set_up_s": round(seconds[0] - steady, 2),
        "gpu_trees": last.gpu_trees,
        "peak_device_bytes": last.peak_bytes,
        "planned_device_bytes": last.planned_bytes,
        "peak_host_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def check_module(source_hash: str) -> None:
    """To make the table takes long."""
    import xgboost_gpu_exact as plugin

    measure.check_module(source_hash)
    status = plugin.device_status()
    if not status.usable:
        raise SystemExit(f"error: {status.text}")


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One worker of several, in this process."""
    from xgboost.collective import CommunicatorContext

    options = parse(job["arguments"])
    check_module(job["source_hash"])
    begin = time.perf_counter()
    table = own_rows(options, job["rank"])
    load_s = time.perf_counter() - begin
    with CommunicatorContext(**job["communicator"], dmlc_task_id=str(job["rank"])):
        return {"load_s": round(load_s, 1)} | grow(table, options, job["rank"])


def grow_by_workers(options: argparse.Namespace, source_hash: str) -> dict[str, Any]:
    """Times of the first worker, memory of the one that takes most of it."""
    job = {"mode": "processes", "gpus": options.workers, "source_hash": source_hash}
    job["arguments"] = options.arguments
    answers = scale.run_apart(job, options.timeout, __file__)
    if "failed" in answers[0]:
        raise SystemExit(f"error: {answers[0]['failed']}")
    most = max(answers, key=lambda answer: answer["peak_device_bytes"])
    return answers[0] | {key: most[key] for key in most if key.endswith("_bytes")}


def run(options: argparse.Namespace) -> dict[str, Any]:
    source_hash = train.source_hash()
    if options.workers > 1:
        found = grow_by_workers(options, source_hash)
    else:
        check_module(source_hash)
        begin = time.perf_counter()
        with paged(options) as (table, page_bytes):
            load_s = time.perf_counter() - begin
            shape = f"{options.rows} x {options.columns}"
            train.say(f"{shape} in {page_bytes / 1e9:.1f} GB, {load_s:.1f} s")
            found = grow(table, options, 0)
            del table
        found |= {"page_bytes": page_bytes, "load_s": round(load_s, 1)}
    size = {"rows": options.rows, "columns": options.columns}
    size |= {"entries": options.rows * options.columns, "max_depth": options.max_depth}
    found |= {"memory_limit": options.memory_limit, "device": options.device_name}
    system = {"system": "gpu_exact", "workers": options.workers}
    return system | size | found | {"source_hash": source_hash}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--entries", type=above_zero(float), required=True, help="values of the table, 8 bytes each")
    add("--columns", type=above_zero(int), default=100, help="default 100")
    workers = "processes, a GPU each, by --device cpu all on GPU 0 (default 1)"
    add("--workers", type=above_zero(int), default=1, help=workers)
    add("--batch", type=above_zero(float), default=5e8, metavar="ENTRIES", help="of a batch (default 5e8)")
    add("--max-depth", type=above_zero(int), default=8, help="default 8")
    add("--rounds", type=above_zero(int), default=5, help="two at least, of which the first sets up (default 5)")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="of gradients and predictions")
    add("--memory-limit", metavar="LIMIT", help="gpu_exact_memory_limit")
    add("--threads", type=above_zero(int), default=device.cpu_cores(), help="default: cores")
    add("--timeout", type=above_zero(float), default=600.0, metavar="SECONDS", help="of workers (default 600)")
    add("--cache", type=folder, default=Path("/dev/shm"), help="folder of the pages")
    add("--out", type=Path, metavar="FILE", help="the line is appended to it")
    options = parser.parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    options.rows = int(options.entries // options.columns)
    options.threads_each = options.threads // options.workers or 1
    if options.entries < options.columns:
        parser.error(f"{options.entries:g} entries are less than a row of {options.columns}")
    if options.rounds < 2:
        parser.error("the first round sets up, and is not timed: two --rounds at least")
    try:
        name = device.Gpu().name()
    except device.NoGpu:
        name = "no GPU"
    options.device_name = f"{name}, {options.threads} CPU cores"
    return options


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(work(json.loads(sys.argv[2]))), flush=True)
        return 0
    options = parse()
    text = json.dumps(run(options))
    print(text, flush=True)
    if options.out:
        with options.out.open("a") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
