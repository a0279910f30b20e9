# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The benchmark of several GPUs: how rows are divided, and what counts as identical."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "datasets")]

import scale  # noqa: E402
from synthetic import Table  # noqa: E402


@pytest.mark.parametrize("n_workers", [1, 3, 7])
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


def test_what_is_identical():
    assert scale.same_trees(["a", "b"], ["a", "b", "c"])
    assert not scale.same_trees(["a", "c"], ["a", "b", "c"])
    assert not scale.same_trees([], ["a"])


def test_a_small_run(builder, tmp_path):
    """One process and two, whose lines say what they are of; one GPU comes first, as the judge."""
    out = tmp_path / "scale.jsonl"
    command = [sys.executable, ROOT / "benchmarks/scale.py", "--device", "cpu", "--out", out]
    command += ["--shapes", "small-1000", "--gpus", "2", "--ordinals", "0,0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    assert [(e["system"], e["gpus"], e["mode"]) for e in lines] == [
        ("gpu_exact", 1, "devices"),
        ("gpu_exact", 1, "processes"),
        ("gpu_exact", 2, "devices"),
        ("gpu_exact", 2, "processes"),
        ("xgb_hist_gpu_256", 1, "processes"),
        ("xgb_hist_gpu_256", 2, "processes"),
    ]
    assert all(e["shape"] == "small-1000" and e["rows"] == 1000 for e in lines)
    assert all(e["ms"] > 0 and e["commit"] for e in lines)
    assert all(e["identical"] and e["peak_mib"] >= 0 for e in lines[:4])
