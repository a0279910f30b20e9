# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The benchmark: its tables, its metrics, which times count, and a small run of all of it."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost_gpu_exact as gpu_exact
from sklearn.metrics import log_loss, ndcg_score

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "datasets")]

import cases  # noqa: E402
import measure  # noqa: E402
import metrics  # noqa: E402
import synthetic  # noqa: E402
import systems  # noqa: E402
import tables  # noqa: E402
import train  # noqa: E402

FIELDS = (
    "system shape rows columns max_depth rounds ms quartiles ms_first set_up_s load_s value device load "
    "commit build date"
).split()


def ranking(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 40, rows))
    return rng.integers(0, 5, rows).astype(np.float32), rng.standard_normal(rows), qid


def test_selection():
    assert [c.name for c in cases.select(["small-1000", "small", "higgs"])] == [
        "small-1000", "small-10000", "small-100000", "higgs"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no shape `hig`; there are higgs, higgs_6, higgs_8, bosch"):
        cases.select(["hig"])


def test_all_tables_but_series_are_the_default():
    names = [case.name for case in train.parse([]).cases]
    assert names[:4] == ["higgs", "higgs_6", "higgs_8", "bosch"] and "small-1000" in names
    assert len({*names}) == len(names)
    assert not [name for name in names if re.match("growth|other|huge", name)]


def test_commands_of_the_guide_can_be_run():
    text = (ROOT / "benchmarks/README.md").read_text()
    commands = re.findall(r"^(?:train|\S+/python benchmarks/train.py) (--[^#\n]*)", text, re.MULTILINE)
    assert len(commands) > 4
    assert all(train.parse(command.split()).cases for command in commands)


def test_depths_share_one_table():
    first, second, *_ = cases.select(["growth-depth"])
    assert second.table == first.table == second._replace(params=(("subsample", 0.5),)).table
    for changed in ({"rows": 10}, {"distinct": 2}, {"a_row": 3}):
        assert second._replace(**changed).table != first.table


def test_a_case_may_have_parameters_of_its_own():
    case = cases.select(["other-step"])[0]
    system = systems.XGBoost({"tree_method": "hist"})
    system.load(synthetic.dense(200, 20), case, 1)
    assert '"max_delta_step":"0.1' in system.booster.save_config()


@pytest.mark.parametrize("shape", ["bosch", "yltr", "news20"])
def test_a_saved_table_comes_back(shape):
    table = synthetic.make(shape, 300)
    with cases.made(cases.select([shape])[0]._replace(rows=300)) as folder:
        back = cases.load(folder)
    assert not folder.exists()
    assert sp.issparse(back.X) == sp.issparse(table.X) == (shape == "news20")
    if sp.issparse(table.X):
        assert (back.X != table.X).nnz == 0
    else:
        np.testing.assert_array_equal(back.X, table.X)
    np.testing.assert_array_equal(back.y, table.y)
    assert (back.qid is not None) == (shape == "yltr")


def test_no_room_for_a_table(monkeypatch):
    monkeypatch.setattr(cases.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(SystemExit, match="0.0 GB free for the table; name a folder that has in TMPDIR"):
        cases.made(cases.select(["small-1000"])[0]).__enter__()


def test_tables_have_the_structure_of_their_originals():
    bosch = synthetic.make("bosch", 2_000).X
    assert 0.79 < np.isnan(bosch).mean() < 0.83
    present = bosch[~np.isnan(bosch)]
    np.testing.assert_allclose(present * 1000, np.round(present * 1000), atol=1e-3)
    news20 = synthetic.make("news20", 500).X
    assert news20.shape[1] == 1_355_191 and 400 < news20.nnz / 500 < 510
    yltr = synthetic.make("yltr", 2_000)
    assert set(np.unique(yltr.y)) == {0, 1, 2, 3, 4} and np.all(np.diff(yltr.qid) >= 0)
    ones = synthetic.sparse(2_000, 100, 20, ones=True).X
    assert set(ones.data) == {1.0} and np.diff(ones.indptr).max() <= 20
    assert all(np.all(np.diff(row.indices) > 0) for row in ones[:50])
    often = np.bincount(ones.indices, minlength=100)
    assert often[:10].sum() > 2 * often[50:60].sum() > 0
    assert len(np.unique(synthetic.sparse(2_000, 100, 20).X.data)) > 10_000
    few = synthetic.dense(5_000, 3, distinct=16, missing=0.5).X
    assert all(len(np.unique(c[~np.isnan(c)])) == 16 for c in few.T)
    assert 0.45 < np.isnan(few).mean() < 0.55


def test_cases_that_exact_does_not_grow():
    case = cases.select(["other-flights"])[0]._replace(rows=20_000)
    X, y, _ = case.make()
    assert case.feature_types == ["c"] * 6 + ["q"] * 2
    assert list(distinct_values(X)[:6]) == list(case.categories) and X.min() >= 0.0
    common = np.bincount(X[:, 5].astype(int))
    assert common[:30].sum() > 2 * common[150:180].sum() > 0
    assert 0.2 < y.mean() < 0.5
    system = systems.XGBoost({"tree_method": "hist"})
    system.load(case.make(), case, 1)
    assert system.booster.feature_types == case.feature_types
    chosen = cases.select(["other"])
    leaf_wise = [c.name for c in chosen if "max_leaves" in dict(c.params)]
    assert len(leaf_wise) == 4
    assert [c.name for c in chosen if not c.stock] == [*leaf_wise, "other-ads", "other-flights", "other-access"]


def test_constraints_of_credit_are_those_of_its_labels():
    """Each column that has a sign moves the labels that way."""
    case = cases.select(["other-credit"])[0]
    X, y, _ = synthetic.make("credit", 100_000)
    signs = json.loads("[" + dict(case.params)["monotone_constraints"][1:-1] + "]")
    assert len(signs) == X.shape[1] == 30 and signs.count(0) == 15
    ranks = X.argsort(axis=0).argsort(axis=0)
    effects = [np.corrcoef(column, y)[0, 1] for column in ranks.T]
    assert all(sign * effect > 0.02 for sign, effect in zip(signs, effects, strict=True) if sign)
    assert 0.05 < y.mean() < 0.15


def test_bins_cannot_tell_segments():
    X, y, _ = synthetic.make("segments", 200_000)
    order = np.argsort(X[:, 0])
    most = [np.bincount(part.astype(int)).max() for part in np.array_split(y[order], 256)]
    assert sum(most) / len(y) < 0.7  # of the labels, if each bin has one answer
    most = [np.bincount(part.astype(int)).max() for part in np.array_split(y[order], 20_000)]
    assert sum(most) / len(y) > 0.85


def distinct_values(X):
    return np.array([len(np.unique(c[~np.isnan(c)])) for c in X.T])


@pytest.mark.parametrize(("shape", "columns"), [("year", 90), ("tall", 10)])
def test_tables_without_equal_values(shape, columns):
    X, y, _ = synthetic.make(shape, 200_000)
    assert X.shape == (200_000, columns) and X.dtype == y.dtype == np.float32
    assert np.all(distinct_values(X) == 200_000)
    assert X.min() >= 2.0**-8 and X.max() < 2.0**8
    log = np.log2(X)
    np.testing.assert_allclose(log.mean(axis=0), 0.057, atol=0.05)  # between powers of two: linear
    between = np.corrcoef(log, rowvar=False) - np.eye(columns)
    assert np.abs(between).max() < 0.02
    assert len(np.unique(y)) > 100_000


@pytest.mark.parametrize("shape", ["higgs", "year", "covtype", "airline", "criteo"])
def test_a_table_does_not_depend_on_threads_or_later_rows(shape, monkeypatch):
    more = synthetic.make(shape, synthetic.BLOCK_ROWS + 10, seed=3)
    monkeypatch.setattr(synthetic.os, "cpu_count", lambda: 1)
    some = synthetic.make(shape, synthetic.BLOCK_ROWS, seed=3)
    np.testing.assert_array_equal(more.X[: synthetic.BLOCK_ROWS], some.X)
    np.testing.assert_array_equal(more.y[: synthetic.BLOCK_ROWS], some.y)


@pytest.mark.parametrize("shape", synthetic.SHAPES)
def test_a_table_follows_its_seed(shape):
    one, same, other = (synthetic.make(shape, 200, seed) for seed in (1, 1, 2))
    assert one.X.shape == (200, synthetic.SHAPES[shape].columns) and len(one.y) == 200
    arrays = [t.X.data if sp.issparse(t.X) else t.X for t in (one, same, other)]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    np.testing.assert_array_equal(one.y, same.y)
    assert not np.array_equal(arrays[0], arrays[2], equal_nan=True)
    assert arrays[0].dtype == one.y.dtype == np.float32


def test_losses():
    y = np.array([0, 1, 1, 0], np.float32)
    p = np.array([0.2, 0.9, 0.4, 0.5], np.float32)
    assert metrics.evaluate("logloss", y, p, None) == pytest.approx(log_loss(y, p), rel=1e-7)
    assert metrics.untrained("logloss", y, None) == pytest.approx(np.log(2))
    assert metrics.evaluate("rmse", y, y + np.float32(0.5), None) == pytest.approx(0.5)
    assert metrics.untrained("rmse", y, None) == pytest.approx(np.std(y))
    y = np.array([0, 2, 1, 2], np.float32)
    p = np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]], np.float32)
    assert metrics.evaluate("mlogloss", y, p, None) == pytest.approx(log_loss(y, p), rel=1e-6)
    assert metrics.untrained("mlogloss", y, None) == pytest.approx(np.log(3))


