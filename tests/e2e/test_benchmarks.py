# Copyright 2026, the gpu_exact contributors
"""The benchmark: its tables, its metrics, which times count, and a small run of all of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
from sklearn.metrics import log_loss, ndcg_score

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "datasets")]

import cases  # noqa: E402
import metrics  # noqa: E402
import synthetic  # noqa: E402
import systems  # noqa: E402
import train  # noqa: E402

import device  # noqa: E402

FIELDS = (
    "system strategy shape rows columns entries max_depth iterations ms_per_tree "
    "ms_per_tree_quartiles first_iteration_s load_s metric metric_value peak_device_mib device "
    "driver source_hash"
).split()


def ranking(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 40, rows))
    return rng.integers(0, 5, rows).astype(np.float32), rng.standard_normal(rows), qid


def test_shapes_are_those_that_were_promised():
    sizes = {c.name: (c.rows, c.max_depth, c.objective) for c in cases.all_cases()}
    assert len(sizes) == len(cases.all_cases())
    assert sizes["higgs"] == (10_500_000, 12, "binary:logistic")
    assert sizes["bosch"] == (1_070_000, 6, "binary:logistic")
    assert sizes["yltr"] == (473_134, 6, "rank:ndcg")
    assert sizes["news20"] == (19_996, 6, "binary:logistic")
    assert [c.rows for c in cases.select(["small"])] == [1_000, 10_000, 100_000]
    assert [c.rows for c in cases.select(["growth-rows"])] == [10**p for p in range(4, 9)]
    assert [c.max_depth for c in cases.select(["growth-depth"])] == [4, 8, 12, 16]
    assert {c.columns for c in cases.select(["growth-features"])} >= {4, 4096}
    assert {c.distinct for c in cases.select(["growth-distinct"])} >= {2, None}
    assert {c.missing for c in cases.select(["growth-missing"])} >= {0.0, 0.99}


def test_selection():
    assert [c.name for c in cases.select(["small-1000", "small", "higgs"])] == [
        "small-1000", "small-10000", "small-100000", "higgs"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no shape `hig`; there are higgs, bosch"):
        cases.select(["hig"])


def test_depths_share_one_table():
    first, second, *_ = cases.select(["growth-depth"])
    assert second.same_table(first) and not second.same_table(None)
    assert not second._replace(rows=10).same_table(first)
    assert not second._replace(distinct=2).same_table(first)


@pytest.mark.parametrize("shape", ["higgs", "bosch", "yltr", "news20"])
def test_a_saved_table_comes_back(shape, tmp_path):
    table = synthetic.make(shape, 300)
    cases.save(table, tmp_path)
    back = cases.load(tmp_path)
    assert sp.issparse(back.X) == sp.issparse(table.X) == (shape == "news20")
    if sp.issparse(table.X):
        assert (back.X != table.X).nnz == 0
    else:
        np.testing.assert_array_equal(back.X, table.X)
    np.testing.assert_array_equal(back.y, table.y)
    assert (back.qid is not None) == (shape == "yltr")
    assert cases.count_entries(back) == xgb.DMatrix(table.X).num_nonmissing()


def test_tables_have_the_structure_of_their_originals():
    bosch = synthetic.make("bosch", 2_000).X
    assert 0.79 < np.isnan(bosch).mean() < 0.83
    present = bosch[~np.isnan(bosch)]
    np.testing.assert_allclose(present * 1000, np.round(present * 1000), atol=1e-3)
    news20 = synthetic.make("news20", 500).X
    assert news20.shape[1] == 1_355_191 and 400 < news20.nnz / 500 < 510
    yltr = synthetic.make("yltr", 2_000)
    assert set(np.unique(yltr.y)) == {0, 1, 2, 3, 4} and np.all(np.diff(yltr.qid) >= 0)
    few = synthetic.dense(5_000, 3, distinct=16, missing=0.5).X
    assert all(len(np.unique(c[~np.isnan(c)])) == 16 for c in few.T)
    assert 0.45 < np.isnan(few).mean() < 0.55


def test_a_table_does_not_depend_on_threads(monkeypatch):
    rows = synthetic.BLOCK_ROWS + 10
    wide = synthetic.dense(rows, 2, seed=3)
    monkeypatch.setattr(synthetic.os, "cpu_count", lambda: 1)
    narrow = synthetic.dense(rows, 2, seed=3)
    np.testing.assert_array_equal(wide.X, narrow.X)
    np.testing.assert_array_equal(wide.y, narrow.y)


def test_logloss():
    y = np.array([0, 1, 1, 0], np.float32)
    p = np.array([0.2, 0.9, 0.4, 0.5], np.float32)
    assert metrics.evaluate("logloss", y, p, None) == pytest.approx(log_loss(y, p), rel=1e-7)
    assert metrics.untrained("logloss", y, None) == pytest.approx(np.log(2))


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


def test_metrics_are_those_of_xgboost():
    y, _, qid = ranking()
    X = np.random.default_rng(1).standard_normal((len(y), 4)).astype(np.float32)
    dtrain = xgb.DMatrix(X, y, qid=qid)
    result = {}
    params = {"objective": "rank:ndcg", "eval_metric": "ndcg", "max_depth": 3}
    model = xgb.train(
        params, dtrain, 2, evals=[(dtrain, "t")], evals_result=result, verbose_eval=False
    )
    mine = metrics.evaluate("ndcg", y, model.predict(dtrain), qid)
    assert mine == pytest.approx(result["t"]["ndcg"][-1], rel=1e-6)


@pytest.mark.parametrize(
    ("metric", "value", "exact", "objection"),
    [
        ("logloss", 0.5, None, None),
        ("logloss", 0.5, 0.5000001, None),
        ("logloss", 0.5, 0.501, "not the 0.501 of XGBoost's exact"),
        ("logloss", 0.7, 0.7, "no better than 0.69"),
        ("logloss", float("nan"), None, "no better"),
        ("ndcg", 0.8, 0.8004, None),
        ("ndcg", 0.8, 0.79, "not the 0.79"),
        ("ndcg", 0.6, None, "no better than 0.69"),
    ],
)
def test_which_times_count(metric, value, exact, objection):
    found = metrics.objection(metric, value, 0.69, exact)
    assert found is None if objection is None else objection in found


def test_laps_keep_to_the_budget():
    laps = systems.Laps(iterations=50, budget_s=10.0, warm_up=1)
    while laps.more:
        laps.seconds.append(6.0)
    assert laps.seconds == [6.0, 6.0] and laps.median_ms() == 6000.0
    laps = systems.Laps(iterations=5, budget_s=10.0, warm_up=2)
    while laps.more:
        laps.seconds.append(0.001 * (5 - len(laps.seconds)))
    assert len(laps.seconds) == 5  # 5, 4, then 3, 2, 1 ms
    assert laps.median_ms() == pytest.approx(2.0)
    assert laps.quartiles_ms() == pytest.approx([1.5, 2.5])
    assert (laps.affordable(1.0), laps.affordable(100.0)) == (5, 3)


class FakeGpu:
    """Its memory is what the test says; it counts how often it is asked."""

    def __init__(self):
        self.value, self.asked = 100 * device.MIB, 0

    def used(self):
        self.asked += 1
        return self.value


def test_memory_is_the_peak_above_the_start():
    gpu = FakeGpu()
    watch = device.MemoryWatch(gpu, interval_s=0.0)
    gpu.value = 350 * device.MIB
    deadline, seen = time.monotonic() + 10.0, gpu.asked
    while gpu.asked < seen + 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    gpu.value = 200 * device.MIB
    watch.stop_polling()
    assert watch.peak_mib() == 250
    asked, gpu.value = gpu.asked, 400 * device.MIB
    time.sleep(0.01)
    assert gpu.asked == asked  # nobody polls while times are taken
    watch.look()
    watch.stop_polling()  # again does no harm
    assert watch.peak_mib() == 300


def small_run(tmp_path, monkeypatch, answers):
    """Session over one case, with the measuring processes' answers by system."""
    monkeypatch.setattr(train, "run_apart", lambda job, _: answers[job["system"]])
    options = train.parse(
        ["--shapes", "small-1000", "--systems", ",".join(answers), "--out", str(tmp_path / "out")]
    )
    session = train.Session(options)
    session.run_all(options.cases)
    return session


