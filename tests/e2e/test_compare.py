# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The verdicts of the comparison, on trees of XGBoost's own builder that are then bent."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact
from xgboost_gpu_exact import compare, demo
from xgboost_gpu_exact.tree_diff import Verdict, compare_trees, summary, trees_of

PARAMS = {"tree_method": "exact", "objective": "binary:logistic", "max_depth": 4, "nthread": 1}


@pytest.fixture(scope="module")
def dtrain():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = X[:, 0]  # every split on 0 has a twin on 3
    return xgb.DMatrix(X, X[:, 1] + np.nan_to_num(X[:, 0]) > 0.2)


@pytest.fixture(scope="module")
def booster(dtrain):
    xgboost_gpu_exact.take_over(False)
    try:
        return xgb.train(PARAMS, dtrain, 3)
    finally:
        xgboost_gpu_exact.take_over(True)


@pytest.fixture
def tree(booster):
    return trees_of(booster)[0]


def bent(tree, **changes):
    """A copy of the tree with `array=(node, value)` replaced."""
    copy = {name: array.copy() for name, array in tree.items()}
    for name, (node, value) in changes.items():
        copy[name][node] = value
    return copy


def split_on(tree, feature):
    is_split = (tree["left_children"] != -1) & (tree["split_indices"] == feature)
    return int(np.flatnonzero(is_split)[0])


def leaf(tree):
    return int(np.flatnonzero(tree["left_children"] == -1)[0])


def test_equal_trees_are_identical_and_all_nodes_are_compared(tree):
    report = compare_trees(tree, tree)
    assert report.verdict is Verdict.IDENTICAL
    assert report.n_nodes == tree["left_children"].size == 2 * report.n_splits + 1
    assert set(report.deviation.values()) == {0.0}


def test_twin_feature_of_the_same_gain_is_a_near_tie(tree):
    node = split_on(tree, 0)
    ours = bent(tree, split_indices=(node, 3))
    report = compare_trees(ours, tree)
    assert report.verdict is Verdict.NEAR_TIE
    assert [d.node for d in report.differences] == [node]
    assert "f3" in report.differences[0].ours and "f0" in report.differences[0].stock


@pytest.mark.parametrize(
    ("relative", "verdict"),
    [(0.0, Verdict.NEAR_TIE), (9e-7, Verdict.NEAR_TIE), (1e-5, Verdict.DIFFERENT)],
)
def test_gain_decides(tree, relative, verdict):
    node = split_on(tree, 1)
    tree = bent(tree, base_weights=(node, 0.0), loss_changes=(node, 8.0))
    ours = bent(tree, split_indices=(node, 2), loss_changes=(node, 8.0 * (1 + relative)))
    assert compare_trees(ours, tree).verdict is verdict
    assert compare_trees(tree, ours).verdict is verdict


def test_gain_carries_the_rounding_of_the_node(tree):
    # One rounding of gain(children) = 1000.1 is 6.1e-5: far more than 1e-6 of the loss change 0.1.
    node = split_on(tree, 1)
    stock = bent(
        tree, base_weights=(node, 1.0), sum_hessian=(node, 1000.0), loss_changes=(node, 0.1)
    )
    for steps, verdict in ((1, Verdict.NEAR_TIE), (4, Verdict.DIFFERENT)):
        gain = 0.1 + steps * np.spacing(np.float32(1000.1))
        ours = bent(stock, split_indices=(node, 2), loss_changes=(node, gain))
        assert compare_trees(ours, stock).verdict is verdict


def test_other_default_direction_of_the_same_gain_is_a_near_tie(tree):
    ours = bent(tree, default_left=(0, 1 - tree["default_left"][0]))
    assert compare_trees(ours, tree).verdict is Verdict.NEAR_TIE


def test_moved_threshold_that_cuts_nothing_else_is_different(tree, dtrain):
    # The same rows and so the same gain, but a row to predict may lie in between.
    moved = np.nextafter(tree["split_conditions"][0], np.float32(np.inf))
    ours = bent(tree, split_conditions=(0, moved))
    cuts_apart = compare.training_cuts(dtrain)
    assert compare_trees(ours, tree, cuts_apart).verdict is Verdict.DIFFERENT
    far = bent(tree, split_conditions=(0, tree["split_conditions"][0] + 1))
    assert compare_trees(far, tree, cuts_apart).verdict is Verdict.NEAR_TIE