def test_ndcg_is_that_of_others():
    y, score, qid = ranking()
    gains = [
        ndcg_score([2.0 ** y[qid == q] - 1], [score[qid == q]])
        for q in np.unique(qid)
        if np.any(y[qid == q] > 0)
    ]
    queries = len(np.unique(qid))
    expected = (sum(gains) + queries - len(gains)) / queries
    assert metrics.ndcg(y, score, qid) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "value", "exact", "objection"),
    [
        ("logloss", 0.5, 0.5000001, None),
        ("logloss", 0.5, 0.501, "not the 0.501 of XGBoost's exact"),
        ("logloss", 0.7, 0.7, "no better than 0.69"),
        ("logloss", float("nan"), None, "no better"),
        ("rmse", 0.5, None, None),
        ("ndcg", 0.8, 0.8004, None),
        ("ndcg", 0.8, 0.79, "not the 0.79"),
        ("ndcg", 0.6, None, "no better than 0.69"),
    ],
)
def test_which_times_count(metric, value, exact, objection):
    found = metrics.objection(metric, value, 0.69, exact)
    assert found is None if objection is None else objection in found


@pytest.mark.parametrize(
    ("iterations", "seconds", "warm_up", "done"),
    [(50, 6.0, 1, 6), (3, 1.0, 2, 7), (50, 1.0, 2, 12)],  # five count, whatever they take
)
def test_laps_keep_to_the_budget(iterations, seconds, warm_up, done):
    laps = systems.Laps(iterations, budget_s=10.0, warm_up=warm_up)
    while laps.more:
        laps.seconds.append(seconds)
    assert laps.seconds == [seconds] * done


