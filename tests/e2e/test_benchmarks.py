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
import xgboost_gpu_exact as gpu_exact
from sklearn.metrics import log_loss, ndcg_score

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "datasets")]

import cases  # noqa: E402
import measure  # noqa: E402
import metrics  # noqa: E402
import synthetic  # noqa: E402
import systems  # noqa: E402
import train  # noqa: E402

import device  # noqa: E402

FIELDS = (
    "system strategy shape rows columns entries max_depth iterations counted ms_per_tree "
    "ms_per_tree_quartiles ms_per_tree_first set_up_s load_s metric metric_value peak_device_mib "
    "device driver source_hash"
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
    assert sizes["bosch1600"] == sizes["bosch"]
    assert sizes["epsilon"] == (400_000, 6, "binary:logistic")
    assert sizes["year"] == (463_715, 8, "reg:squarederror")
    assert sizes["covtype"] == (581_012, 8, "multi:softprob")
    assert sizes["gisette"] == (6_000, 6, "binary:logistic")
    assert sizes["airline"] == (20_000_000, 8, "binary:logistic")
    assert sizes["criteo"] == (10_000_000, 8, "binary:logistic")
    assert sizes["tall"] == (50_000_000, 6, "reg:squarederror")
    assert sizes["noise"] == (10_000_000, 8, "binary:logistic")
    series = ("growth", "other")
    assert {c.name for c in train.parse([]).cases} == {n for n in sizes if not n.startswith(series)}
    assert [c.rows for c in cases.select(["small"])] == [1_000, 10_000, 100_000]
    assert [c.rows for c in cases.select(["growth-rows"])] == [10**p for p in range(4, 9)]
    assert [c.max_depth for c in cases.select(["growth-depth"])] == [4, 8, 12, 16]
    assert {c.columns for c in cases.select(["growth-features"])} >= {4, 4096}
    assert {c.distinct for c in cases.select(["growth-distinct"])} >= {2, None}
    assert {c.missing for c in cases.select(["growth-missing"])} >= {0.0, 0.99}
    others = cases.select(["other"])
    assert {p for c in others for p, _ in c.params} >= {"monotone_constraints", "subsample"}
    assert any(c.a_row for c in others) and any(c.ones for c in others)


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
    assert second._replace(params=(("subsample", 0.5),)).same_table(first)
    assert not second._replace(a_row=3).same_table(first)


def test_a_case_may_have_parameters_of_its_own():
    case = cases.select(["other-step"])[0]
    system = systems.XGBoost({"tree_method": "hist"})
    system.load(synthetic.dense(200, 20), case, 1)
    assert '"max_delta_step":"0.1' in system._booster.save_config()
    job = {"system": "lightgbm_gpu", "strategy": "auto", "case": case._asdict()}
    assert "parameters" in measure.answer_of(job)["skipped"]


@pytest.mark.parametrize("shape", ["higgs", "bosch", "yltr", "news20", "criteo"])
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
    ones = synthetic.sparse(2_000, 100, 20, ones=True).X
    assert set(ones.data) == {1.0} and np.diff(ones.indptr).max() <= 20
    assert all(np.all(np.diff(row.indices) > 0) for row in ones[:50])
    often = np.bincount(ones.indices, minlength=100)
    assert often[:10].sum() > 2 * often[50:60].sum() > 0
    assert len(np.unique(synthetic.sparse(2_000, 100, 20).X.data)) > 10_000
    few = synthetic.dense(5_000, 3, distinct=16, missing=0.5).X
    assert all(len(np.unique(c[~np.isnan(c)])) == 16 for c in few.T)
    assert 0.45 < np.isnan(few).mean() < 0.55


def distinct_values(X):
    return np.array([len(np.unique(c[~np.isnan(c)])) for c in X.T])


def test_bosch_with_twice_the_values():
    X = synthetic.bosch1600(40_000).X
    assert 0.80 < np.isnan(X).mean() < 0.82
    present = X[~np.isnan(X)]
    np.testing.assert_array_equal(np.unique(np.round(present * 1000)), np.arange(-800, 801))


def test_epsilon():
    X, y, _ = synthetic.make("epsilon", 5_000)
    assert X.shape == (5_000, 2_000) and 0.45 < y.mean() < 0.55
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-5)
    assert distinct_values(X).min() > 4_980
    low, high = X[y == 0], X[y == 1]
    shift = np.abs(high.mean(axis=0) - low.mean(axis=0)) * np.sqrt(2_000 * 5_000 / 4)
    assert 20 < np.sum(shift > 4) <= 60  # standard errors


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