@pytest.fixture(scope="module")
def table_of_categories():
    codes = np.random.default_rng(8).choice([0, 1, 2, 4, 5, 7], (500, 2)).astype(np.float32)
    return xgb.DMatrix(codes, codes[:, 0] % 2 + codes[:, 1] / 9, feature_types=["c", "c"])


def test_sets_of_categories(table_of_categories):
    params = {"tree_method": "hist", "max_depth": 3, "nthread": 1}
    (tree,) = trees_of(xgb.train(params, table_of_categories, 1))
    assert compare_trees(tree, tree).verdict is Verdict.IDENTICAL
    node = split_on(tree, 0)
    categories = tree["categories"][node]
    assert 0 < len(categories) < 6
    cuts_apart = compare.training_cuts(table_of_categories)
    for other, verdict in (
        ((*categories, 3), Verdict.DIFFERENT),  # which no row has
        (tuple({0, 1, 2, 4, 5, 7} - {*categories}), Verdict.NEAR_TIE),
        ((), Verdict.NEAR_TIE),  # by a threshold, NaN
    ):
        ours = bent(tree)
        ours["categories"][node] = other
        report = compare_trees(ours, tree, cuts_apart)
        assert report.verdict is verdict, other
        assert f"f0 not in {{{', '.join(map(str, categories))}}}" in report.differences[0].stock
    assert compare_trees(bent(ours, loss_changes=(node, 1e9)), tree).verdict is Verdict.DIFFERENT


def test_leaf_may_round_but_not_differ(tree):
    node = leaf(tree)
    value = tree["split_conditions"][node]
    rounded = bent(tree, split_conditions=(node, np.nextafter(value, np.float32(9))))
    assert compare_trees(rounded, tree).verdict is Verdict.NEAR_TIE
    other = bent(tree, split_conditions=(node, value * np.float32(1.001)))
    assert compare_trees(other, tree).verdict is Verdict.DIFFERENT


def test_split_on_one_side_only_is_different(tree):
    parent = int(np.flatnonzero(tree["left_children"] != -1)[-1])
    ours = bent(tree, left_children=(parent, -1), right_children=(parent, -1))
    assert compare_trees(ours, tree).verdict is Verdict.DIFFERENT


def test_below_a_near_tie_nothing_is_compared_but_beside_it(tree):
    node = int(tree["left_children"][0])
    below, beside = int(tree["left_children"][node]), int(tree["right_children"][0])
    assert below != -1 and tree["left_children"][beside] != -1
    ours = bent(tree, default_left=(node, 1 - tree["default_left"][node]))
    ours = bent(ours, split_conditions=(below, 1e9))
    report = compare_trees(ours, tree)
    assert (report.verdict, len(report.differences)) == (Verdict.NEAR_TIE, 1)
    ours = bent(ours, split_conditions=(beside, 1e9), loss_changes=(beside, 1e9))
    assert compare_trees(ours, tree).verdict is Verdict.DIFFERENT


def test_other_node_ids_do_not_matter(tree):
    # Pruning leaves holes in the ids; the walk follows children.
    order = np.concatenate([[0], np.arange(1, tree["left_children"].size)[::-1]])
    place = np.argsort(order)
    moved = {name: array[order] for name, array in tree.items()}
    for name in ("left_children", "right_children"):
        moved[name] = np.where(moved[name] == -1, -1, place[moved[name]])
    assert compare_trees(moved, tree).verdict is Verdict.IDENTICAL


def test_statistics_are_reported_beside_the_verdict(tree):
    hessian = tree["sum_hessian"]
    ours = bent(tree, sum_hessian=(0, hessian[0] * np.float32(1.01)))
    report = compare_trees(ours, tree)
    assert report.verdict is Verdict.IDENTICAL
    assert report.deviation["sum_hessian"] == pytest.approx(0.01, rel=0.02)


def test_rounds_compare_every_tree(dtrain):
    params = PARAMS | {"num_parallel_tree": 2}
    rounds = list(compare.compare_rounds(params, dtrain, 3))
    assert [len(trees) for trees in rounds] == [2, 2, 2]
    assert all(tree.verdict is not Verdict.DIFFERENT for trees in rounds for tree in trees)
    assert all(tree.n_nodes > 3 for tree in rounds[0])


