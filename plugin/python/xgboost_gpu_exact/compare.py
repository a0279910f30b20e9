# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Are the plugin's trees those of XGBoost's own exact builder?

After a near-tie (see tree_diff.py) the next round sees other gradients, so whole models can be
compared only up to there. `compare_rounds` therefore lets both builders start every round from one
model, with its predictions and its random state, and goes on with the trees of XGBoost's own.

    python -m xgboost_gpu_exact.compare --data train.csv --label target --objective binary:logistic
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator

import numpy as np
import xgboost as xgb

from . import device_status, last_run, take_over
from .tree_diff import Cut, CutsApart, TreeReport, Verdict, compare_trees, count, summary, trees_of


def training_cuts(dtrain: xgb.DMatrix) -> CutsApart:
    """Tells whether two thresholds or sets of categories of a feature send any value of the table
    different ways."""
    columns = None

    def cuts_apart(feature: int, a: Cut, b: Cut) -> bool:
        nonlocal columns
        if columns is None:  # a copy of the table, made only when two thresholds differ
            columns = dtrain.get_data().tocsc()
        values = columns.data[columns.indptr[feature] : columns.indptr[feature + 1]]
        return not np.array_equal(_go_right(values, a), _go_right(values, b))

    return cuts_apart


def _go_right(values: np.ndarray, cut: Cut) -> np.ndarray:
    if isinstance(cut, tuple):
        return np.isin(values.astype(np.int64), cut)  # fractions are cut off
    return values >= cut


def compare_models(
    ours: xgb.Booster, stock: xgb.Booster, dtrain: xgb.DMatrix | None = None
) -> list[TreeReport]:
    """Compare two models tree by tree. Rounds after the first near-tie prove nothing."""
    cuts_apart = training_cuts(dtrain) if dtrain is not None else None
    pairs = zip(trees_of(ours), trees_of(stock), strict=True)
    return [compare_trees(a, b, cuts_apart) for a, b in pairs]


def builder_params(device: str, ours: bool) -> dict[str, str]:
    """The parameters that, with the take-over, choose a builder.

    On a GPU XGBoost refuses its own by `tree_method`, but not by the names of its updaters: so both
    sides get the gradients that the GPU computed.
    """
    if ours or device == "cpu":
        return {"tree_method": "exact", "device": device}
    return {"updater": "grow_colmaker,prune", "device": device}


class NothingShown(RuntimeError):
    """Trees are to be compared with XGBoost's own, and the plugin did not grow them."""


def no_fallback() -> dict[str, str]:
    """For the plugin's side: not to fall back to the builder that it is compared with.

    Without a usable GPU it may: the demo goes on, and says that nothing was shown.
    """
    return {"gpu_exact_fallback": "error"} if device_status().usable else {}


def check_grown(n_before: int, n_trees: int) -> None:
    """NothingShown where a GPU is usable, and the plugin has not grown so many trees since.

    Parameters
    ----------
    n_before : `last_run().gpu_trees` then.
    """
    n_grown = last_run().gpu_trees - n_before
    if n_grown < n_trees and device_status().usable:
        raise NothingShown(f"The plugin grew {n_grown} of {n_trees} trees: there is nothing to compare.")


def compare_rounds(
    params: dict,
    dtrain: xgb.DMatrix,
    rounds: int,
    device: str = "cpu",
    plugin_params: dict | None = None,
) -> Iterator[list[TreeReport]]:
    """Train with both builders, each round from the same model; yields the trees of a round.

    Leaves the take-over on.

    Parameters
    ----------
    plugin_params :
        Parameters for the plugin's side only (`gpu_exact_...`).
    """
    ours_params = params | builder_params(device, True) | (plugin_params or {})
    stock_params = params | builder_params(device, False)
    cuts_apart = training_cuts(dtrain)
    model = xgb.Booster(stock_params, [dtrain])
    for i in range(rounds):
        n_before = last_run().gpu_trees
        ours = trees_of(_one_round(model, ours_params, dtrain, i, True)[i : i + 1])
        check_grown(n_before, len(ours))
        model = _one_round(model, stock_params, dtrain, i, False)
        pairs = zip(ours, trees_of(model[i : i + 1]), strict=True)
        yield [compare_trees(a, b, cuts_apart) for a, b in pairs]