def test_early_and_late_trees_are_told_apart():
    laps = systems.Laps(iterations=100, budget_s=1e9, warm_up=2)
    while laps.more:
        laps.seconds.append(float(100 - len(laps.seconds)))
    assert len(laps.seconds) == 100  # 100, 99, then 98 down to 1
    assert laps.first == list(range(98, 78, -1)) and laps.last == list(range(20, 0, -1))
    assert laps.set_up_s == 100 - 88.5


def small_run(tmp_path, monkeypatch, answers):
    """Session over one case, with the measuring processes' answers by system."""
    monkeypatch.setattr(measure, "run_apart", lambda _, jobs: [answers[jobs[0]["system"]]])
    options = train.parse(
        ["--shapes", "small-1000", "--systems", ",".join(answers), "--out", str(tmp_path / "out")]
    )
    session = train.Session(options)
    session.run_all(options.cases)
    return session


def answer(system, value):
    line = dict.fromkeys(FIELDS, 1) | {"system": system, "value": value}
    return {"line": line, "metric": "logloss", "untrained": 0.69}


def test_a_wrong_model_leaves_no_line(tmp_path, monkeypatch):
    answers = {
        "xgb_exact_cpu": answer("xgb_exact_cpu", 0.5),
        "gpu_exact_cuda": answer("gpu_exact_cuda", 0.51),
        "gpu_exact_cpu_context": answer("gpu_exact_cpu_context", 0.5),
        "xgb_hist_gpu_256": answer("xgb_hist_gpu_256", 0.52),  # other trees, by right
        "xgb_hist_gpu_4096": {"failed": "exit 1"},
        "xgb_hist_gpu_4096_dmatrix": {"skipped": "there is no GPU"},
    }
    session = small_run(tmp_path, monkeypatch, answers)
    assert (len(session.lines), session.skipped, session.failed) == (3, 1, 2)
    written = [json.loads(t)["system"] for t in (tmp_path / "out").read_text().splitlines()]
    assert written == ["xgb_exact_cpu", "gpu_exact_cpu_context", "xgb_hist_gpu_256"]


