#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""How far the plugin's trees are those of XGBoost's own exact builder, on tables with float gradients.

    PYTHONPATH=build/python build/venv/bin/python tests/parity.py --tables FOLDER

FOLDER has NAME/data.npz for each table: X, or indptr, indices, data, shape; y; and for ranking qid or
group. XGBoost's own model is trained as ever. In each round the plugin grows the same round's trees from
the same margins and the same random state, and tree_diff.py judges them. Every tree of the plugin's side
must be one that the module counts as grown by its builder, and the module one of these sources. That is
done for several depths, without and with sampling, constraints and regularisation. It prints one line of
JSON a table, and ends with 1 where a tree differs by more than a tie.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from proof import source_hash
from xgboost_gpu_exact.compare import training_cuts
from xgboost_gpu_exact.tree_diff import TreeReport, Verdict, compare_trees, trees_of

sys.path.insert(0, str(Path(__file__).parent / "e2e"))
from oracle import TAKE_OVER, assert_grown, stock, trees_grown, uses_plugin  # noqa: E402

ON_GPU = {"gpu_exact_fallback": "error"}
# Strategies of the repeated runs: another layout of the work, the same bits.
LAYOUTS = ("auto", "auto", "histogram", "sort")
REPEATED_ROUNDS = 10
MAX_TREES = 100  # of a way to train; rounds of many classes have many
TABLES = (
    "a9a adult agaricus california covtype_20k diamonds elec2 flights200k hep_atlas higgs_lgbm letter "
    "rank_lgbm skin"
).split()


def load(file: Path) -> tuple[xgb.DMatrix, dict]:
    """The table and its objective, guessed from the label."""
    with np.load(file, allow_pickle=False) as arrays:
        if "X" in arrays:
            X = arrays["X"]
        else:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
        y, info = arrays["y"], {}
        if "qid" in arrays or "group" in arrays:
            sizes = arrays["group"] if "group" in arrays else []
            qid = arrays["qid"] if "qid" in arrays else np.arange(len(sizes)).repeat(sizes)
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


def run_table(file: Path, depth: int, restricted: bool, args: argparse.Namespace) -> dict:
    """One way to train; restricted by sampling, constraints, every kind of regularisation."""
    start = time.perf_counter()
    dtrain, params = load(file)
    params |= {"max_depth": depth, "nthread": args.threads} | TAKE_OVER | ON_GPU
    before = trees_grown()
    if restricted:
        regression = params["objective"] == "reg:squarederror"
        scale = float(dtrain.get_label().std()) if regression else 1.0
        params |= restrictions(dtrain.num_row(), dtrain.num_col(), scale)
    reports, model = compare_rounds(file, params, dtrain, args)
    rounds = model.num_boosted_rounds()
    ours = train(params, dtrain, rounds)
    repeated = set()
    for strategy in LAYOUTS:
        how = {"gpu_exact_strategy": strategy}
        again = train(params | how, dtrain, min(rounds, REPEATED_ROUNDS))
        repeated.add(hashlib.sha256(again.save_raw()).hexdigest())
    metrics = [float(booster.eval(dtrain).split(":")[-1]) for booster in (ours, model)]
    return judge(reports) | {
        "rows": dtrain.num_row(),
        "columns": dtrain.num_col(),
        "objective": params["objective"],
        "trees_on_gpu": trees_grown()[0] - before[0],
        "metrics_apart": abs(metrics[0] - metrics[1]),
        "layouts_differ": len(repeated) - 1,
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
    file: Path, params: dict, dtrain: xgb.DMatrix, args: argparse.Namespace
) -> tuple[list[TreeReport], xgb.Booster]:
    """XGBoost's own model, and how the plugin's trees of each of its rounds compare."""
    begun = time.perf_counter()
    cuts_apart = training_cuts(dtrain)
    same_rows, _ = load(file)  # takes the margins
    with stock():
        model = xgb.Booster(params, [dtrain])
        assert not uses_plugin(model)  # configures: its updater is made here
    reports: list[TreeReport] = []
    ours = None
    for i in range(max(1, min(args.rounds, MAX_TREES // params.get("num_class", 1)))):
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
        if time.perf_counter() - begun > args.seconds:
            break
    assert uses_plugin(ours) and not uses_plugin(model)
    return reports, model


def judge(reports: list[TreeReport]) -> dict:
    differences = [d for report in reports for d in report.differences]
    leaves = sum(d.ours.startswith("leaf") and d.stock.startswith("leaf") for d in differences)
    n_equal = sum(report.n_splits for report in reports)
    return {
        "splits": n_equal + len(differences) - leaves,
        "splits_identical": n_equal,
        **{str(verdict): sum(r.verdict == verdict for r in reports) for verdict in Verdict},
    }


def of_table(results: list[dict]) -> dict:
    """What its runs have in common, the greatest distance of metrics, and sums of the rest."""
    same = {key: results[0][key] for key in ("rows", "columns", "objective")}
    sums: Counter[str] = Counter()
    for result in results:
        sums.update({key: value for key, value in result.items() if key not in same})
    sums["seconds"] = round(sums["seconds"], 1)
    return same | sums | {"metrics_apart": max(result["metrics_apart"] for result in results)}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=Path, required=True, help="folder of NAME/data.npz")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tables only")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 8, 12])
    parser.add_argument(
        "--seconds", type=float, default=150, help="no round begins after, of a depth of a table"
    )
    parser.add_argument("--threads", type=int, default=2, help="of XGBoost's builder (default 2)")
    return parser.parse_args(arguments)


@pytest.mark.parametrize("table", TABLES)
def test_table(table: str) -> None:
    """For the record: `proof.py run parity`."""
    assert main(["--tables", os.environ["GPU_EXACT_TABLES"], "--only", table]) == 0


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)
    usable, text = gpu_exact.device_status()
    if not usable:
        sys.exit(f"Nothing is compared: both sides would be XGBoost's own builder: {text}")
    if gpu_exact.source_hash() != source_hash():
        sys.exit("Nothing is compared: the module is of other sources, build it again.")
    names = args.only or sorted(path.parent.name for path in args.tables.glob("*/data.npz"))
    if not names:
        sys.exit(f"Nothing is compared: {args.tables} has no NAME/data.npz.")
    of = {"device": text, "xgboost": xgb.__version__, "sources": source_hash()[:12]}
    good = True
    for name in names:
        file = args.tables / name / "data.npz"
        ways = [(depth, restricted) for depth in args.depths for restricted in (False, True)]
        line = {"table": name} | of_table([run_table(file, *way, args) for way in ways])
        good &= not line["different"] and not line["layouts_differ"] and line["splits"] > 0
        print(json.dumps(line | {"depths": args.depths} | of), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
