# Copyright 2026, the gpu_exact contributors
"""One run of train.py in a process of its own: a job comes in, an answer goes out."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cases
import metrics
import numpy as np
from cases import Case
from systems import EXACT, JUDGE, METRIC_ROUNDS, NEED_NO_GPU, SYSTEMS, Laps, Unavailable

import device


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """One run in this process: what it cost, and what it reached."""
    name, case = job["system"], Case(**job["case"])
    try:
        gpu = device.Gpu()
    except device.NoGpu as error:
        gpu = None
        if name not in NEED_NO_GPU:
            raise Unavailable(str(error)) from None
    strategy = job["strategy"] if name in EXACT else None
    system = SYSTEMS[name](strategy) if strategy else SYSTEMS[name]()
    if name in EXACT:
        check_module(job["build"])
    load = os.getloadavg()[0]
    table = cases.load(Path(job["folder"]))
    # On a GPU the second tree still meets buffers that grow and code that is loaded.
    laps = Laps(job["iterations"], job["budget_s"], warm_up=1 if name == JUDGE else 2)
    watch = device.MemoryWatch(gpu) if gpu and name != JUDGE else None

    def between_laps() -> None:
        if watch and len(laps.seconds) >= METRIC_ROUNDS:
            watch.stop_polling()
            watch.look()

    begin = time.perf_counter()
    system.load(table, case, job["threads"])
    load_s = time.perf_counter() - begin
    system.train(laps, between_laps)

    def per_tree(quantile: float, seconds: list[float]) -> float:
        """In milliseconds; a round has as many trees as there are classes."""
        return short(1e3 * float(np.quantile(seconds, quantile)) / case.classes)

    value = metrics.evaluate(case.metric, table.y, laps.prediction, table.qid)
    line = {
        "system": name,
        "shape": case.name,
        "rows": table.X.shape[0],
        "columns": table.X.shape[1],
        "max_depth": case.max_depth,
        "rounds": len(laps.seconds),
        "ms": per_tree(0.5, laps.last),
        "quartiles": [per_tree(0.25, laps.last), per_tree(0.75, laps.last)],
        "ms_first": per_tree(0.5, laps.first),
        "set_up_s": short(laps.set_up_s),
        "load_s": short(load_s),
        "value": short(value, digits=8),
        "peak_mib": watch.peak_mib() if watch else None,
        "device": f"{gpu.name() if gpu else 'no GPU'}, {job['threads']} CPU cores",
        "driver": gpu.driver() if gpu else None,
        "strategy": None if strategy == "auto" else strategy,
        "load": short(load),
        "others": gpu.others if gpu else None,
    }
    line = {key: value for key, value in line.items() if value is not None}
    untrained = metrics.untrained(case.metric, table.y, table.qid)
    return {"line": line | job["origin"], "metric": case.metric, "untrained": untrained}


def short(number: float, digits: int = 5) -> float:
    return float(f"{number:.{digits}g}")


def check_module(build: str) -> None:
    """A time counts as that of these sources only if the plugin was built of them."""
    built_of = sys.modules["xgboost_gpu_exact"].source_hash()
    if built_of != build:
        raise RuntimeError(f"the module is built of other sources, {built_of}: build it again")


def answer_of(job: dict[str, Any]) -> dict[str, Any]:
    """measure(), or why there is nothing: `skipped` or `failed`."""
    try:
        return measure(job)
    except Unavailable as error:
        return {"skipped": str(error)}
    except Exception as error:
        reason = (str(error).strip() or "no message").splitlines()[0]
        return {"failed": f"{type(error).__name__}: {reason}"}


def send_answer(job: dict[str, Any], sender: Connection) -> None:
    """answer_of(); what a system prints goes where errors do."""
    with contextlib.redirect_stdout(sys.stderr):
        answer = answer_of(job)
    sender.send(answer)
