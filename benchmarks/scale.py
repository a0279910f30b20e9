# Copyright 2026, the gpu_exact contributors
"""Time trees on several GPUs of one machine: one JSON line a run.

    python benchmarks/scale.py --shapes higgs,epsilon --gpus 1,2

`devices` is one process with `gpu_exact_devices`, `processes` one process a GPU by XGBoost's
communicator, each with its part of the rows, `dask` the same by workers of Dask, which must be
installed. A model is compared with that of one GPU, tree by tree.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import measure
import numpy as np
import train
from arguments import above_zero, folder, words
from cases import Case, Table
from systems import Laps, XGBoost

import device

SHAPES = ["higgs", "yltr", "epsilon", "criteo", "tall"]
MODES = ("devices", "processes", "dask")
EXACT, HIST = "gpu_exact", "xgb_hist_gpu_256"


def planned(gpus: list[int], modes: list[str], systems: list[str]) -> list[dict[str, Any]]:
    """The runs of a shape: one GPU comes first, as the judge of the others.

    One worker of a communicator shows what a group costs that shares nothing.
    """
    runs = []
    for system in systems:
        of_system = [m for m in modes if system == EXACT or m != "devices"]
        alone = {*of_system[:1], *(["processes"] if system == EXACT else [])}  # modes of one GPU
        for n in sorted({1, *gpus}):
            chosen = [m for m in of_system if n > 1 or m in alone]
            runs += [{"system": system, "gpus": n, "mode": m} for m in chosen]
    return runs


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


def rows_of(folder: str, rank: int, n_workers: int, name: str) -> np.ndarray:
    """A worker's part of an array of a saved table."""
    return np.array(getattr(part_of(cases.load(Path(folder)), rank, n_workers), name))


class SteadyLaps(Laps):
    """The budget is that of the rounds that count: to set up several GPUs may take longer."""

    @property
    def spent_s(self) -> float:
        return sum(self.seconds[self.warm_up :])


class SharedLaps(SteadyLaps):
    """All workers train as many rounds as the first one asks for.

    It is asked before every tenth round: the others hear of it late, and begin that round late.
    """

    EVERY = 10

    def __init__(self, iterations: int, budget_s: float, warm_up: int) -> None:
        super().__init__(iterations, budget_s, warm_up)
        self._more = True

    @property
    def more(self) -> bool:
        from xgboost import collective

        if len(self.seconds) % self.EVERY == 0:
            self._more = bool(collective.broadcast(super().more, 0))
        return self._more


class Measured(XGBoost):
    """Tells the trees it has grown."""

    def trees(self) -> list[str]:
        return trees_of(self._booster)


def params_of(job: dict[str, Any]) -> dict[str, Any]:
    where = job["device"]
    if where == "cuda" and job["mode"] != "dask":  # whose workers see one GPU each
        where = f"cuda:{job['ordinals'][job['rank']]}"
    # One worker's mean is not that of all.
    params: dict[str, Any] = {"device": where, "base_score": 0.5}
    if job["system"] == HIST:
        return params | {"tree_method": "hist", "max_bin": 256}
    params |= {"tree_method": "exact", "gpu_exact_fallback": "error"}
    if job["mode"] == "devices" and job["gpus"] > 1:
        params["gpu_exact_devices"] = ",".join(map(str, job["ordinals"][: job["gpus"]]))
    return params


@contextlib.contextmanager
def communicator(job: dict[str, Any]) -> Iterator[type[Laps]]:
    if not job["communicator"]:
        yield SteadyLaps
        return
    from xgboost.collective import CommunicatorContext

    with CommunicatorContext(**job["communicator"], dmlc_task_id=str(job["rank"])):
        yield SharedLaps


