# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""One run of train.py, and jobs in processes of their own: a job comes in, an answer goes out."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cases
import metrics
import numpy as np
from cases import Case
from joblib import cpu_count
from systems import EXACT, JUDGE, METRIC_ROUNDS, NEED_NO_GPU, SYSTEMS, Laps, Unavailable

import device

TIMEOUT_S = 580.0  # of a run, loading included

Job = dict[str, Any]
Answer = dict[str, Any]


def measure(job: Job) -> Answer:
    """One run in this process: what it cost, and what it reached."""
    name, case = job["system"], Case(**job["case"])
    try:
        gpu = device.Gpu()
    except device.NoGpu as error:
        gpu = None
        if name not in NEED_NO_GPU:
            raise Unavailable(str(error)) from None
    system = SYSTEMS[name]()
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

    cores = cpu_count()
    begin = time.perf_counter()
    system.load(table, case, cores)
    load_s = time.perf_counter() - begin
    system.train(laps, between_laps)
    value = metrics.evaluate(case.metric, table.y, laps.prediction, table.qid)
    line = {"system": name, **about(case, table, laps)}
    line |= {
        "quartiles": [per_tree(case, np.quantile(laps.last, part)) for part in (0.25, 0.75)],
        "load_s": short(load_s),
        "value": short(value, digits=8),
        "peak_mib": watch.peak_mib() if watch else None,
        "device": f"{gpu.name() if gpu else 'no GPU'}, {cores} CPU cores",
        "driver": gpu.driver() if gpu else None,
        "load": short(load),
        "others": gpu.others if gpu else None,
    }
    line = {key: value for key, value in line.items() if value is not None}
    untrained = metrics.untrained(case.metric, table.y, table.qid)
    return {"line": line | job["origin"], "metric": case.metric, "untrained": untrained}


def about(case: Case, table: cases.Table, laps: Laps) -> dict[str, Any]:
    """What all lines of results tell."""
    return {
        "shape": case.name,
        "rows": table.X.shape[0],
        "columns": table.X.shape[1],
        "max_depth": case.max_depth,
        "rounds": len(laps.seconds),
        "ms": per_tree(case, np.median(laps.last)),
        "ms_first": per_tree(case, np.median(laps.first)),
        "set_up_s": short(laps.set_up_s),
    }


def per_tree(case: Case, seconds: float) -> float:
    """In milliseconds; a round has as many trees as there are classes."""
    return short(1e3 * float(seconds) / case.classes)


def short(number: float, digits: int = 5) -> float:
    return float(f"{number:.{digits}g}")


def check_module(build: str) -> None:
    """A time counts as that of these sources only if the plugin was built of them."""
    built_of = sys.modules["xgboost_gpu_exact"].source_hash()
    if built_of != build:
        raise RuntimeError(f"the module is built of other sources, {built_of}: build it again")


def run_apart(work: Callable[[Job], Answer], jobs: list[Job]) -> list[Answer]:
    """The answers of jobs that run at once, each in a process of its own.

    `skipped` or `failed` hold a reason instead. Processes are forked from one that has imported
    XGBoost, which takes a second, and has not used CUDA.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["measure", "xgboost"])
    deadline = time.monotonic() + TIMEOUT_S
    with contextlib.ExitStack() as stack:
        workers = []
        for job in jobs:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_send_answer, args=(work, job, sender))
            process.start()
            stack.callback(process.join)
            stack.callback(process.kill)  # comes before
            sender.close()  # the run's own is left, which ends with it
            workers.append((process, receiver))
        return [_receive(*worker, deadline) for worker in workers]


def _receive(process: Any, receiver: Connection, deadline: float) -> Answer:
    try:
        if receiver.poll(max(0.0, deadline - time.monotonic())):
            return receiver.recv()
    except EOFError:
        process.join()
        return {"failed": f"exit {process.exitcode}"}
    return {"failed": f"it took more than {TIMEOUT_S:g} s"}


def _send_answer(work: Callable[[Job], Answer], job: Job, sender: Connection) -> None:
    """What a system prints goes where errors do."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = work(job)
        except Unavailable as error:
            answer = {"skipped": str(error)}
        except Exception as error:
            reason = (str(error).strip() or "no message").splitlines()[0]
            answer = {"failed": f"{type(error).__name__}: {reason}"}
    sender.send(answer)