def test_an_earlier_exact_run_judges_too(tmp_path, monkeypatch):
    small_run(tmp_path, monkeypatch, {"xgb_exact_cpu": answer("xgb_exact_cpu", 0.5)})
    wrong = small_run(tmp_path, monkeypatch, {"gpu_exact_cuda": answer("gpu_exact_cuda", 0.51)})
    assert (wrong.lines, wrong.failed) == ([], 1)
    right = small_run(tmp_path, monkeypatch, {"gpu_exact_cuda": answer("gpu_exact_cuda", 0.5)})
    assert (len(right.lines), right.failed) == (1, 0)


def test_a_module_of_other_sources_is_not_timed(builder, tmp_path, monkeypatch):
    """Else its times would be taken for those of the sources that lie here."""
    case = cases.select(["small-1000"])[0]._replace(max_depth=2)
    cases.save(case.make(), tmp_path)
    job = {"system": "gpu_exact_cpu_context", "case": case._asdict(), "folder": str(tmp_path)}
    job |= {"iterations": 5, "budget_s": 0.0, "build": gpu_exact.source_hash(), "origin": {}}
    right, wrong = measure.run_apart(measure.measure, [job, job | {"build": "of today"}])
    assert "line" in right, right
    assert "is built of other sources" in wrong["failed"]
    monkeypatch.setattr(measure, "TIMEOUT_S", 0.0)
    assert measure.run_apart(measure.measure, [job]) == [{"failed": "it took more than 0 s"}]