def answer(system, value):
    line = dict.fromkeys(FIELDS, 1) | {"system": system, "metric": "logloss", "metric_value": value}
    return {"line": line, "untrained": 0.69}


def test_a_wrong_model_leaves_no_line(tmp_path, monkeypatch):
    answers = {
        "xgb_exact_cpu": answer("xgb_exact_cpu", 0.5),
        "gpu_exact_cuda": answer("gpu_exact_cuda", 0.51),
        "gpu_exact_cpu_context": answer("gpu_exact_cpu_context", 0.5),
        "xgb_hist_gpu_256": answer("xgb_hist_gpu_256", 0.52),  # other trees, by right
        "xgb_hist_gpu_4096": {"failed": "exit 1"},
        "lightgbm_gpu": {"failed": "No OpenCL device found"},  # that is no failure of ours
        "catboost_gpu": {"skipped": "not installed"},
    }
    session = small_run(tmp_path, monkeypatch, answers)
    assert (session.written, session.skipped, session.failed) == (3, 2, 2)
    written = [json.loads(t)["system"] for t in (tmp_path / "out").read_text().splitlines()]
    assert written == ["xgb_exact_cpu", "gpu_exact_cpu_context", "xgb_hist_gpu_256"]


def test_an_earlier_exact_run_judges_too(tmp_path, monkeypatch):
    small_run(tmp_path, monkeypatch, {"xgb_exact_cpu": answer("xgb_exact_cpu", 0.5)})
    wrong = small_run(tmp_path, monkeypatch, {"gpu_exact_cuda": answer("gpu_exact_cuda", 0.51)})
    assert (wrong.written, wrong.failed) == (0, 1)
    right = small_run(tmp_path, monkeypatch, {"gpu_exact_cuda": answer("gpu_exact_cuda", 0.5)})
    assert (right.written, right.failed) == (1, 0)


