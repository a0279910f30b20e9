# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Train exact trees on real tables, compare each with XGBoost's own, and on a GPU time both.

python -m xgboost_gpu_exact.demo
python -m xgboost_gpu_exact.demo --data train.csv --label target --objective binary:logistic
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys

import numpy as np
import xgboost as xgb

from . import device_status, last_run, take_over
from ._console import Progress, difference_lines, sentence
from .compare import NothingShown, builder_params, check_grown, compare_training, no_fallback
from .tables import Table, TableError, load, objective_params, synthetic, to_dmatrix
from .tree_diff import TreeReport, Verdict, count, summary

CASES = (
    ("digits", "multi:softprob"),
    ("breast_cancer", "binary:logistic"),
    ("diabetes", "reg:squarederror"),
)
SPEED_ROWS = 1_000_000
SPEED_ROUNDS = 6  # the first sets up and is not counted
EARLY_STOPPING_ROUNDS = 10


def train(
    params: dict,
    dtrain: xgb.DMatrix,
    rounds: int,
    *,
    ours: bool,
    device: str,
    progress: Progress,
    dvalid: xgb.DMatrix | None = None,
) -> xgb.Booster:
    """Train through the plugin (ours) or with XGBoost's own exact builder.

    `import xgboost_gpu_exact` has taken over already; a script that wants the plugin needs no
    `take_over`.
    """
    n_before = last_run().gpu_trees
    take_over(ours)
    try:
        booster = xgb.train(
            params | builder_params(device, ours),
            dtrain,
            rounds,
            evals=[(dvalid, "valid")] if dvalid else None,
            early_stopping_rounds=EARLY_STOPPING_ROUNDS if dvalid else None,
            verbose_eval=False,
            callbacks=[progress],
        )
    finally:
        take_over(True)
    if ours:
        check_grown(n_before, len(booster.get_dump()))
    return booster


