# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The parity measurement: what it counts as equal, shown by faults that are planted."""

import contextlib
import json
from pathlib import Path

import numpy as np
import parity
import pytest
import xgboost_gpu_exact as gpu_exact


def run_main(folder: Path) -> int:
    return parity.main(["--tables", str(folder), "--depths", "4", "--rounds", "3"])


def make_table(folder: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    (folder / "small").mkdir(parents=True)
    np.savez(folder / "small/data.npz", X=X, y=X[:, 0] * X[:, 1] + rng.standard_normal(300))


def test_a_line_a_table(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    make_table(tmp_path)
    monkeypatch.setattr(parity, "source_hash", gpu_exact.source_hash)
    assert run_main(tmp_path) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["table"], line["rows"], line["different"]) == ("small", 300, 0)
    assert line["splits_identical"] == line["splits"] > 0 and line["trees_on_gpu"] >= 6


def test_a_judge_that_is_the_plugin_is_none(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if take_over(False) did nothing: both sides would agree."""
    make_table(tmp_path)
    monkeypatch.setattr(parity, "source_hash", gpu_exact.source_hash)
    monkeypatch.setattr(parity, "stock", contextlib.nullcontext)
    with pytest.raises(AssertionError):
        run_main(tmp_path)


@pytest.mark.parametrize("why", ["other sources", "No GPU", "has no NAME"])
def test_what_proves_nothing_is_not_compared(
    builder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str
) -> None:
    hashed = "of today" if why == "other sources" else gpu_exact.source_hash()
    monkeypatch.setattr(parity, "source_hash", lambda: hashed)
    if why == "No GPU":
        none = gpu_exact.DeviceStatus(False, "No GPU is visible.")
        monkeypatch.setattr(gpu_exact, "device_status", lambda: none)
    with pytest.raises(SystemExit, match=why):
        run_main(tmp_path)