def test_a_run_of_all_systems(tmp_path):
    """Each is measured, or skipped with a reason; what is measured has every field."""
    out = tmp_path / "out.jsonl"
    command = [sys.executable, ROOT / "benchmarks/train.py", "--shapes", "small-1000"]
    command += ["--iterations", "4", "--max-depth", "3", "--threads", "2", "--out", out]
    command += ["--strategy", "sort"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = {line["system"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert done.stdout == out.read_text()
    for system in train.SYSTEMS:
        assert system in lines or f"{system}: skipped: " in done.stderr
    assert all(list(line) == FIELDS for line in lines.values())
    exact = lines["xgb_exact_cpu"]
    assert (exact["rows"], exact["columns"], exact["entries"]) == (1_000, 28, 28_000)
    assert exact["strategy"] is None
    assert lines.get("gpu_exact_cpu_context", {"strategy": "sort"})["strategy"] == "sort"
    assert exact["iterations"] == 4 and exact["max_depth"] == 3 and exact["ms_per_tree"] > 0


def tiny_run(system, shape):
    """One of the peers on the CPU: their programs are the same but for the device."""
    table, case = synthetic.make(shape, 2_000), cases.select([shape])[0]
    laps = systems.Laps(iterations=4, budget_s=60.0, warm_up=2)
    system.load(table, case._replace(max_depth=3), 2)
    system.train(laps, lambda: None)
    value = metrics.evaluate(case.metric, table.y, laps.prediction, table.qid)
    assert len(laps.seconds) == 4 and all(s >= 0 for s in laps.seconds)
    baseline = metrics.untrained(case.metric, table.y, table.qid)
    assert metrics.objection(case.metric, value, baseline, None) is None


@pytest.mark.parametrize("shape", ["higgs", "yltr"])
def test_lightgbm(shape):
    pytest.importorskip("lightgbm")
    tiny_run(systems.LightGBM("cpu"), shape)


@pytest.mark.parametrize("shape", ["higgs", "yltr"])
def test_catboost(shape):
    pytest.importorskip("catboost")
    tiny_run(systems.CatBoost("CPU"), shape)


def test_pictures_of_what_there_is(tmp_path):
    pytest.importorskip("matplotlib")
    import plot

    assert plot.draw_all(tmp_path) == []
    run = dict.fromkeys(FIELDS, 1) | {"device": "a GPU", "ms_per_tree_quartiles": [0.5, 2.0]}
    run["strategy"] = "auto"
    shapes = ["higgs", "small-1000", "growth-depth-4", "growth-depth-16", "growth-distinct-all"]
    runs = [run | {"system": "gpu_exact_cuda", "shape": shape} for shape in shapes]
    runs.append(runs[0] | {"device": "another GPU", "strategy": "sort"})  # is in no picture
    (tmp_path / "train-x.jsonl").write_text("\n".join(map(json.dumps, runs)))
    assert [p.name for p in plot.draw_all(tmp_path)] == ["peers.png", "growth.png"]
    levels = run | {"bench": "levels", "shape": "higgs", "interleaved_levels": 3}
    others = [run | {"bench": "depths"}, levels | {"device": "another", "strategy": "partition"}]
    (tmp_path / "builder-x.jsonl").write_text("\n".join(map(json.dumps, [levels, *others])))
    made = plot.draw_all(tmp_path)
    assert [p.name for p in made] == ["peers.png", "growth.png", "levels.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in made)


def test_the_last_result_counts():
    pytest.importorskip("matplotlib")
    import plot

    old, new, other = {"k": 1, "v": 1}, {"k": 1, "v": 2}, {"k": 2, "v": 3}
    assert plot.latest([old, other, new], "k") == [new, other]
