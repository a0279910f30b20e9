# Copyright 2026, the gpu_exact contributors
"""The parity measurement: what it counts as proof, shown by faults that are planted."""

import contextlib
import json
import sys
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact
from oracle import NO_GPU, TAKE_OVER, run_python
from problems import assert_equals_stock

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import parity  # noqa: E402
import problems  # noqa: E402

WITHOUT_A_GPU = """
import json, sys
sys.path.insert(0, "..")
import parity
print(json.dumps(parity.run_problems("take_over", 0, 3, False)))
"""


@pytest.mark.parametrize("large", [False, True])
def test_trees_are_counted(builder: str, large: bool) -> None:
    row = parity.run_problems("take_over", 0, 2, large)
    assert row["failures"] == {} and row["trees"] >= row["problems"] == 2
    strategies = ("",) if builder.startswith("reference") else (" sort", " histogram")
    assert sum(row["grown_by"].get(builder + strategy, 0) for strategy in strategies) == 2


def test_without_a_gpu_every_problem_fails(gpu_module: None) -> None:
    row = json.loads(run_python(WITHOUT_A_GPU, **NO_GPU))
    assert len(row["failures"]) == row["problems"] == 3 and row["trees"] == 0


def test_trees_that_grew_elsewhere_are_no_proof(
    builder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="trees grew on the GPU and 0 on the CPU"):
        assert_equals_stock(0, TAKE_OVER, on_gpu=False)
    last_run = gpu_exact.last_run()
    monkeypatch.setattr(gpu_exact, "last_run", lambda: last_run)  # as if XGBoost had grown them
    assert "0 trees grew on the GPU" in parity.run_problems("take_over", 0, 1, False)["failures"][0]


def test_a_judge_that_is_the_plugin_is_none(builder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if take_over(False) did nothing: both sides would agree."""
    monkeypatch.setattr(problems, "stock", contextlib.nullcontext)
    failures = parity.run_problems("take_over", 0, 1, False)["failures"]
    assert "trees grew on the GPU and 0 on the CPU in its place, not 0 and 0" in failures[0]


def run_main(monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    arguments = ["--problems", "1", "--large", "0", "--jobs", "1", "--out", str(folder)]
    monkeypatch.setattr(sys, "argv", ["parity.py", *arguments])
    return parity.main()


def test_a_module_of_other_sources_is_not_compared(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(parity, "source_hash", lambda _: "of today")
    assert run_main(monkeypatch, tmp_path) == 1
    assert "not built of these sources" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_no_gpu_is_no_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    none = gpu_exact.DeviceStatus(False, "No NVIDIA GPU is visible.")
    monkeypatch.setattr(gpu_exact, "device_status", lambda: none)
    monkeypatch.setattr(parity, "source_hash", lambda _: gpu_exact.source_hash())
    assert run_main(monkeypatch, tmp_path) == 1
    assert "Nothing is compared: both sides would be XGBoost's own" in capsys.readouterr().out


def test_what_is_not_run_is_said(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parity, "source_hash", lambda _: gpu_exact.source_hash())
    assert run_main(monkeypatch, tmp_path) == 0
    result = json.loads((tmp_path / "parity.json").read_text())
    assert result["problems"].keys() | result["not_run"].keys() == parity.ROUTES.keys()
    assert all(counts["trees"] > 0 for counts in result["problems"].values())
    assert all(f"Not run: {r}: " in (tmp_path / "parity.md").read_text() for r in result["not_run"])
