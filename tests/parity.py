#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""How far the plugin's trees are those of XGBoost's own exact builder, at scale.

    python3 tests/parity.py --problems 10000 --tables FOLDER

Run it with an interpreter that finds XGBoost and the plugin: PYTHONPATH=<build>/python
<build>/venv/bin/python. It writes parity.json and, made of it, parity.md into --out, anew after
every piece of work, and ends with 1 where anything is different, and where a route or tables are
compared by no run so far, unless --partly says that this is wanted. Long work may be done in several
runs: where sources, GPU and XGBoost are the same, a run replaces of earlier results in --out those
of the tables, depths and restrictions that it has itself. The table that takes longest, on 16 cores
in two runs of about 250 s, without restrictions and with:

    python3 tests/parity.py --problems 0 --tables FOLDER --only kdd99_10pct \
        --restricted no --seconds 280 --jobs 3 --threads 4 --partly
    python3 tests/parity.py --problems 0 --tables FOLDER --only kdd99_10pct \
        --restricted yes --seconds 280 --jobs 3 --threads 4

Random problems (e2e/problems.py) have gradients whose sums are exact: models must be equal byte for
byte. Most are small; --large ones are searched by histograms. Every tree of the plugin's side must
be one that the module counts as grown by its builder, and the module one of these sources. Tables
have float gradients: XGBoost's own model is trained as ever, and in each round the plugin grows the
same round's trees from the same margins and the same random state; tree_diff.py judges them. A
folder of tables has NAME/data.npz each: X, or indptr, indices, data, shape; y; and for ranking qid
or group.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from gpu_report import source_hash
from xgboost_gpu_exact.compare import training_cuts
from xgboost_gpu_exact.tree_diff import TreeReport, Verdict, compare_trees, trees_of

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "e2e"))
from oracle import (  # noqa: E402
    BY_NAME,
    CUDA,
    CUDA_BY_NAME,
    TAKE_OVER,
    assert_grown,
    cuda_context_reason,
    stock,
    trees_grown,
    uses_plugin,
)
from problems import assert_equals_stock  # noqa: E402

ROUTES = {"take_over": TAKE_OVER, "by_name": BY_NAME, "cuda": CUDA, "cuda_by_name": CUDA_BY_NAME}
CHUNK, LARGE_CHUNK = 50, 5  # problems a piece of work
LARGE = ", large"  # how results of large problems are called, after their route
ON_GPU = {"gpu_exact_fallback": "error"}
# Strategy and interleaved levels of the five runs: another layout of the work, the same bits.
LAYOUTS = (("auto", -1), ("auto", -1), ("histogram", -1), ("sort", 0), ("sort", 3))
REPEATED_ROUNDS = 10
RESTRICTED = {"no": (False,), "yes": (True,), "both": (False, True)}


@dataclass(frozen=True)
class TableTask:
    """One table, one way to train."""

    path: str
    depth: int
    restricted: bool  # sampling, constraints, every kind of regularisation
    rounds: int
    seconds: float  # no new round after so long
    threads: int  # of XGBoost's builder


def run_problems(route: str, first: int, last: int, large: bool) -> dict:
    """Seeds first to last - 1; gives the failures by seed, and where the trees grew."""
    failures, grown_by = {}, Counter()
    before = trees_grown()
    for seed in range(first, last):
        try:
            run = assert_equals_stock(seed, ROUTES[route], large=large)
            grown_by[" ".join(filter(None, (run.device, run.strategy)))] += 1
        except Exception as error:  # a crash of one is a result too
            failures[seed] = str(error)[:2000] or traceback.format_exc()
    n_trees = trees_grown()[0] - before[0]
    kind = f"{route}{LARGE}" if large else route
    numbers = {"problems": last - first, "trees": n_trees, "grown_by": dict(grown_by)}
    return {"route": kind, **numbers, "failures": failures}


def load(path: str) -> tuple[xgb.DMatrix, dict]:
    """The table and its objective, guessed from the label."""
    with np.load(path, allow_pickle=False) as arrays:
        if "X" in arrays:
            X = arrays["X"]
        else:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
        y, info = arrays["y"], {}
        if "qid" in arrays or "group" in arrays:
            qid = arrays["qid"] if "qid" in arrays else np.repeat(*_counted(arrays["group"]))
            order = np.argsort(qid, kind="stable")
            X, y, info = X[order], y[order], {"qid": qid[order]}
    classes = np.unique(y)
    if info:
        params = {"objective": "rank:ndcg", "base_score": 0.5}
    elif len(classes) == 2:
        y, params = y == classes[1], {"objective": "binary:logistic", "base_score": 0.5}
    elif len(classes) <= 30 and np.array_equal(classes, np.arange(len(classes))):
        params = {"objective": "multi:softprob", "num_class": len(classes), "base_score": 0.5}
    else:
        params = {"objective": "reg:squarederror", "base_score": float(y.mean())}
    return xgb.DMatrix(X, y, **info), params