def test_a_permutation_meets_every_number_once():
    key = synthetic._keys(np.random.default_rng(0), 1)[0]
    for bits in (2, 5, 16):
        numbers = np.arange(1 << bits, dtype=np.uint32)
        met = synthetic._permute(numbers.copy(), bits, key)
        assert sorted(met) == list(numbers) and (bits < 5 or np.any(met != numbers))


def test_covtype():
    X, y, _ = synthetic.make("covtype", 200_000)
    assert X.shape == (200_000, 54)
    np.testing.assert_array_equal(X, np.round(X))
    n = distinct_values(X)
    assert n[[1, 2, 3, 4, 6, 7, 8]].tolist() == [361, 67, 551, 700, 207, 185, 255]
    assert 1_900 < n[0] <= 1_978 and 5_000 < n[5] <= 5_785 and 5_000 < n[9] <= 5_827
    assert np.all(n[10:] == 2) and np.all(X[:, 10:14].sum(axis=1) == 1)
    assert np.all(X[:, 14:].sum(axis=1) == 1)
    shares = np.bincount(y.astype(int)) / len(y)
    np.testing.assert_allclose(shares, [0.365, 0.488, 0.062, 0.005, 0.016, 0.030, 0.034], atol=0.02)


def test_gisette():
    X, y, _ = synthetic.make("gisette")
    assert X.shape == (6_000, 5_000) and not np.isnan(X).any() and 0.4 < y.mean() < 0.6
    assert 0.12 < np.mean(X != 0) < 0.14
    assert 760 < distinct_values(X[:, ::100]).mean() < 800


def test_airline():
    X, y, _ = synthetic.make("airline", 200_000)
    assert distinct_values(X).tolist()[:7] == [12, 31, 7, 1_440, 22, 300, 300]
    assert 3_900 < distinct_values(X)[7] <= 4_000
    np.testing.assert_array_equal(X, np.floor(X))
    assert X.min() == 0 and 0.15 < y.mean() < 0.25


def test_criteo():
    X, y, _ = synthetic.make("criteo", 200_000)
    count, code = X[:, :13], X[:, 13:]
    missing = np.isnan(X).mean(axis=0)
    assert np.all(missing[13:] == 0) and missing[1] == 0
    assert 0.44 < missing[0] < 0.46 and 0.76 < missing[11] < 0.78
    assert np.nanmin(count) == 0 and np.nanmax(count) > 100 * np.nanmedian(count)
    np.testing.assert_array_equal(code, np.floor(code))
    n = distinct_values(code)
    assert n[0] <= 4 and n[-1] > 50_000 and 900_000 < code.max() < 2**20
    commonest = np.unique(code[:, -1], return_counts=True)[1].max()
    assert commonest > 1_000  # of 200,000 rows; evenly it would be one or two
    assert 0.2 < y.mean() < 0.35


def test_noise_has_nothing_to_find():
    X, y, _ = synthetic.make("noise", 200_000)
    z = X - X.mean(axis=0)
    correlation = np.abs((y - y.mean()) @ z / len(y) / y.std())
    assert 0.49 < y.mean() < 0.51 and correlation.max() < 0.012
    products = np.abs((y - y.mean()) @ (z[:, :-1] * z[:, 1:]) / len(y) / y.std())
    assert products.max() < 0.012


# A block and some rows of each shape that is narrow enough to be made twice in a moment.
NARROW = ["higgs", "year", "covtype", "airline", "criteo", "tall", "noise"]


@pytest.mark.parametrize("shape", NARROW)
def test_a_table_does_not_depend_on_threads(shape, monkeypatch):
    rows = synthetic.BLOCK_ROWS + 10
    wide = synthetic.make(shape, rows, seed=3)
    monkeypatch.setattr(synthetic.os, "cpu_count", lambda: 1)
    narrow = synthetic.make(shape, rows, seed=3)
    np.testing.assert_array_equal(wide.X, narrow.X)
    np.testing.assert_array_equal(wide.y, narrow.y)


@pytest.mark.parametrize("shape", NARROW)
def test_fewer_rows_are_the_first_blocks_of_more(shape):
    some = synthetic.make(shape, synthetic.BLOCK_ROWS)
    more = synthetic.make(shape, synthetic.BLOCK_ROWS + 10)
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


def test_logloss():
    y = np.array([0, 1, 1, 0], np.float32)
    p = np.array([0.2, 0.9, 0.4, 0.5], np.float32)
    assert metrics.evaluate("logloss", y, p, None) == pytest.approx(log_loss(y, p), rel=1e-7)
    assert metrics.untrained("logloss", y, None) == pytest.approx(np.log(2))


