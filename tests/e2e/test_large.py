# Copyright 2026, the gpu_exact contributors
"""The benchmark of a table that fills the host, or several GPUs: its rows, what its line says."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def line_of_a_run(tmp_path: Path, *options: str) -> dict:
    out = tmp_path / "large.jsonl"
    command = [sys.executable, ROOT / "benchmarks/large.py", "--device", "cpu", "--out", out]
    command += ["--entries", "5000", "--columns", "5", "--rounds", "2", "--max-depth", "3"]
    command += ["--threads", "2", "--cache", tmp_path, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = json.loads(out.read_text())
    assert (line["rows"], line["columns"], line["gpu_trees"]) == (1000, 5, 2)
    assert line["s_per_tree"] > 0
    return line


def test_a_small_run(builder: str, tmp_path: Path) -> None:
    """Three batches, the last one shorter than the others."""
    line = line_of_a_run(tmp_path, "--batch", "2000")
    assert line["workers"] == 1 and line["page_bytes"] > 8 * 5000
    assert [file.name for file in tmp_path.iterdir()] == ["large.jsonl"]  # no page is left


def test_two_workers(builder: str, tmp_path: Path) -> None:
    """Each makes its part of the rows."""
    line = line_of_a_run(tmp_path, "--workers", "2")
    assert line["workers"] == 2 and "page_bytes" not in line