def _counted(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(group)), group


def restrictions(n_rows: int, n_features: int, scale: float) -> dict:
    """Of a table whose gradients are of so many units."""
    half = n_features // 2
    params = {"subsample": 0.7, "colsample_bytree": 0.8, "colsample_bylevel": 0.8}
    params |= {"reg_lambda": 0.5, "reg_alpha": 0.25 * scale, "max_delta_step": 0.7 * scale}
    params |= {"min_child_weight": 2.5}
    params["monotone_constraints"] = "(1,-1)"
    if n_rows >= n_features:  # else XGBoost's builder bars features from the root, see the README
        groups = [list(range(half + 1)), list(range(half, n_features))]
        params["interaction_constraints"] = json.dumps(groups)
    return params


def run_table(task: TableTask) -> dict:
    start = time.perf_counter()
    dtrain, params = load(task.path)
    params |= {"max_depth": task.depth, "nthread": task.threads} | TAKE_OVER | ON_GPU
    before = trees_grown()
    if task.restricted:
        regression = params["objective"] == "reg:squarederror"
        scale = float(dtrain.get_label().std()) if regression else 1.0
        params |= restrictions(dtrain.num_row(), dtrain.num_col(), scale)
    reports, model = compare_rounds(task, params, dtrain)
    rounds = model.num_boosted_rounds()
    ours = train(params, dtrain, rounds)
    repeated = []
    for strategy, levels in LAYOUTS:
        how = {"gpu_exact_strategy": strategy, "gpu_exact_interleaved_levels": levels}
        again = train(params | how, dtrain, min(rounds, REPEATED_ROUNDS))
        repeated.append(hashlib.sha256(again.save_raw()).hexdigest())
    n_on_gpu = trees_grown()[0] - before[0]
    metrics = [float(booster.eval(dtrain).split(":")[-1]) for booster in (ours, model)]
    return {
        "table": Path(task.path).parent.name,
        "rows": dtrain.num_row(),
        "columns": dtrain.num_col(),
        "objective": params["objective"],
        **{k: v for k, v in asdict(task).items() if k in ("depth", "restricted")},
        "rounds": rounds,
        "trees_on_gpu": n_on_gpu,
        "metric_ours": metrics[0],
        "metric_stock": metrics[1],
        "five_runs_identical": len(set(repeated)) == 1,
        **judge(reports),
        "seconds": round(time.perf_counter() - start, 1),
    }


def train(params: dict, dtrain: xgb.DMatrix, rounds: int) -> xgb.Booster:
    booster, before = xgb.Booster(params, [dtrain]), trees_grown()
    for i in range(rounds):
        booster.set_param("seed", seed_of(i))
        booster.update(dtrain, i)
    assert_grown(before, gpu=rounds * params.get("num_class", 1))
    return booster


def seed_of(iteration: int) -> int:
    """Every round has its own: so both sides draw the same without copies of a model."""
    return iteration + 1


def compare_rounds(
    task: TableTask, params: dict, dtrain: xgb.DMatrix
) -> tuple[list[TreeReport], xgb.Booster]:
    """XGBoost's own model, and how the plugin's trees of each of its rounds compare."""
    begun = time.perf_counter()
    cuts_apart = training_cuts(dtrain)
    same_rows, _ = load(task.path)  # takes the margins
    with stock():
        model = xgb.Booster(params, [dtrain])
        assert not uses_plugin(model)  # configures: its updater is made here
    reports: list[TreeReport] = []
    ours = None
    for i in range(task.rounds):
        same_rows.set_base_margin(model.predict(dtrain, output_margin=True))
        model.set_param("seed", seed_of(i))
        before = trees_grown()
        with stock():
            model.update(dtrain, i)
        assert_grown(before)
        # The previous one keeps the table on the device.
        previous, ours = ours, xgb.Booster(params | {"seed": seed_of(i)}, [same_rows])
        ours.update(same_rows, i)
        del previous
        our_trees = trees_of(ours)
        assert_grown(before, gpu=len(our_trees))
        pairs = zip(our_trees, trees_of(model[i : i + 1]), strict=True)
        reports += [compare_trees(a, b, cuts_apart) for a, b in pairs]
        if time.perf_counter() - begun > task.seconds:
            break
    assert uses_plugin(ours) and not uses_plugin(model)
    return reports, model


def judge(reports: list[TreeReport]) -> dict:
    differences = [d for report in reports for d in report.differences]
    splits = [
        d for d in differences if not (d.ours.startswith("leaf") and d.stock.startswith("leaf"))
    ]
    n_equal = sum(report.n_splits for report in reports)
    return {
        "splits_compared": n_equal + len(splits),
        "splits_identical": n_equal,
        "trees": {str(v): sum(r.verdict == v for r in reports) for v in Verdict},
        "different": [asdict(d) for d in differences if d.verdict == Verdict.DIFFERENT][:20],
    }