def test_losses_of_classes_and_of_values():
    y = np.array([0, 2, 1, 2], np.float32)
    p = np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]], np.float32)
    assert metrics.evaluate("mlogloss", y, p, None) == pytest.approx(log_loss(y, p), rel=1e-6)
    assert metrics.untrained("mlogloss", y, None) == pytest.approx(np.log(3))
    assert metrics.evaluate("rmse", y, y + np.float32(0.5), None) == pytest.approx(0.5)
    assert metrics.untrained("rmse", y, None) == pytest.approx(np.std(y))


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
        ("mlogloss", 0.5, 0.501, "not the 0.501 of XGBoost's exact"),
        ("rmse", 0.5, 0.5000001, None),
        ("rmse", 0.7, None, "no better than 0.69"),
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
    assert laps.seconds == [6.0] * 6  # five count, whatever they take
    assert laps.first == laps.last == [6.0] * 5
    laps = systems.Laps(iterations=3, budget_s=10.0, warm_up=2)
    assert (laps.least, laps.most) == (7, 7)
    laps = systems.Laps(iterations=50, budget_s=10.0, warm_up=2)
    while laps.more:
        laps.seconds.append(1.0)
    assert len(laps.seconds) == 10  # cut off
    assert (laps.affordable(0.01), laps.affordable(1.0), laps.affordable(100.0)) == (50, 10, 7)


def test_early_and_late_trees_are_told_apart():
    laps = systems.Laps(iterations=100, budget_s=1e9, warm_up=2)
    while laps.more:
        laps.seconds.append(float(100 - len(laps.seconds)))
    assert len(laps.seconds) == 100  # 100, 99, then 98 down to 1
    assert laps.first == list(range(98, 78, -1)) and laps.last == list(range(20, 0, -1))
    assert laps.set_up_s == 100 - 88.5


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


def test_a_module_of_other_sources_is_not_timed(builder, tmp_path):
    """Else its times would be taken for those of the sources that lie here."""
    case = cases.select(["small-1000"])[0]._replace(max_depth=2)
    cases.save(case.make(), tmp_path)
    job = {"system": "gpu_exact_cpu_context", "strategy": "auto", "case": case._asdict()}
    job |= {"folder": str(tmp_path), "entries": 28_000, "threads": 1, "iterations": 5}
    job |= {"budget_s": 0.0, "source_hash": gpu_exact.source_hash()}
    answer = train.run_apart(job, 300)
    assert answer["line"]["source_hash"] == job["source_hash"], answer
    answer = train.run_apart(job | {"source_hash": "of today"}, 300)
    assert "is built of other sources" in answer["failed"]


def test_a_run_of_all_systems(tmp_path):
    """Each is measured, or skipped with a reason; what is measured has every field."""
    out = tmp_path / "out.jsonl"
    command = [sys.executable, ROOT / "benchmarks/train.py", "--shapes", "small-1000"]
    command += ["--iterations", "30", "--max-depth", "3", "--threads", "2", "--out", out]
    command += ["--strategy", "sort", "--budget", "60"]
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
    assert exact["iterations"] == 30 and exact["counted"] == 20 and exact["max_depth"] == 3
    assert exact["ms_per_tree"] > 0 and exact["ms_per_tree_first"] > 0
    low, high = exact["ms_per_tree_quartiles"]
    assert low <= exact["ms_per_tree"] <= high


@pytest.mark.parametrize("shape", ["year", "covtype", "noise", "criteo"])
def test_a_run_of_each_objective(shape, tmp_path):
    out = tmp_path / "out.jsonl"
    arguments = ["--shapes", shape, "--rows", "2000", "--max-depth", "3", "--threads", "2"]
    arguments += ["--budget", "0", "--systems", "xgb_exact_cpu", "--out", str(out)]
    session = train.Session(options := train.parse(arguments))
    session.run_all(options.cases)
    assert (session.written, session.failed) == (1, 0)
    line = json.loads(out.read_text())
    assert (line["iterations"], line["counted"]) == (6, 5)
    assert line["metric"] == synthetic.SHAPES[shape].metric


