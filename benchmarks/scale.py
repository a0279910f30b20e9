# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Time trees on several GPUs of one machine: one JSON line a run.

    python benchmarks/scale.py --shapes higgs,epsilon --gpus 1,2

`devices` is one process with `gpu_exact_devices`, `processes` one process a GPU by XGBoost's
communicator, each with its part of the rows. A model is compared with that of one GPU, tree by tree.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import measure
import numpy as np
import train
from cases import Case, Table
from joblib import cpu_count
from systems import PLUGIN, Laps, XGBoost

import device

SHAPES = ["higgs", "yltr", "epsilon", "criteo", "tall"]
MODES = ("devices", "processes")
EXACT, HIST = "gpu_exact", "xgb_hist_gpu_256"
ITERATIONS, BUDGET_S = 60, 1.5


def planned(gpus: list[int], modes: list[str]) -> list[dict[str, Any]]:
    """The runs of a shape: one GPU comes first, as the judge of the others.

    One worker of a communicator shows what a group costs that shares nothing.
    """
    runs = [(EXACT, n, mode) for n in sorted({1, *gpus}) for mode in modes]
    runs += [(HIST, n, "processes") for n in sorted({1, *gpus}) if "processes" in modes]
    return [dict(zip(("system", "gpus", "mode"), run, strict=True)) for run in runs]


def part_of(table: Table, rank: int, n_workers: int) -> Table:
    """A worker's rows; queries are not divided."""

    def begin(worker: int) -> int:
        row = table.X.shape[0] * worker // n_workers
        if table.qid is not None and 0 < row < len(table.qid):
            row = int(np.searchsorted(table.qid, table.qid[row]))
        return row

    rows = slice(begin(rank), begin(rank + 1))
    qid = None if table.qid is None else table.qid[rows]
    return Table(table.X[rows], table.y[rows], qid)


def trees_of(booster: Any) -> list[str]:
    """A hash of each."""
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
    return [hashlib.sha1(json.dumps(t).encode()).hexdigest()[:16] for t in model["trees"]]


class SharedLaps(Laps):
    """All workers train as many rounds as the first one asks for.

    It is asked before every tenth round: the others hear of it late, and begin that round late.
    """

    EVERY = 10

    @property
    def more(self) -> bool:
        from xgboost import collective

        if len(self.seconds) % self.EVERY == 0:
            self._more = bool(collective.broadcast(super().more, 0))
        return self._more


def params_of(job: dict[str, Any]) -> dict[str, Any]:
    where = job["device"]
    if where == "cuda":
        where = f"cuda:{job['ordinals'][job['rank']]}"
    # One worker's mean is not that of all.
    params: dict[str, Any] = {"device": where, "base_score": 0.5}
    if job["system"] == HIST:
        return params | {"tree_method": "hist", "max_bin": 256}
    if job["mode"] == "devices" and job["gpus"] > 1:
        params["gpu_exact_devices"] = ",".join(map(str, job["ordinals"][: job["gpus"]]))
    return params | PLUGIN