def is_different(row: dict) -> bool:
    return bool(row["trees"]["different"]) or not row["five_runs_identical"]


COLUMNS: dict[str, Callable[[dict], str]] = {
    "table": lambda row: row["table"],
    "rows x columns": lambda row: f"{row['rows']:,} x {row['columns']:,}",
    "depth": lambda row: str(row["depth"]),
    "restricted": lambda row: "yes" if row["restricted"] else "no",
    "rounds": lambda row: str(row["rounds"]),
    "trees on the GPU": lambda row: f"{row['trees_on_gpu']:,}",
    "metric, plugin": lambda row: f"{row['metric_ours']:.8g}",
    "metric, XGBoost": lambda row: f"{row['metric_stock']:.8g}",
    "splits compared": lambda row: f"{row['splits_compared']:,}",
    "identical": lambda row: f"{row['splits_identical'] / max(row['splits_compared'], 1):.4%}",
    "trees identical": lambda row: f"{row['trees']['identical']:,}",
    "near-tie": lambda row: f"{row['trees']['near-tie']:,}",
    "different": lambda row: f"{row['trees']['different']:,}",
    "five runs": lambda row: "identical" if row["five_runs_identical"] else "DIFFERENT",
}


def not_compared(result: dict) -> list[str]:
    """What is lacking in the results of all runs, a sentence each."""
    compared = {kind.removesuffix(LARGE) for kind, row in result["problems"].items() if row["number"]}
    found = [
        f"Not compared: random problems by {route}: {result['not_run'].get(route, 'not run')}."
        for route in ROUTES
        if route not in compared
    ]
    return found + ["Not compared: tables: name a folder that has them."] * (not result["tables"])


def markdown(result: dict) -> str:
    lines = ["# Parity with XGBoost's own exact builder", ""]
    lines += [f"{result['device']}, sources {result['source_hash'][:12]}", ""]
    lines += [f"    {command}" for command in result["commands"]] + [""]
    if result["problems"]:
        head = ["random problems", "number", "equal byte for byte", "trees on the GPU", "grown by"]
        lines += [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for route, counts in result["problems"].items():
        n_equal = counts["number"] - len(counts["failures"])
        by = ", ".join(f"{n:,} {name}" for name, n in sorted(counts["grown_by"].items()))
        numbers = f"{counts['number']:,} | {n_equal:,} | {counts['trees']:,}"
        lines.append(f"| {route} | {numbers} | {by} |")
    lines += [f"\nNot run: {route}: {why}" for route, why in result["not_run"].items()]
    if result["tables"]:
        lines += ["", f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|"]
    for row in sorted(result["tables"], key=lambda r: (r["table"], r["depth"], r["restricted"])):
        lines.append(f"| {' | '.join(cell(row) for cell in COLUMNS.values())} |")
    for errors in result["errors"].values():
        lines += [f"\nFailed: {piece}: {error}" for piece, error in errors.items()]
    return "\n".join(lines) + "\n"


def table_tasks(args: argparse.Namespace) -> list[TableTask]:
    """The longest first."""
    if args.tables is None or not args.tables.is_dir():
        print(f"SKIPPED: no tables, as there is no folder `{args.tables}`.")
        return []
    names = args.only or sorted(p.parent.name for p in args.tables.glob("*/data.npz"))
    costs = {}
    for name in names:
        path = str(args.tables / name / "data.npz")
        dtrain, params = load(path)
        cost = dtrain.num_nonmissing() * params.get("num_class", 1)
        for depth in args.depths:
            for restricted in RESTRICTED[args.restricted]:
                task = TableTask(path, depth, restricted, args.rounds, args.seconds, args.threads)
                costs[task] = cost * depth
    return sorted(costs, key=costs.get, reverse=True)


def jobs(args: argparse.Namespace) -> list[tuple[Callable, tuple]]:
    work: list[tuple[Callable, tuple]] = [(run_table, (task,)) for task in table_tasks(args)]
    not_run = routes_not_run()
    for route in (name for name in ROUTES if name not in not_run):
        for large, number, chunk in (True, args.large, LARGE_CHUNK), (False, args.problems, CHUNK):
            end = args.first + number
            for first in range(args.first, end, chunk):
                work.append((run_problems, (route, first, min(first + chunk, end), large)))
    return work


def routes_not_run() -> dict[str, str]:
    """Why a route cannot be shown here."""
    reason = cuda_context_reason()
    return {name: reason for name, route in ROUTES.items() if reason and "device" in route}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare the plugin with XGBoost's own exact builder, at scale. If sources, "
        "GPU and XGBoost are those of the results in --out, new results of a table take the place "
        "of its earlier ones and the rest stays; else all are replaced."
    )
    parser.add_argument("--problems", type=int, default=10000, help="random ones, on every route")
    parser.add_argument("--large", type=int, default=100, help="random ones of many rows, likewise")
    parser.add_argument("--first", type=int, default=100000, help="the first seed")
    parser.add_argument("--tables", type=Path, help="folder of NAME/data.npz")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tables only")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 8, 12])
    parser.add_argument(
        "--restricted",
        choices=RESTRICTED,
        default="both",
        help="tables with sampling and constraints: all, none, or each table both ways",
    )
    parser.add_argument(
        "--seconds", type=float, default=150, help="no round of a table begins after"
    )
    parser.add_argument(
        "--partly", action="store_true", help="not all routes and tables are to be compared"
    )
    parser.add_argument("--jobs", type=int, default=8, help="processes")
    parser.add_argument("--threads", type=int, default=2, help="of XGBoost's builder, a process")
    parser.add_argument("--out", type=Path, default=ROOT.parent / "benchmarks" / "results")
    return parser.parse_args()


def main() -> int:
    args = parse()
    usable, text = gpu_exact.device_status()
    problem = "" if usable else f"both sides would be XGBoost's own builder: {text}"
    if gpu_exact.source_hash() != source_hash(ROOT.parent):
        problem = f"the module is not built of these sources, but of {gpu_exact.source_hash()}"
    if problem:
        print(f"Nothing is compared: {problem}")
        return 1
    # Processes share the cores, in making tables and predicting too.
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))
    command = " ".join(["python3", "tests/parity.py", *sys.argv[1:]])
    device = f"{text}, XGBoost {xgb.__version__}"
    args.out.mkdir(parents=True, exist_ok=True)
    result = begin(args.out / "parity.json", device, command)
    if args.problems or args.large:
        result["problems"], result["errors"]["problems"] = {}, {}  # counted anew
        result["not_run"] = routes_not_run()
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        futures = {pool.submit(fn, *parameters): parameters for fn, parameters in jobs(args)}
        for done, future in enumerate(as_completed(futures), 1):
            record(result, future, futures[future])
            unfinished = args.out / "parity.json.tmp"
            unfinished.write_text(json.dumps(result, indent=1) + "\n")
            unfinished.replace(args.out / "parity.json")
            (args.out / "parity.md").write_text(markdown(result))
            print(f"\r{done} of {len(futures)} pieces", end="", flush=True)
    print(f"\n{markdown(result)}")
    failures = any(counts["failures"] for counts in result["problems"].values())
    different = any(map(is_different, result["tables"]))
    lacking = not_compared(result)
    print("\n".join(lacking))
    lacking = lacking and not args.partly
    return int(failures or any(result["errors"].values()) or different or bool(lacking))