def compare_training(
    ours: xgb.Booster,
    stock: xgb.Booster,
    params: dict,
    dtrain: xgb.DMatrix,
    device: str = "cpu",
    plugin_params: dict | None = None,
) -> list[TreeReport]:
    """Compare two trained models as they are up to the round in which they part, and the rounds
    after it as `compare_rounds` does."""
    reports = compare_models(ours, stock, dtrain)
    parts_at = next((i for i, report in enumerate(reports) if report.differences), None)
    if parts_at is None:
        return reports
    rounds = stock.num_boosted_rounds()
    trees_a_round = len(reports) // rounds
    n_judged = (parts_at // trees_a_round + 1) * trees_a_round
    by_round = compare_rounds(params, dtrain, rounds, device, plugin_params)
    return reports[:n_judged] + [tree for trees in by_round for tree in trees][n_judged:]


def _one_round(
    model: xgb.Booster, params: dict, dtrain: xgb.DMatrix, iteration: int, ours: bool
) -> xgb.Booster:
    # A copy carries the trees and the random state; its predictions are computed anew from the
    # trees, on both sides alike. Its updaters are made while the take-over is as wanted.
    take_over(ours)
    try:
        booster = model.copy()
        booster.set_param(params)
        booster.update(dtrain, iteration)
    finally:
        take_over(True)
    return booster


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m xgboost_gpu_exact.compare",
        description="Train with the plugin and with XGBoost's own exact builder, round by round on "
        "the same gradients, and compare every tree. Ends with 1 if a tree is different, with 2 if there "
        "is nothing to compare.",
    )
    parser.add_argument(
        "--data",
        required=True,
        help="CSV, Parquet, NPZ or LIBSVM file, or the "
        "name of a bundled table: digits, breast_cancer, diabetes",
    )
    parser.add_argument("--label", help="the label's column")
    parser.add_argument("--objective", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--max-depth", type=int, default=6)
    parser.add_argument("--device", default="cpu", help="XGBoost's device: cpu (default) or cuda")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another training parameter; gpu_exact_... go to the plugin only",
    )
    parser.add_argument("--differing-only", action="store_true", help="no line for identical trees")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds {args.rounds}: give 1 or more")
    return args


def main() -> int:
    """Returns 0, 1 where a tree is different, 2 where there is nothing to compare."""
    from ._console import sentence
    from .tables import TableError

    args = _parse()
    try:
        return _compare_table(args)
    except (TableError, NothingShown, xgb.core.XGBoostError) as error:
        print(f"error: {sentence(error)}", file=sys.stderr)
        return 2


def _compare_table(args: argparse.Namespace) -> int:
    """Prints what comes out. Returns 1 where a tree is different, else 0."""
    from ._console import difference_lines
    from .tables import TableError, load, objective_params, split_params, to_dmatrix

    extra = split_params(args.param)
    if chosen := sorted({*extra} & {"device", "gpu_exact_fallback", "tree_method", "updater"}):
        raise TableError(f"`--param {chosen[0]}`: leave it out, each side needs its own.")
    if extra.get("booster") == "gblinear":
        raise TableError("`--param booster=gblinear` grows no trees: compare gbtree or dart.")
    if extra.get("grow_policy") == "lossguide":
        raise TableError("XGBoost's exact builder ignores `grow_policy=lossguide`: leave it out.")
    table = load(args.data, args.label)
    params = objective_params(table, args.objective) | {"max_depth": args.max_depth}
    plugin = {k: v for k, v in extra.items() if k.startswith("gpu_exact_")}
    params |= {k: v for k, v in extra.items() if k not in plugin}
    plugin |= no_fallback()
    dtrain = to_dmatrix(table, args.objective)
    size = f"{dtrain.num_row():,} x {dtrain.num_col():,}"
    status = device_status()
    if not status.usable:
        raise NothingShown(f"XGBoost's own builder would be compared with itself: {status.text}")
    print(f"{table.name}: {size}. Plugin on: {status.text}")
    print(f"{'tree':>6} {'round':>6} {'nodes':>7} {'statistics':>11}  verdict")
    reports: list[TreeReport] = []
    for i, trees in enumerate(compare_rounds(params, dtrain, args.rounds, args.device, plugin)):
        for report in trees:
            if report.differences or not args.differing_only:
                worst = max(report.deviation.values())
                print(f"{len(reports):6} {i:6} {report.n_nodes:7} {worst:11.1e}  {report.verdict}")
                print("".join(f"{'':15}{line}\n" for line in difference_lines(report)), end="")
            reports.append(report)
    print(summary(reports))
    return int(count(reports)[Verdict.DIFFERENT] > 0)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` has read enough: end, without a traceback
    sys.exit(main())