@contextlib.contextmanager
def communicator(job: dict[str, Any]) -> Iterator[type[Laps]]:
    if not job["communicator"]:
        yield Laps
        return
    from xgboost.collective import CommunicatorContext

    with CommunicatorContext(**job["communicator"], dmlc_task_id=str(job["rank"])):
        yield SharedLaps


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One worker's part of a run, in this process."""
    case, exact = Case(**job["case"]), job["system"] == EXACT
    system = XGBoost(params_of(job), quantile=not exact)
    if exact:
        measure.check_module(job["build"])
    table = cases.load(Path(job["folder"]))
    n_workers = job["gpus"] if job["communicator"] else 1
    with communicator(job) as make_laps:
        laps = make_laps(ITERATIONS, BUDGET_S, warm_up=2)
        part = part_of(table, job["rank"], n_workers)
        system.load(part, case, max(1, cpu_count() // n_workers))
        system.train(laps)
    line = measure.about(case, table, laps)
    if exact:
        run = sys.modules["xgboost_gpu_exact"].last_run()
        line |= {"peak_mib": run.peak_bytes >> 20, "planned_mib": run.planned_bytes >> 20}
    return {"trees": trees_of(system.booster), "line": line}


def run_apart(job: dict[str, Any]) -> dict[str, Any]:
    """What the first worker answers; or why there is nothing, by any of them."""
    with contextlib.ExitStack() as stack:
        n_workers, job["communicator"] = 1, None
        if job["mode"] == "processes":
            from xgboost.tracker import RabitTracker

            n_workers = job["gpus"]
            tracker = RabitTracker(n_workers, "127.0.0.1", sortby="task")
            tracker.start()
            stack.callback(tracker.free)
            job["communicator"] = tracker.worker_args()
        answers = measure.run_apart(work, [job | {"rank": rank} for rank in range(n_workers)])
    return next((answer for answer in answers if "line" not in answer), answers[0])


def same_trees(ours: list[str], theirs: list[str]) -> bool:
    """Of the rounds that both have."""
    n = min(len(ours), len(theirs))
    return n > 0 and ours[:n] == theirs[:n]


def run_shape(case: Case, options: argparse.Namespace) -> int:
    """All runs of a shape. Gives the number that failed."""
    n_failed = 0
    common = {"case": case._asdict(), "device": options.device, "ordinals": options.ordinals}
    common["build"] = train.source_hash()
    with cases.made(case) as folder:
        alone: dict[str, list[str]] = {}
        for run in planned(options.gpus, options.modes):
            answer = run_apart(common | run | {"folder": str(folder)})
            what = f"{case.name}: {run['system']}, {run['gpus']} GPUs, {run['mode']}"
            if "line" not in answer:
                n_failed += 1
                train.say(f"{what}: FAILED: {answer.get('failed') or answer['skipped']}")
                continue
            if run["gpus"] == 1:
                alone.setdefault(run["system"], answer["trees"])
            judge = alone.get(run["system"])  # None: that run has failed
            line = run | answer["line"] | {"device": options.device_name}
            line["identical"] = None if judge is None else same_trees(answer["trees"], judge)
            train.append(line | train.origin(common["build"]), options.out)
            train.say(f"{what}: {line['ms']:.2f} ms a tree, identical {line['identical']}")
    return n_failed


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    def counts(text: str) -> list[int]:
        return list(map(train.above_zero, train.words(text)))

    def ordinals(text: str) -> list[int]:
        return list(map(int, train.words(text)))

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    shapes = f"by comma (default: {','.join(SHAPES)})"
    add("--shapes", type=train.words, default=SHAPES, help=shapes)
    add("--gpus", type=counts, default=[1, 2], help="by comma (default 1,2)")
    add("--ordinals", type=ordinals, help="of the GPUs, in the order of use (default 0,1,...)")
    add("--modes", type=train.words, default=MODES, help=f"of {', '.join(MODES)} (default: both)")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="of gradients and predictions")
    add("--out", type=Path, metavar="FILE", help="default: benchmarks/results/scale-<GPU>.jsonl")
    options = parser.parse_args(arguments)
    options.ordinals = options.ordinals or list(range(max(options.gpus)))
    if not {*options.modes} <= {*MODES}:
        parser.error(f"--modes is {','.join(options.modes)}: say some of {', '.join(MODES)}")
    try:
        options.cases = cases.select(options.shapes)
        gpu = device.Gpu()
        name, there = gpu.name(), range(gpu.visible())
        absent = {*options.ordinals} - {*there}
        if absent:  # XGBoost would take another one instead
            parser.error(f"there is no GPU {absent.pop()}: {len(there)} are visible, from 0 on")
    except ValueError as error:
        parser.error(str(error))
    except device.NoGpu:
        name = "no GPU"
    if len(options.ordinals) < max(options.gpus):
        parser.error(f"--ordinals has {len(options.ordinals)} of {max(options.gpus)} GPUs")
    options.device_name = f"{name}, {cpu_count()} CPU cores"
    if options.out is None and options.device == "cuda":
        options.out = train.results_file({"device": options.device_name}, "scale")
    return options


def main() -> int:
    options = parse()
    return 1 if sum(run_shape(case, options) for case in options.cases) else 0


if __name__ == "__main__":
    sys.exit(main())