def begin(file: Path, device: str, command: str) -> dict:
    """The results so far, if they are of this device and these sources."""
    result = {"device": device, "source_hash": source_hash(ROOT.parent), "commands": []}
    result |= {"problems": {}, "tables": [], "errors": {"problems": {}, "tables": {}}}
    result["not_run"] = {}
    if file.exists():
        earlier = json.loads(file.read_text())
        if all(earlier.get(key) == result[key] for key in ("device", "source_hash")):
            result = earlier
    result["commands"].append(command)
    return result


def record(result: dict, future: object, parameters: tuple) -> None:
    """Add the result of a piece of work, or put it in the place of an earlier one."""
    is_table = isinstance(parameters[0], TableTask)
    errors = result["errors"]["tables" if is_table else "problems"]
    piece = name_of(parameters)
    error = future.exception()
    if error:
        errors[piece] = str(error)
        return
    errors.pop(piece, None)
    row = future.result()
    if is_table:
        same = ("table", "depth", "restricted")
        others = [r for r in result["tables"] if any(r[key] != row[key] for key in same)]
        result["tables"] = [*others, row]
        return
    empty = {"number": 0, "trees": 0, "grown_by": {}, "failures": {}}
    counts = result["problems"].setdefault(row["route"], empty)
    counts["number"] += row["problems"]
    counts["trees"] += row["trees"]
    counts["grown_by"] = dict(Counter(counts["grown_by"]) + Counter(row["grown_by"]))
    counts["failures"] |= row["failures"]


def name_of(parameters: tuple) -> str:
    """A piece of work in words."""
    if isinstance(parameters[0], TableTask):
        task = parameters[0]
        name = f"{Path(task.path).parent.name}, depth {task.depth}"
        return name + (", restricted" if task.restricted else "")
    route, first, last, large = parameters
    return f"{route}, {'large ' if large else ''}problems {first} to {last - 1}"


if __name__ == "__main__":
    sys.exit(main())
