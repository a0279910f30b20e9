# Copyright 2026, the gpu_exact contributors
"""Train one GPU on a table larger than it holds without the host's help: one JSON line.

    python benchmarks/large.py --entries 12e9 --cache /dev/shm

The table is a `DMatrix` of several batches, made one after the other, as no machine has room for it
twice. XGBoost keeps it as pages below `--cache`, 8 bytes an entry, in memory where that folder is.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import measure
import numpy as np
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


def run(options: argparse.Namespace) -> dict:
    import xgboost_gpu_exact as plugin

    source_hash = train.source_hash()
    measure.check_module(source_hash)
    status = plugin.device_status()
    if not status.usable:  # to make the pages takes long
        raise SystemExit(f"error: {status.text}")
    rows = int(options.entries // options.columns)
    params = {"tree_method": "exact", "device": options.device, "gpu_exact_fallback": "error"}
    params |= {"objective": "binary:logistic", "base_score": 0.5, "max_depth": options.max_depth}
    params |= {"nthread": options.threads}
    if options.memory_limit:
        params["gpu_exact_memory_limit"] = options.memory_limit
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=options.cache) as cache:
        batch_rows = max(1, int(options.batch // options.columns))
        table = xgb.DMatrix(Batches(rows, options.columns, batch_rows, f"{cache}/pages"))
        page_bytes = sum(file.stat().st_size for file in Path(cache).iterdir())
        load_s = time.perf_counter() - begin
        train.say(f"{rows} x {options.columns} in {page_bytes / 1e9:.1f} GB, {load_s:.1f} s")
        booster = xgb.Booster(params, [table])
        seconds = []
        for i in range(options.rounds):
            begin = time.perf_counter()
            booster.update(table, i)
            seconds.append(time.perf_counter() - begin)
            train.say(f"round {i}: {seconds[-1]:.2f} s")
        del booster, table  # pages go with it
    last = plugin.last_run()
    steady = float(np.median(seconds[1:]))
    return {
        "system": "gpu_exact",
        "rows": rows,
        "columns": options.columns,
        "entries": rows * options.columns,
        "page_bytes": page_bytes,
        "max_depth": options.max_depth,
        "s_per_tree": round(steady, 6),
        "set_up_s": round(seconds[0] - steady, 2),
        "load_s": round(load_s, 1),
        "gpu_trees": last.gpu_trees,
        "peak_device_bytes": last.peak_bytes,
        "peak_host_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "memory_limit": options.memory_limit,
        "device": options.device_name,
        "source_hash": source_hash,
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--entries", type=above_zero(float), required=True, help="values of the table, 8 bytes each")
    add("--columns", type=above_zero(int), default=100, help="default 100")
    add("--batch", type=above_zero(float), default=5e8, metavar="ENTRIES", help="of a batch (default 5e8)")
    add("--max-depth", type=above_zero(int), default=8, help="default 8")
    add("--rounds", type=above_zero(int), default=5, help="two at least, of which the first sets up (default 5)")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="of gradients and predictions")
    add("--memory-limit", metavar="LIMIT", help="gpu_exact_memory_limit")
    add("--threads", type=above_zero(int), default=device.cpu_cores(), help="default: cores")
    add("--cache", type=folder, default=Path("/dev/shm"), help="folder of the pages")
    add("--out", type=Path, metavar="FILE", help="the line is appended to it")
    options = parser.parse_args(arguments)
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
    options = parse()
    text = json.dumps(run(options))
    print(text, flush=True)
    if options.out:
        with options.out.open("a") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
