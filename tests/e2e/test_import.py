# Copyright 2026, the gpu_exact contributors
"""``import xgboost_gpu_exact`` in processes of its own: the order, the switch, the errors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import xgboost_gpu_exact

TRAIN = """
import numpy as np
X = np.arange(8, dtype=np.float32).reshape(8, 1)
params = {"tree_method": "exact", "gpu_exact_interleaved_levels": 99}  # only we know: out of range
xgb.train(params, xgb.DMatrix(X, X[:, 0]), 1)
"""


def error_of(code: str, **env: str) -> str:
    """Run a script; gives its traceback, empty where there is none."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    env = os.environ | env
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    assert (done.returncode != 0) == ("Traceback" in done.stderr), done.stderr
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    "order", ["xgboost as xgb, xgboost_gpu_exact", "xgboost_gpu_exact, xgboost as xgb"]
)
def test_takes_over_in_either_order(order):
    error = error_of(f"import {order}{TRAIN}")
    assert "value 99 for Parameter gpu_exact_interleaved_levels" in error


def test_switches():
    load = "import xgboost as xgb, xgboost_gpu_exact as gpu_exact\n"
    assert not error_of(load + TRAIN, XGBOOST_GPU_EXACT_TAKEOVER="0")
    assert not error_of(load + "gpu_exact.take_over(False)\n" + TRAIN)


def test_device_status_says_why():
    code = "import xgboost_gpu_exact as g\nusable, text = g.device_status()\n"
    assert not error_of(code + "assert isinstance(usable, bool) and text")


def test_without_xgboost():
    code = "import sys\nsys.modules['xgboost'] = None\nimport xgboost_gpu_exact"
    assert error_of(code).endswith(
        "ImportError: xgboost_gpu_exact needs XGBoost 3.4.1: `pip install xgboost-cpu==3.4.1` or "
        "`pip install xgboost==3.4.1` (with CUDA).\n"
    )


def test_other_xgboost(tmp_path):
    (tmp_path / "xgboost.py").write_text("__version__ = '3.2.0'\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert (
        "ImportError: xgboost_gpu_exact works with XGBoost 3.4.1 only, and 3.2.0 is installed: "
        in error_of("import xgboost_gpu_exact", PYTHONPATH=path)
    )


def test_module_that_cannot_be_loaded(tmp_path):
    missing = str(tmp_path / "absent.so")
    error = error_of("import xgboost_gpu_exact", GPU_EXACT_MODULE=missing)
    assert f"ImportError: {missing} cannot be loaded: " in error


def test_r_has_the_same_versions():
    root = Path(__file__).resolve().parents[2]
    description = (root / "plugin/R/DESCRIPTION").read_text()
    (version,) = re.findall(r"^Version: (.*)$", description, re.MULTILINE)
    (least,) = re.findall(r"^Imports: xgboost \(>= ([\d.]*)\)", description, re.MULTILINE)
    assert (version, least) == (xgboost_gpu_exact.__version__, xgboost_gpu_exact._XGBOOST)
    assert f"version={least}\n" in (root / "tests/r/run_tests.sh").read_text()