def split(table: Table, seed: int = 0) -> tuple[Table, Table]:
    """Four fifths to learn from and a fifth to validate on; a query stays in one piece."""
    group = np.arange(table.X.shape[0]) if table.qid is None else table.qid
    names = np.unique(group)
    chosen = np.random.default_rng(seed).permutation(names)[: max(1, len(names) // 5)]
    held_out = np.isin(group, chosen)
    return table.rows(np.flatnonzero(~held_out)), table.rows(np.flatnonzero(held_out))


def train_and_compare(table: Table, objective: str, args: argparse.Namespace) -> list[TreeReport]:
    """Train with early stopping through the plugin, again with XGBoost's own, compare."""
    params = objective_params(table, objective) | {"max_depth": args.max_depth}
    dtrain, dvalid = (to_dmatrix(part, objective) for part in split(table))
    shape = f"{table.X.shape[0]:,} x {table.X.shape[1]:,}"
    print(f"\n{table.name}: {shape}, {objective}")
    progress = Progress("  plugin", args.rounds)
    ours_params = params | no_fallback()
    fixed = {"ours": True, "device": args.device, "progress": progress}
    ours = train(ours_params, dtrain, args.rounds, dvalid=dvalid, **fixed)

    rounds = ours.num_boosted_rounds()
    stock_progress = Progress("  XGBoost", args.rounds)
    fixed = {"ours": False, "device": args.device, "progress": stock_progress}
    stock = train(params, dtrain, rounds, dvalid=dvalid, **fixed)
    told = f"  best round {ours.best_iteration + 1}"
    if device_status().usable:
        trees_a_round = len(ours.get_dump()) // rounds
        by_ours, by_stock = (
            1e3 * median(times) / trees_a_round for times in (progress, stock_progress)
        )
        told += f"; milliseconds a tree: plugin {by_ours:.2f}, XGBoost {by_stock:.2f}"
    print(told)

    reports = compare_training(ours, stock, params, dtrain, args.device, no_fallback())
    print_verdict(reports)
    return reports


def time_both(args: argparse.Namespace) -> list[TreeReport]:
    """Milliseconds a tree on a table large enough to tell, and whether the trees agree."""
    table = synthetic(SPEED_ROWS)
    objective = "binary:logistic"
    params = objective_params(table, objective) | {"max_depth": args.max_depth}
    dtrain = to_dmatrix(table, objective)
    print(
        f"\nspeed: {table.X.shape[0]:,} x {table.X.shape[1]}, depth {args.max_depth}, "
        f"{os.cpu_count()} CPU cores"
    )

    systems = [("XGBoost's exact", "cpu", False), ("plugin, tree_method=exact", "cpu", True)]
    if xgb.build_info()["USE_CUDA"]:
        systems.append(("plugin, device=cuda", "cuda", True))
    models, milliseconds = [], []
    for name, device, ours in systems:
        progress = Progress("", SPEED_ROUNDS, silent=True)
        extra = no_fallback() if ours else {}
        rounds, all_params = SPEED_ROUNDS, params | extra
        models.append(
            train(all_params, dtrain, rounds, ours=ours, device=device, progress=progress)
        )
        milliseconds.append(1e3 * median(progress))
        ratio = milliseconds[0] / milliseconds[-1]
        print(f"  {name:28} {milliseconds[-1]:9.1f} ms a tree {ratio:8.1f} x")
    # The model of device=cuda started from gradients that the GPU computed: others in the last bit.
    reports = compare_training(models[1], models[0], params, dtrain, "cpu", no_fallback())
    print_verdict(reports)
    return reports


def median(progress: Progress) -> float:
    """Seconds of a round, without the first where there are others."""
    return statistics.median(progress.seconds[1:] or progress.seconds)


def print_verdict(reports: list[TreeReport]) -> None:
    """The counts, and both sides of every near tie and every difference."""
    print(f"  trees: {summary(reports)}")
    for i, report in enumerate(reports):
        for line in difference_lines(report):
            print(f"    tree {i} {line}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m xgboost_gpu_exact.demo",
        description="Train exact trees with early stopping, compare each with XGBoost's own exact "
        "builder and, on a GPU, time both. Ends with 1 if a tree is different, with 2 if there is "
        "nothing to compare. Without --data: three tables that come with scikit-learn, and on a GPU a "
        "larger one for the speed.",
    )
    parser.add_argument("--data", help="CSV, Parquet, NPZ or LIBSVM file")
    parser.add_argument("--label", help="the label's column")
    parser.add_argument("--objective", help="XGBoost's objective; needed with --data")
    parser.add_argument("--rounds", type=int, default=60, help="at most (default 60)")
    parser.add_argument("--max-depth", type=int, default=6)
    parser.add_argument(
        "--device",
        default="cpu",
        help="XGBoost's device: cpu (default; the script needs no change) or cuda "
        "(gradients and predictions on the GPU too; needs the CUDA wheel)",
    )
    args = parser.parse_args()
    if args.data and not args.objective:
        parser.error("--data needs --objective, for example binary:logistic")
    if args.rounds < 1:
        parser.error(f"--rounds {args.rounds}: give 1 or more")
    if args.device != "cpu" and not xgb.build_info()["USE_CUDA"]:
        parser.error(f"--device {args.device} needs the wheel `xgboost`; this one has no CUDA")
    return args


def main() -> int:
    """Returns 0, 1 where a tree is different, 2 where there is nothing to compare."""
    args = parse()
    status = device_status()
    cuda = "with CUDA" if xgb.build_info()["USE_CUDA"] else "without CUDA"
    print(f"XGBoost {xgb.__version__} {cuda}; device={args.device}")
    print(
        f"trees are built on {status.text}"
        if status.usable
        else f"trees are built by XGBoost's CPU builder: {status.text}"
    )
    n_before = last_run().gpu_trees
    try:
        if args.data:
            reports = train_and_compare(load(args.data, args.label), args.objective, args)
        else:
            reports = [
                r
                for name, objective in CASES
                for r in train_and_compare(load(name), objective, args)
            ]
            if status.usable:
                reports += time_both(args)
    except (TableError, NothingShown, xgb.core.XGBoostError) as error:
        print(f"error: {sentence(error)}", file=sys.stderr)
        return 2
    print(f"\nall trees: {summary(reports)}")
    if last_run().gpu_trees == n_before:
        print("No GPU took part: both sides are XGBoost's own builder, on the CPU. So nothing was timed.")
    return int(count(reports)[Verdict.DIFFERENT] > 0)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` has read enough: end, without a traceback
    sys.exit(main())