def tiny_run(system, shape):
    """One of the peers on the CPU: their programs are the same but for the device."""
    table, case = synthetic.make(shape, 2_000), cases.select([shape])[0]
    laps = systems.Laps(iterations=8, budget_s=60.0, warm_up=2)
    system.load(table, case._replace(max_depth=3), 2)
    system.train(laps, lambda: None)
    value = metrics.evaluate(case.metric, table.y, laps.prediction, table.qid)
    assert len(laps.seconds) == 8 and all(s >= 0 for s in laps.seconds)
    baseline = metrics.untrained(case.metric, table.y, table.qid)
    assert metrics.objection(case.metric, value, baseline, None) is None


# Each objective.
PEER_SHAPES = ["higgs", "yltr", "year", "covtype"]


@pytest.mark.parametrize("quantile", [False, True])
@pytest.mark.parametrize("shape", PEER_SHAPES)
def test_hist(shape, quantile):
    tiny_run(systems.XGBoost({"tree_method": "hist", "max_bin": 64}, quantile=quantile), shape)


@pytest.mark.parametrize("shape", PEER_SHAPES)
def test_lightgbm(shape):
    pytest.importorskip("lightgbm")
    tiny_run(systems.LightGBM("cpu"), shape)


@pytest.mark.parametrize("shape", PEER_SHAPES)
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
    shapes.append("other-ones")  # in no picture
    runs = [run | {"system": "gpu_exact_cuda", "shape": shape} for shape in shapes]
    runs.append(runs[0] | {"device": "another GPU", "strategy": "sort"})  # is in no picture
    (tmp_path / "train-x.jsonl").write_text("\n".join(map(json.dumps, runs)))
    assert [p.name for p in plot.draw_all(tmp_path)] == ["peers.png", "growth.png"]
    assert [r["shape"] for r in plot.plain(runs[:-1])] == ["higgs", "small-1000"]
    assert "other-ones" in plot.peers_table([r for r in runs if plot.is_other(r)])
    levels = run | {"bench": "levels", "shape": "higgs", "interleaved_levels": 3}
    others = [run | {"bench": "depths"}, levels | {"device": "another", "strategy": "histogram"}]
    (tmp_path / "builder-x.jsonl").write_text("\n".join(map(json.dumps, [levels, *others])))
    made = plot.draw_all(tmp_path)
    assert [p.name for p in made] == ["peers.png", "growth.png", "levels.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in made)


def test_the_last_result_counts():
    pytest.importorskip("matplotlib")
    import plot

    old, new, other = {"k": 1, "v": 1}, {"k": 1, "v": 2}, {"k": 2, "v": 3}
    assert plot.latest([old, other, new], "k") == [new, other]


def test_tables_of_results(tmp_path):
    pytest.importorskip("matplotlib")
    import plot

    line = dict.fromkeys(FIELDS, 1) | {"shape": "tall", "rows": 5_000, "columns": 10}
    line |= {"strategy": None, "iterations": 75, "set_up_s": 0.25, "max_depth": 6, "counted": 20}
    runs = [
        line | {"system": "gpu_exact_cuda", "ms_per_tree": 3.0, "ms_per_tree_first": 2.0},
        line | {"system": "xgb_hist_gpu_256", "ms_per_tree": 5.0},
        line | {"system": "xgb_hist_gpu_256_dmatrix", "ms_per_tree": 4.0},
        line | {"system": "xgb_exact_cpu", "ms_per_tree": 900.0, "iterations": 2, "counted": 1},
        line | {"system": "lightgbm_gpu", "ms_per_tree": 8.0, "iterations": 7, "counted": 4},
    ]
    (tmp_path / "train-x.jsonl").write_text("\n".join(map(json.dumps, runs)))
    runs = plot.read_runs(tmp_path)
    assert plot.peers_table(runs).splitlines()[2] == (
        "| tall | 5,000 x 10 | 6 | 75% | 3 | 4 | 8 (4 rounds) | 900 (1 round) |"
    )
    assert plot.rounds_table(runs).splitlines()[2] == (
        "| tall | 5,000 x 10 | 6 | 2 | 3 | 75 | 0.25 | 1 | 4 | 75 | 0.25 |"
    )
    for run in runs:  # of before those fields
        del run["ms_per_tree_first"], run["set_up_s"], run["counted"]
    assert plot.rounds_table(runs) == "" and "75%" in plot.peers_table(runs)
    assert [plot.counted(run) for run in runs] == [73, 73, 1, 5]  # what warms up is taken off


def test_tables_are_drawn_of_the_results_that_there_are():
    pytest.importorskip("matplotlib")
    import plot

    runs = plot.read_runs(ROOT / "benchmarks/results")
    rows = [plot.peers_table(runs).splitlines(), plot.growth_table(runs).splitlines()]
    assert all(len({row.count("|") for row in table}) == 1 for table in rows)
