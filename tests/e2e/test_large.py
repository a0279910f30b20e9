# Copyright 2026, the gpu_exact contributors
"""The benchmark of one table that fills the host: its rows, and what its line says."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_run(builder: str, tmp_path: Path) -> None:
    """Three batches, the last one shorter than the others."""
    out = tmp_path / "large.jsonl"
    command = [sys.executable, ROOT / "benchmarks/large.py", "--device", "cpu", "--out", out]
    command += ["--entries", "5000", "--columns", "5", "--batch", "2000", "--rounds", "2"]
    command += ["--max-depth", "3", "--threads", "2", "--cache", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = json.loads(out.read_text())
    assert (line["rows"], line["columns"], line["gpu_trees"]) == (1000, 5, 2)
    assert line["page_bytes"] > 8 * 5000 and line["s_per_tree"] > 0
    assert [file.name for file in tmp_path.iterdir()] == ["large.jsonl"]  # no page is left
