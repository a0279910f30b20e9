# Copyright 2026, the gpu_exact contributors
"""The benchmark of several GPUs: how rows are divided, what counts as identical, and its model."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "datasets")]

import scale  # noqa: E402
import scale_model  # noqa: E402
from synthetic import Table  # noqa: E402


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7])
@pytest.mark.parametrize("with_queries", [False, True])
def test_every_row_has_one_worker(n_workers, with_queries):
    qid = np.sort(np.random.default_rng(1).integers(0, 5, 50)) if with_queries else None
    table = Table(np.arange(100).reshape(50, 2), np.arange(50), qid)
    parts = [scale.part_of(table, rank, n_workers) for rank in range(n_workers)]
    assert np.array_equal(np.concatenate([p.X for p in parts]), table.X)
    assert np.array_equal(np.concatenate([p.y for p in parts]), table.y)
    if with_queries:
        queries = [set(p.qid.tolist()) for p in parts]
        assert sum(map(len, queries)) == len(set.union(*queries)) == 5


def test_one_gpu_is_the_judge():
    runs = scale.planned([2], ["devices", "processes"], [scale.EXACT, scale.HIST])
    assert [(r["system"], r["gpus"], r["mode"]) for r in runs] == [
        (scale.EXACT, 1, "devices"),
        (scale.EXACT, 1, "processes"),
        (scale.EXACT, 2, "devices"),
        (scale.EXACT, 2, "processes"),
        (scale.HIST, 1, "processes"),
        (scale.HIST, 2, "processes"),
    ]
    assert scale.same_trees(["a", "b"], ["a", "b", "c"])
    assert not scale.same_trees(["a", "c"], ["a", "b", "c"])
    assert not scale.same_trees([], ["a"])


def test_a_small_run(builder, tmp_path):
    """One process, two, and Dask's two, whose lines say what they are of."""
    pytest.importorskip("xgboost.dask", reason="Dask is not installed", exc_type=ImportError)
    out = tmp_path / "scale.jsonl"
    command = [sys.executable, ROOT / "benchmarks/scale.py", "--device", "cpu", "--out", out]
    command += ["--shapes", "small-1000", "--gpus", "2", "--iterations", "3", "--budget", "0"]
    command += ["--threads", "2", "--ordinals", "0,0"]
    chosen = [["gpu_exact", "--modes", "devices,processes,dask"]]
    chosen += [["xgb_hist_gpu_256", "--modes", "processes"]]
    for arguments in chosen:
        done = subprocess.run(
            [*command, "--systems", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    assert [(e["system"], e["gpus"], e["mode"]) for e in lines] == [
        ("gpu_exact", 1, "devices"),
        ("gpu_exact", 1, "processes"),
        ("gpu_exact", 2, "devices"),
        ("gpu_exact", 2, "processes"),
        ("gpu_exact", 2, "dask"),
        ("xgb_hist_gpu_256", 1, "processes"),
        ("xgb_hist_gpu_256", 2, "processes"),
    ]
    assert all(e["shape"] == "small-1000" and e["rows"] == 1000 for e in lines)
    assert all(e["ms_per_tree"] > 0 and e["source_hash"] for e in lines)
    assert all(e["identical"] for e in lines[:5])


def test_the_model_begins_at_the_time_of_one_gpu():
    work = scale_model.Work("some", rows=1_000_000, columns=100, depth=6, one_gpu_s=0.02)
    assert work.by_columns(1) == pytest.approx(0.02)
    assert work.by_columns(2) < work.by_columns(1)
    # A column is searched by one worker, rows are moved by all.
    assert work.by_columns(100) > work.row_work + work.column_work / 100
    assert work.by_columns(150) - work.column_work / 100 > work.row_work
    one = work._replace(columns=1)
    assert one.by_columns(8) > one.by_columns(1)


def test_the_model_beside_what_was_measured(tmp_path):
    line = {"shape": "s", "rows": 10**6, "columns": 100, "max_depth": 6, "system": "gpu_exact"}
    runs = [{"gpus": 1, "ms_per_tree": 20.0}, {"gpus": 2, "ms_per_tree": 11.0}]
    file = tmp_path / "scale.jsonl"
    file.write_text("".join(json.dumps(line | run | {"mode": "devices"}) + "\n" for run in runs))
    row = scale_model.held_against(file).splitlines()[-1]
    assert row.startswith("| s | 2 | devices | 11 | 1")
    assert len(scale_model.forecast(256).splitlines()) > 4


@pytest.mark.parametrize(
    ("rows", "columns", "from_on"), [(10**8, 1, "from 2; from 2"), (10**4, 10**4, "from 186; never")]
)
def test_the_model_says_where_rows_beat_columns(rows, columns, from_on):
    work = scale_model.Work("some", rows, columns, depth=6, one_gpu_s=0.1)
    told = scale_model.crossings(256, [work], scale_model.CLUSTER).splitlines()[-1]
    assert told.startswith("| some |") and f"| {from_on} |" in told
