# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Do two trees say the same, and if not, is it a tie?

Two trees are walked together from the root. A node differs when one side splits and the other does
not, when feature, threshold (or set of categories) or default direction differ, or when the leaf values
do. The verdict on a tree is that of its worst node; below a node that differs nothing is compared.

* identical: no node differs.
* near-tie: a node took another split of the same gain. Gains are single-precision, their sums are
  added up in another order, and so two splits whose gains agree to 1e-6 (or to two roundings of the
  node's gain, which is larger than the loss change that is stored) may change places. So may the
  last digit of a leaf.
* different: everything else. A split on one side only, another gain, or another threshold (or set of
  categories) that sends all values of the training table the same way.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import xgboost as xgb

TOLERANCE = 1e-6
STATISTICS = ("base_weights", "sum_hessian", "loss_changes")
_DTYPES = {
    "left_children": np.int32,
    "right_children": np.int32,
    "split_indices": np.int32,
    "split_conditions": np.float32,  # of a leaf: its value
    "default_left": np.int32,
} | dict.fromkeys(STATISTICS, np.float32)

Tree = dict[str, np.ndarray]
Cut = float | tuple[int, ...]  # a threshold, or the categories that go right
CutsApart = Callable[[int, Cut, Cut], bool]


class Verdict(IntEnum):
    """Ordered: the worse, the greater."""

    IDENTICAL = 0
    NEAR_TIE = 1
    DIFFERENT = 2

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Difference:
    """One node at which two trees part."""

    node: int  # its id in the plugin's tree
    verdict: Verdict
    ours: str
    stock: str


@dataclass
class TreeReport:
    """What comparing two trees gave."""

    differences: list[Difference] = field(default_factory=list)
    n_nodes: int = 0  # compared and found equal
    n_splits: int = 0  # of these, the ones that split
    deviation: dict[str, float] = field(default_factory=dict)  # of each statistic, see `_deviation`

    @property
    def verdict(self) -> Verdict:
        return max((d.verdict for d in self.differences), default=Verdict.IDENTICAL)


def trees_of(booster: xgb.Booster) -> list[Tree]:
    """The tree arrays of a model, in the order of its trees."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    gbm = learner["gradient_booster"]
    trees = gbm.get("gbtree", gbm)["model"]["trees"]  # the DART booster wraps a gbtree
    return [
        {k: np.asarray(tree[k], dtype) for k, dtype in _DTYPES.items()}
        | {"categories": _categories_of(tree)}
        for tree in trees
    ]


def _categories_of(tree: dict) -> np.ndarray:
    """Of each node the categories that go right; nothing where it is split by a threshold."""
    sets = np.empty(len(tree["left_children"]), object)
    sets.fill(())
    segments = zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    )
    for node, begin, size in segments:
        sets[node] = tuple(tree["categories"][begin : begin + size])
    return sets


def compare_trees(ours: Tree, stock: Tree, cuts_apart: CutsApart | None = None) -> TreeReport:
    """Walk two trees breadth first; see the module's text for the verdicts.

    Without `cuts_apart` two cuts of one feature are taken to separate the rows differently.
    """
    report = TreeReport()
    same: tuple[list[int], list[int]] = ([], [])  # ids of the nodes that are equal, on either side
    todo = deque([(0, 0)])
    while todo:
        a, b = todo.popleft()
        difference = _compare_node(ours, a, stock, b, cuts_apart)
        if difference:
            report.differences.append(difference)
            continue
        same[0].append(a)
        same[1].append(b)
        if not _is_leaf(ours, a):
            todo.append((ours["left_children"][a], stock["left_children"][b]))
            todo.append((ours["right_children"][a], stock["right_children"][b]))
    report.n_nodes = len(same[0])
    report.n_splits = int(np.count_nonzero(ours["left_children"][same[0]] != -1))
    report.deviation = {s: _deviation(ours[s][same[0]], stock[s][same[1]]) for s in STATISTICS}
    return report


def _is_leaf(tree: Tree, node: int) -> bool:
    return tree["left_children"][node] == -1


def _compare_node(
    ours: Tree, a: int, stock: Tree, b: int, cuts_apart: CutsApart | None
) -> Difference | None:
    """None where the nodes are equal; children and statistics are not looked at."""
    leaf_a, leaf_b = _is_leaf(ours, a), _is_leaf(stock, b)
    keys = ["split_conditions"]
    if not leaf_a:
        keys += ["split_indices", "default_left"]
    if (
        leaf_a == leaf_b
        and all(ours[k][a].tobytes() == stock[k][b].tobytes() for k in keys)
        and (leaf_a or ours["categories"][a] == stock["categories"][b])
    ):
        return None
    if leaf_a != leaf_b:
        near = False
    elif leaf_a:
        near = _close(ours["split_conditions"][a], stock["split_conditions"][b])
    else:
        near = _gains_tie(ours, a, stock, b) and not _same_cut(ours, a, stock, b, cuts_apart)
    verdict = Verdict.NEAR_TIE if near else Verdict.DIFFERENT
    return Difference(int(a), verdict, _describe(ours, a), _describe(stock, b))


def _close(a: np.float32, b: np.float32) -> bool:
    return abs(float(a) - float(b)) <= TOLERANCE * max(abs(float(a)), abs(float(b)))


def _gains_tie(ours: Tree, a: int, stock: Tree, b: int) -> bool:
    gain_a, gain_b = ours["loss_changes"][a], stock["loss_changes"][b]
    if _close(gain_a, gain_b):
        return True
    # The loss change is gain(children) - gain(node) in single precision: it carries the rounding of
    # gain(children), which is at least what the stored weight and hessian say.
    node_gain = stock["base_weights"][b] ** 2 * stock["sum_hessian"][b]
    return abs(float(gain_a) - float(gain_b)) <= 2 * np.spacing(gain_b + node_gain)


def _same_cut(ours: Tree, a: int, stock: Tree, b: int, cuts_apart: CutsApart | None) -> bool:
    """Whether two cuts of one feature send every row of the training table the same way."""
    feature, x, y = ours["split_indices"][a], _cut(ours, a), _cut(stock, b)
    if feature != stock["split_indices"][b] or x == y or cuts_apart is None:
        return False
    return not cuts_apart(int(feature), x, y)


def _cut(tree: Tree, node: int) -> Cut:
    return tree["categories"][node] or float(tree["split_conditions"][node])


def _describe(tree: Tree, node: int) -> str:
    if _is_leaf(tree, node):
        return f"leaf {tree['split_conditions'][node]!s}"
    cut = f"< {tree['split_conditions'][node]!s}"
    if categories := tree["categories"][node]:
        cut = f"not in {{{', '.join(map(str, categories))}}}"
    return (
        f"f{tree['split_indices'][node]} {cut}, missing "
        f"{'left' if tree['default_left'][node] else 'right'}, gain {tree['loss_changes'][node]!s}"
    )


def _deviation(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, as a part of the largest magnitude."""
    if not a.size:
        return 0.0
    scale = max(np.abs(a).max(), np.abs(b).max())
    return float(np.abs(a.astype(np.float64) - b).max() / scale) if scale > 0 else 0.0


def count(reports: list[TreeReport]) -> dict[Verdict, int]:
    """How many trees got each verdict."""
    return {v: sum(r.verdict == v for r in reports) for v in Verdict}


def summary(reports: list[TreeReport]) -> str:
    """`350 identical, 0 near-tie, 0 different`."""
    return ", ".join(f"{n} {verdict}" for verdict, n in count(reports).items())
