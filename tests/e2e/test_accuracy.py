# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The study of accuracy: fair splits, runs of every task, and what is called noise."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import accuracy  # noqa: E402
import tables as of_results  # noqa: E402


def save(folder: Path, name: str, X: object, y: np.ndarray, **more: np.ndarray) -> Path:
    (folder / name).mkdir()
    if sp.issparse(X):
        more |= {"indptr": X.indptr, "indices": X.indices, "data": X.data, "shape": X.shape}
    else:
        more["X"] = X
    np.savez(folder / name / "data.npz", y=y, **more)
    return folder / name / "data.npz"


@pytest.fixture
def tables(tmp_path):
    """One of each task."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 3)).astype(np.float32)
    X[::7, 1] = np.nan
    score = X[:, 0] + 0.1 * rng.standard_normal(240)
    save(tmp_path, "binary", X, np.where(score > 0, 7, 3))
    save(tmp_path, "classes", X, np.digitize(score, [-0.5, 0.5]))
    save(tmp_path, "regression", X, score)
    sparse = sp.random(240, 50, 0.1, format="csr", random_state=0, dtype=np.float32)
    labels = np.digitize(score, [-0.5, 0.5])
    save(tmp_path, "ranking", sparse, labels, qid=rng.permutation(np.repeat(np.arange(24), 10)))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "objective", "classes", "most"),
    [
        ("binary", "binary:logistic", 1, 240),
        ("classes", "multi:softprob", 3, 240),
        ("regression", "reg:squarederror", 1, 240),
        ("ranking", "rank:ndcg", 1, None),
    ],
)
def test_what_is_learnt_follows_the_label(tables, name, objective, classes, most):
    task = accuracy.load(tables / name / "data.npz")
    assert (task.objective, task.classes) == (objective, classes)
    assert most in (None, task.most_values())
    assert name != "binary" or set(np.unique(task.y)) == {0, 1}
    assert task.entries == (task.X.nnz if sp.issparse(task.X) else 3 * 240 - 35)


@pytest.mark.parametrize("name", ["binary", "ranking"])
def test_rows_held_out_are_not_learnt(tables, name):
    task = accuracy.load(tables / name / "data.npz")
    numbered = task._replace(y=np.arange(240, dtype=np.float32))
    first = accuracy.split(numbered, 0)
    ids = [set(part.y) for part in first]
    assert len(ids[0] | ids[1]) == 240 and not ids[0] & ids[1] and len(ids[1]) == 60
    assert set(accuracy.split(numbered, 1)[1].y) != ids[1]
    assert set(accuracy.split(numbered, 0)[1].y) == ids[1]
    if name == "ranking":
        assert not set(first[0].qid) & set(first[1].qid)


def test_a_study(tables, tmp_path, monkeypatch):
    out = tmp_path / "accuracy.jsonl"
    monkeypatch.setattr(accuracy, "SEEDS", 2)
    monkeypatch.setattr(accuracy, "ROUNDS", 4)
    monkeypatch.setitem(accuracy.SHARED, "max_depth", 2)
    assert accuracy.main([str(tables), "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    runs = {(r["table"], r["seed"], r["system"]) for r in lines}
    assert len(runs) == len(lines) == 4 * 2 * len(accuracy.SYSTEMS)
    for r in lines:
        assert r["commit"] and r["xgboost"]
        assert (r["rounds"], r["max_depth"], r["rows"]) == (4, 2, 240)
        untrained = {"binary": np.log(2), "classes": np.log(3), "regression": 1.1, "ranking": 0.6}
        assert 0 < r["loss_test"] < untrained[r["table"]]
    # 180 different values: 256 bins have one each, and find the splits of exact.
    trained = {(r["table"], r["seed"], r["system"]): r["loss_train"] for r in lines}
    for seed in (0, 1):
        own = trained["regression", seed, "xgb_exact_cpu"]
        assert trained["regression", seed, "xgb_hist_cpu_256"] == pytest.approx(own, rel=1e-6)
        assert trained["regression", seed, "xgb_hist_cpu_64"] != pytest.approx(own, rel=1e-6)


def test_a_made_table(tmp_path, monkeypatch):
    for name, value in {"SEEDS": 1, "ROUNDS": 2, "ROWS_MADE": 400}.items():
        monkeypatch.setattr(accuracy, name, value)
    out = tmp_path / "out.jsonl"
    assert accuracy.main(["--shape", "segments", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [r["system"] for r in lines] == list(accuracy.SYSTEMS)
    assert {(r["table"], r["rows"], r["columns"], r["metric"]) for r in lines} == {
        ("segments", 400, 8, "logloss")
    }
    with pytest.raises(SystemExit):
        accuracy.main([])


def line(table, system, seed, loss):
    return {
        "table": table, "system": system, "seed": seed, "loss_test": loss, "metric": "rmse",
        "rows": 1_000, "columns": 3, "most_values": 70, "xgboost": "3", "date": "today", "commit": "abc",
    }  # fmt: skip


def study(**losses):
    """Of each table: losses of exact by split, and factors of the three numbers of bins."""
    lines = []
    for table, (exact, *factors) in losses.items():
        for seed, own in enumerate(exact):
            lines.append(line(table, "xgb_exact_cpu", seed, own))
            for system, by_seed in zip(list(accuracy.SYSTEMS)[1:], factors, strict=True):
                lines.append(line(table, system, seed, own * by_seed[seed]))
    return lines


def test_noise_is_called_noise():
    # Splits differ more than systems do: only the pairs tell.
    lines = study(
        steady=([1.0, 2.0, 3.0], [1.021, 1.020, 1.019], [0.97, 0.97, 0.971], [1.0, 1.0, 1.0]),
        noisy=([2.0, 2.0, 2.0], [1.05, 0.97, 1.1], [1.01, 0.99, 1.0], [1.0, 1.0, 1.0]),
    )
    assert of_results.accuracy(lines).splitlines()[2:4] == [
        "| noisy | 1,000 x 3 | 70 | rmse | 2 | +4.00%, noise | +0.00%, noise | same |",
        "| steady | 1,000 x 3 | 70 | rmse | 2 | **+2.00%** | **-2.97%** | same |",
    ]
    assert of_results.bins(lines).splitlines()[2:5] == [
        "| 64 bins | 1 (up to 2% more) | 0 | 1 |",
        "| 256 bins | 0 | 1 | 1 |",
        "| 4,096 bins | 0 | 0 | 2 |",
    ]