def test_a_quick_headline(tmp_path):
    """Each system is measured, or skipped with a reason; the table is printed."""
    out = tmp_path / "out.jsonl"
    command = [sys.executable, ROOT / "benchmarks/train.py", "--headline", "--quick", "--out", out]
    command += ["--shapes", "yltr", "--rows", "2000", "--max-depth", "3", "--iterations", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = {line["system"]: line for line in map(json.loads, out.read_text().splitlines())}
    for system in ("xgb_exact_cpu", tables.OURS, tables.HIST, tables.HIST + tables.BY_DMATRIX):
        assert system in lines or f"{system}: skipped: " in done.stderr
    exact = lines["xgb_exact_cpu"]
    assert set(FIELDS) <= set(exact)
    assert (exact["rows"], exact["columns"], exact["rounds"]) == (2_000, 700, 6)
    low, high = exact["quartiles"]
    assert 0 < low <= exact["ms"] <= high
    assert "| Yahoo LTR | 2,000 x 700 | 3 | " in done.stdout


@pytest.mark.parametrize("shape", ["year", "covtype"])
def test_a_run_of_each_objective(shape, tmp_path):
    out = tmp_path / "out.jsonl"
    arguments = ["--shapes", shape, "--rows", "2000", "--max-depth", "3", "--budget", "0"]
    arguments += ["--systems", "xgb_exact_cpu", "--out", str(out)]
    session = train.Session(options := train.parse(arguments))
    session.run_all(options.cases)
    assert (len(session.lines), session.failed) == (1, 0)
    assert json.loads(out.read_text())["rounds"] == 6  # five count, whatever they take


def runs(**fields):
    """Lines of one shape: the plugin, hist by both ways to load, and XGBoost's exact, twice."""
    line = dict.fromkeys(FIELDS, 1) | {"shape": "higgs", "rows": 5_000, "columns": 10, "max_depth": 6}
    line |= {"device": "a GPU", "commit": "abc", "build": "123", "date": "today", "peak_mib": 50}
    line |= fields
    return [
        line | {"system": "xgb_exact_cpu", "ms": 900.0},
        line | {"system": "xgb_exact_cpu", "ms": 700.0, "commit": "def"},
        line | {"system": "gpu_exact_cuda", "ms": 9.0},  # a later run counts
        line | {"system": "gpu_exact_cuda", "ms": 3.0, "ms_first": 2.0, "set_up_s": 0.25},
        line | {"system": "xgb_hist_gpu_256", "ms": 5.0, "load_s": 2.0},
        line | {"system": "xgb_hist_gpu_256_dmatrix", "ms": 4.0, "peak_mib": 40},
    ]


def test_tables_of_results():
    told = tables.headline(runs(device="a GPU, 8 CPU cores"))
    assert "| XGBoost's exact, 8 CPU cores |\n" in told
    assert "| HIGGS | 5,000 x 10 | 6 | **3** | 4 (1.33x) | 700 (233x) |" in told
    assert "On one a GPU, gradients included. In brackets: that time divided by this plugin's." in told
    without = [run for run in runs() if run["system"] != "xgb_exact_cpu"]
    assert "| **3** | 4 (1.33x) | not timed |" in tables.headline(without)
    assert "| higgs | 5,000 x 10 | 6 | 3 | 4 | 0.75 |  | 700 to 900 |" in tables.speed(runs())
    assert "CPU: commit abc (today), def (today)." in tables.speed(runs())
    assert "| higgs | 2 | 3 | 0.25 | 1 | 4 | 1.00 | 1.0 | 2.0 |" in tables.rounds(runs())
    assert "| higgs | 5,000 x 10 | 50 | 50 | 40 |" in tables.memory(runs())
    on_the_cpu = runs()[3] | {"system": "gpu_exact_cpu_context", "ms": 8.0}
    assert "| HIGGS | 5,000 x 10 | 6 | 8 | 3 |" in tables.context([*runs(), on_the_cpu])
    assert "HIGGS" not in tables.context(runs())
    grown = [*runs(), *runs(shape="growth-depth-16"), *runs(shape="growth-depth-4")]
    grown[-3]["ms"] = 5.0
    assert "| depth | 4: 1.25, 16: 0.75 |" in tables.growth(grown)
    slow = runs(shape="other-ones")
    slow[3]["ms"] = 6.0
    told = tables.summary([*grown, *slow]).replace("\n", " ")
    assert "On 2 of 4 generated tables a tree grows faster than with GPU `hist`: " in told
    assert "at the median 1 times as fast, at most 1.3 times." in told
    slower = "0.67 times as fast on `ones`, 0.80 times as fast with 1,000,000 rows and 28 columns at depth 4."
    assert f"On 2 it grows slower: {slower}" in told


def test_words_for_slower_tables_are_of_tables():
    names = {case.name.removeprefix("other-") for case in cases.all_cases()}
    assert {*tables.SLOWER} <= names


def test_a_table_of_other_trees_is_refused():
    line = {"shape": "higgs", "system": "gpu_exact", "mode": "devices", "rows": 1, "columns": 1}
    line |= {"max_depth": 1, "device": "", "commit": "", "build": "", "date": "", "ms": 2.0}
    lines = [line | {"gpus": n, "identical": n == 1} for n in (1, 2)]
    with pytest.raises(SystemExit, match="other trees"):
        tables.scale(lines)


def test_pictures(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    import plot

    shapes = ("higgs", "growth-depth-4", "growth-depth-16", "growth-distinct-all", "other-ones")
    lines = [json.dumps(line) for shape in shapes for line in runs(shape=shape)]
    (tmp_path / "train-x.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(sys, "argv", ["plot.py", "--results", str(tmp_path)])
    plot.main()
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    picture = (tmp_path / "times_as_fast.svg").read_text()
    ElementTree.fromstring(picture)
    assert "5 generated tables, a bar each" in picture and picture.count("<title>") == 5
    assert "<title>ones: 1.33x</title>" in picture and "faster on 5, slower on 0" in picture


def test_the_picture_is_of_the_results():
    """`python benchmarks/plot.py` mends it."""
    pytest.importorskip("matplotlib")
    import plot

    rows = tables.all_compared(tables.read("train-*.jsonl"))
    assert (tables.RESULTS / "times_as_fast.svg").read_text() == plot.bars(rows)