def test_rounds_with_sampling_share_the_random_state(dtrain):
    # On XGBoost's own builder alone, so that nothing but the random state can make trees differ.
    xgboost_gpu_exact.take_over(False)
    try:
        params = PARAMS | {"subsample": 0.5, "colsample_bylevel": 0.5, "num_parallel_tree": 2}
        trained = trees_of(xgb.train(params, dtrain, 3))
        model = xgb.Booster(params, [dtrain])
        for i in range(3):
            model = compare._one_round(model, params, dtrain, i, False)
    finally:
        xgboost_gpu_exact.take_over(True)
    verdicts = [compare_trees(a, b).verdict for a, b in zip(trees_of(model), trained, strict=True)]
    assert verdicts == [Verdict.IDENTICAL] * 6


def test_a_model_that_parts_is_judged_where_it_parts(dtrain, booster):
    model = json.loads(booster.save_raw("json"))
    model["learner"]["gradient_booster"]["model"]["trees"][1]["split_conditions"][0] += 1e-3
    other = xgb.Booster()
    other.load_model(bytearray(json.dumps(model), "utf-8"))
    reports = compare.compare_training(other, booster, PARAMS, dtrain)
    assert [r.verdict for r in reports][:2] == [Verdict.IDENTICAL, Verdict.DIFFERENT]
    assert len(reports) == 3


def test_program_prints_every_tree_and_a_summary(builder):
    command = [sys.executable, "-m", "xgboost_gpu_exact.compare", "--data", "diabetes"]
    command += ["--objective", "reg:squarederror", "--rounds", "3", "--max-depth", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" identical\n") + done.stdout.count(" near-tie\n") == 3
    assert "0 different" in done.stdout


def test_what_the_cpu_grew_is_not_identical(builder, tmp_path):
    """Labels of such a range are left to XGBoost's own builder, which would be compared with itself."""
    rows = "".join(f"{i},{i % 3}.3\n" for i in range(200))
    (tmp_path / "t.csv").write_text(f"a,label\n{rows}200,1e18\n")
    command = [sys.executable, "-m", "xgboost_gpu_exact.compare", "--rounds", "2"]
    command += ["--data", str(tmp_path / "t.csv"), "--label", "label", "--param", "base_score=0"]
    command += ["--objective", "reg:squarederror"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "check labels and weights" in done.stderr, done
    assert "identical" not in done.stdout


@pytest.mark.parametrize("program", [compare, demo])
def test_a_plugin_that_is_switched_off_shows_nothing(builder, monkeypatch, capsys, program):
    arguments = ["--data", "diabetes", "--objective", "reg:squarederror", "--rounds", "2"]
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    monkeypatch.setattr(program, "take_over", lambda _: None)
    xgboost_gpu_exact.take_over(False)
    try:
        assert program.main() == 2
    finally:
        xgboost_gpu_exact.take_over(True)
    assert "error: The plugin grew 0 of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "code", "told"),
    [(compare, 2, "would be compared with itself: no driver"), (demo, 0, "No GPU took part")],
)
def test_without_a_gpu_nothing_is_shown(monkeypatch, capsys, program, code, told):
    arguments = ["--data", "diabetes", "--objective", "reg:squarederror", "--rounds", "2"]
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    monkeypatch.setattr(program, "take_over", lambda _: None)
    monkeypatch.setattr(compare, "device_status", lambda: xgboost_gpu_exact.DeviceStatus(False, "no driver"))
    xgboost_gpu_exact.take_over(False)
    try:
        assert program.main() == code
    finally:
        xgboost_gpu_exact.take_over(True)
    assert told in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "unusable",
    [
        ["--objective", "binary:logistc"],
        ["--param", "eta=abc"],
        ["--data", "none.csv"],
        ["--rounds", "0"],
        ["--param", "updater=grow_quantile_histmaker"],
        ["--param", "tree_method=hist"],
        ["--param", "device=cuda"],
        ["--param", "gpu_exact_fallback=warn"],
        ["--param", "booster=gblinear"],
        ["--param", "grow_policy=lossguide"],
    ],
)
def test_unusable_input_is_no_different_tree(unusable):
    command = [sys.executable, "-m", "xgboost_gpu_exact.compare", "--data", "diabetes"]
    command += ["--objective", "reg:squarederror", "--rounds", "1", *unusable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.rsplit("error: ", 1)[1].strip(), done.stderr
    assert "Traceback" not in done.stderr


def test_summary_counts(tree):
    node = leaf(tree)
    other = bent(tree, split_conditions=(node, 9.0))
    reports = [compare_trees(tree, tree), compare_trees(other, tree)]
    assert summary(reports) == "1 identical, 0 near-tie, 1 different"
