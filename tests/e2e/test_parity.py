# Copyright 2026, the gpu_exact contributors
"""The parity measurement: what it counts as proof, shown by faults that are planted."""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
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


def run_main(monkeypatch: pytest.MonkeyPatch, folder: Path, *more: str) -> int:
    arguments = ["--problems", "1", "--large", "0", "--jobs", "1", "--out", str(folder)]
    monkeypatch.setattr(sys, "argv", ["parity.py", *arguments, *more])
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


def make_table(folder: Path) -> str:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    (folder / "small").mkdir(parents=True)
    file = folder / "small/data.npz"
    np.savez(file, X=X, y=X[:, 0] * X[:, 1] + rng.standard_normal(300))
    return str(file)


@pytest.mark.parametrize("partly", [False, True])
def test_what_is_not_run_is_said(
    builder: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    partly: bool,
) -> None:
    """A route cannot be run, and there are no tables."""
    monkeypatch.setattr(parity, "source_hash", lambda _: gpu_exact.source_hash())
    monkeypatch.setattr(parity, "cuda_context_reason", lambda: "planted")
    assert run_main(monkeypatch, tmp_path, *["--partly"] * partly) == (not partly)
    result = json.loads((tmp_path / "parity.json").read_text())
    assert result["problems"].keys() == {"take_over", "by_name"}
    assert result["not_run"] == {"cuda": "planted", "cuda_by_name": "planted"}
    assert all(counts["trees"] > 0 for counts in result["problems"].values())
    assert all(f"Not run: {r}: " in (tmp_path / "parity.md").read_text() for r in result["not_run"])
    said = capsys.readouterr().out
    assert "Not compared: random problems by cuda: planted.\n" in said
    assert "Not compared: tables: " in said


def test_runs_compare_all_together() -> None:
    counted = dict.fromkeys(parity.ROUTES, {"number": 9})
    assert parity.not_compared({"problems": counted, "not_run": {}, "tables": [{}]}) == []
    counted["cuda, large"] = counted.pop("cuda")
    assert parity.not_compared({"problems": counted, "not_run": {}, "tables": [{}]}) == []
    counted["by_name"] = {"number": 0}
    found = parity.not_compared({"problems": counted, "not_run": {}, "tables": []})
    assert ["by by_name: not run." in found[0], "tables" in found[1], len(found)] == [True, True, 2]


@pytest.mark.parametrize(
    "lacking", ["", "reg_lambda", "reg_alpha", "min_child_weight", "max_delta_step"]
)
def test_regularisation_takes_part_in_tables(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: str
) -> None:
    """A plugin that ignores one of these has other trees."""
    booster = xgb.Booster

    def without(params: dict, cache: list[xgb.DMatrix]) -> xgb.Booster:
        own = "seed" in params  # the plugin's side of a comparison
        return booster({k: v for k, v in params.items() if not own or k != lacking}, cache)

    monkeypatch.setattr(parity.xgb, "Booster", without)
    row = parity.run_table(parity.TableTask(make_table(tmp_path), 4, True, 3, 60, 1))
    assert bool(row["trees"]["different"]) == bool(lacking), row