def answer_of(case: Case, table: Table, laps: Laps, trees: list[str]) -> dict[str, Any]:
    per_tree = 1e3 / case.classes
    return {
        "trees": trees,
        "line": {
            "rows": table.X.shape[0],
            "columns": table.X.shape[1],
            "max_depth": case.max_depth,
            "iterations": len(laps.seconds),
            "ms_per_tree": round(per_tree * float(np.median(laps.last)), 4),
            "ms_per_tree_first": round(per_tree * float(np.median(laps.first)), 4),
            "set_up_s": round(laps.set_up_s, 4),
        },
    }


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One worker's part of a run, in this process."""
    case = Case(**job["case"])
    exact = job["system"] == EXACT
    system = Measured(
        params_of(job),
        plugin=exact,
        needs_cuda=job["device"] == "cuda",
        quantile=not exact,
    )
    if exact:
        measure.check_module(job["source_hash"])
    table = cases.load(Path(job["folder"]))
    n_workers = job["gpus"] if job["communicator"] else 1
    with communicator(job) as make_laps:
        laps = make_laps(job["iterations"], job["budget_s"], warm_up=2)
        system.load(part_of(table, job["rank"], n_workers), case, job["threads"] // n_workers)
        system.train(laps, lambda: None)
    return answer_of(case, table, laps, system.trees())


@contextlib.contextmanager
def dask_client(job: dict[str, Any]) -> Iterator[Any]:
    """Of a cluster of this machine with a worker for each GPU."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    def worker(ordinal: int) -> dict[str, Any]:
        options: dict[str, Any] = {"nthreads": job["threads"] // job["gpus"] or 1}
        options |= {"memory_limit": 0, "silence_logs": logging.ERROR}
        return {"cls": Nanny, "options": options | {"env": {"CUDA_VISIBLE_DEVICES": f"{ordinal}"}}}

    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    workers = {i: worker(ordinal) for i, ordinal in enumerate(job["ordinals"][: job["gpus"]])}
    with (
        SpecCluster(workers, scheduler, silence_logs=logging.ERROR) as cluster,
        Client(cluster) as client,
    ):
        yield client


def work_by_dask(job: dict[str, Any]) -> dict[str, Any]:
    """A run of Dask's workers, whose tasks this process gives them. All rounds, whatever they take."""
    import dask.array
    import xgboost as xgb
    import xgboost.dask

    case, folder, n_workers = Case(**job["case"]), Path(job["folder"]), job["gpus"]
    table = cases.load(folder)
    laps = SteadyLaps(job["iterations"], job["budget_s"], warm_up=2)
    params = params_of(job) | {"objective": case.objective, "max_depth": case.max_depth}
    quantile = job["system"] == HIST
    if not quantile:
        from xgboost_gpu_exact import EXACT as METHOD

        measure.check_module(job["source_hash"])
        params["tree_method"] = METHOD  # brings the plugin to the workers

    class Stamps(xgb.callback.TrainingCallback):
        """When rounds begin, as the first worker sees it."""

        def __init__(self) -> None:
            self._at: list[float] = []

        def before_iteration(self, model: object, epoch: int, evals_log: dict) -> bool:
            self._at.append(time.perf_counter())
            return False

        def after_training(self, model: Any) -> Any:
            self._at.append(time.perf_counter())
            if xgb.collective.get_rank() == 0:
                (folder / "stamps.json").write_text(json.dumps(self._at))
            return model

    with dask_client(job) as client:
        names = sorted(client.scheduler_info()["workers"])

        def spread(name: str) -> dask.array.Array:
            """An array, of which each worker has its rows."""
            whole = getattr(table, name)
            parts = []
            for rank, worker in enumerate(names):
                part = client.submit(
                    rows_of, job["folder"], rank, n_workers, name, workers=[worker], pure=False
                )
                shape = getattr(part_of(table, rank, n_workers), name).shape
                parts.append(dask.array.from_delayed(part, shape, whole.dtype))
            return dask.array.concatenate(parts)

        given = {n: spread(n) for n in ("X", "y", "qid") if getattr(table, n) is not None}
        make = xgboost.dask.DaskQuantileDMatrix if quantile else xgboost.dask.DaskDMatrix
        bins = {"max_bin": params["max_bin"]} if quantile else {}
        dtrain = make(client, given["X"], given["y"], qid=given.get("qid"), **bins)
        stamps = [Stamps()]
        trained = xgboost.dask.train(client, params, dtrain, laps.most, callbacks=stamps)
        booster = trained["booster"]
    at = json.loads((folder / "stamps.json").read_text())
    laps.seconds = [end - begin for begin, end in itertools.pairwise(at)]
    return answer_of(case, table, laps, trees_of(booster))


def run_apart(job: dict[str, Any], timeout_s: float, script: str = __file__) -> list[dict[str, Any]]:
    """What each worker answers, in a process of its own that runs `script --work JOB`; or `failed`."""
    with contextlib.ExitStack() as stack:
        job = job | {"communicator": None}
        n_workers = 1
        if job["mode"] == "processes":
            from xgboost.tracker import RabitTracker

            n_workers = job["gpus"]
            tracker = RabitTracker(n_workers, "127.0.0.1", sortby="task")
            tracker.start()
            stack.callback(tracker.free)
            job["communicator"] = tracker.worker_args()
        workers = []
        for rank in range(n_workers):
            command = [sys.executable, script, "--work", json.dumps(job | {"rank": rank})]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(worker.kill)
            workers.append(worker)
        deadline = time.monotonic() + timeout_s
        answers = []
        for worker in workers:
            try:
                out, _ = worker.communicate(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return [{"failed": f"it took more than {timeout_s:g} s; --timeout allows more"}]
            lines = out.strip().splitlines()
            ended = {"failed": f"exit {worker.returncode}"}
            answers.append(json.loads(lines[-1]) if worker.returncode == 0 and lines else ended)
    return [answer for answer in answers if "failed" in answer] or answers


def same_trees(ours: list[str], theirs: list[str]) -> bool:
    """Of the rounds that both have."""
    n = min(len(ours), len(theirs))
    return n > 0 and ours[:n] == theirs[:n]


def run_shape(case: Case, options: argparse.Namespace, common: dict[str, Any]) -> int:
    """All runs of a shape. Gives the number that failed."""
    begin = time.perf_counter()
    table = case.make()
    where = options.tables or cases.room_for(cases.table_bytes(table))
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=where) as folder:
        cases.save(table, Path(folder))
        del table
        train.say(f"{case.name}: made in {time.perf_counter() - begin:.1f} s")
        alone: dict[str, list[str]] = {}
        for run in planned(options.gpus, options.modes, options.systems):
            job = common | run | {"case": case._asdict(), "folder": folder}
            begin = time.perf_counter()
            answer = run_apart(job, options.timeout)[0]
            what = f"{case.name}: {run['system']}, {run['gpus']} GPUs, {run['mode']}"
            if "failed" in answer:
                n_failed += 1
                train.say(f"{what}: FAILED: {answer['failed']}")
                continue
            if run["gpus"] == 1:
                alone.setdefault(run["system"], answer["trees"])
            judge = alone.get(run["system"])  # None: that run has failed
            line = {"shape": case.name} | run | answer["line"]
            line["identical"] = None if judge is None else same_trees(answer["trees"], judge)
            line |= {"context": options.device, "device": options.device_name}
            line |= {"source_hash": common["source_hash"]}
            text = json.dumps(line)
            print(text, flush=True)
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                with options.out.open("a") as file:
                    file.write(text + "\n")
            train.say(
                f"{what}: {line['ms_per_tree']:.2f} ms a tree, identical {line['identical']}, "
                f"{time.perf_counter() - begin:.1f} s in all"
            )
    return n_failed


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    def counts(text: str) -> list[int]:
        return [above_zero(int)(word) for word in words(text)]

    def ordinals(text: str) -> list[int]:
        return [int(word) for word in words(text)]

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--shapes", type=words, default=SHAPES, help=f"by comma (default: {','.join(SHAPES)})")
    add("--gpus", type=counts, default=[1, 2], help="by comma (default 1,2)")
    add("--ordinals", type=ordinals, help="of the GPUs, in the order of use (default 0,1,...)")
    add("--modes", type=words, default=MODES[:2], help=f"of {', '.join(MODES)} (default: the first two)")
    add("--systems", type=words, default=[EXACT, HIST], help=f"default: {EXACT},{HIST}")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="of gradients and predictions")
    add("--scale", type=above_zero(float), default=1.0, help="rows as a part of each shape's own (default 1)")
    add("--iterations", type=above_zero(int), default=60, help="rounds at most (default 60)")
    budget = "of the rounds that count (default 1.5)"
    add("--budget", type=float, default=1.5, metavar="SECONDS", help=budget)
    add("--timeout", type=above_zero(float), default=120.0, metavar="SECONDS", help="a run (default 120)")
    cores = device.cpu_cores()
    add("--threads", type=above_zero(int), default=cores, help="of all workers; default: cores")
    add("--tables", type=folder, metavar="FOLDER", help="for tables (default: memory, else /tmp)")
    add("--out", type=Path, metavar="FILE", help="default: benchmarks/results/scale-<GPU>.jsonl")
    options = parser.parse_args(arguments)
    options.ordinals = options.ordinals or list(range(max(options.gpus)))
    if len(options.ordinals) < max(options.gpus):
        parser.error(f"--ordinals has {len(options.ordinals)} of {max(options.gpus)} GPUs")
    for given, known in ((options.modes, MODES), (options.systems, (EXACT, HIST))):
        for word in given:
            if word not in known:
                parser.error(f"there is no {word}; there are {', '.join(known)}")
    try:
        options.cases = [
            case._replace(rows=max(1, int(options.scale * case.rows)))
            for case in cases.select(options.shapes)
        ]
        gpu = device.Gpu()
        name, n_gpus = gpu.name(), gpu.visible()
        if not 0 <= min(options.ordinals) <= max(options.ordinals) < n_gpus:
            # XGBoost would take another one instead.
            parser.error(f"of the GPUs {options.ordinals} {n_gpus} are there, numbered from 0")
    except ValueError as error:
        parser.error(str(error))
    except device.NoGpu:
        name = "no GPU"
    options.device_name = f"{name}, {options.threads} CPU cores"
    if options.out is None and options.scale == 1.0 and options.device == "cuda":
        to = train.results_file({"device": options.device_name})
        options.out = to and to.with_name(to.name.replace("train-", "scale-", 1))
    return options


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        try:
            job = json.loads(sys.argv[2])
            by_dask = job["mode"] == "dask" and job["gpus"] > 1
            answer = (work_by_dask if by_dask else work)(job)
        except Exception as error:
            reason = (str(error).strip() or "no message").splitlines()[0]
            answer = {"failed": f"{type(error).__name__}: {reason}"}
        print(json.dumps(answer))
        return 0
    options = parse()
    common = {
        "device": options.device,
        "ordinals": options.ordinals,
        "threads": options.threads,
        "iterations": options.iterations,
        "budget_s": options.budget,
        "source_hash": train.source_hash(),
    }
    n_failed = sum(run_shape(case, options, common) for case in options.cases)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
