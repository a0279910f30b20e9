# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation run, through the plugin, and say what they promise."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracle import RELEASE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "plugin/python/examples"
SHOWN = {  # values that they print; each asserts besides what it shows
    "early_stopping": r"\d+ of \d+.* 0\.\d+\n.*logloss:0\.\d+",
    "monotone": r"[\d.]+ to [\d.]+",
    "grid_search": r"'max_depth': \d.* 0\.\d+",
    "ranking": r"ndcg.*:0\.[6-9]\d+\n.*five: \[\d \d \d \d \d\]",
    "forest": r"200 trees, accuracy 0\.9\d+",
    "external_memory": r"20000 rows of 4 files\n.*logloss:0\.\d+",
    "dask_workers": r"2 workers, accuracy 0\.[89]\d+",
    "shap_and_plots": r"(\w+: [\d.]+ .*\n){3}.*Feature.*Gain\n(.*\n){3}",
}
NOTEBOOK = FOLDER / "exact_on_a_gpu.ipynb"
SHOWN_BY_NOTEBOOK = r"\n20 .*, 0 .*\n.* [\d.]+ ms\n.* 0 different\nexact: [\d.]+ .*\nhist: [\d.]+ .*\n$"


@functools.cache
def run(name: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{name}.py"), *arguments]
    fixed = {"text": True, "capture_output": True, "check": False}
    return subprocess.run(command, env=os.environ | env, **fixed)


def test_there_are_no_others():
    names = {f"{name}.py" for name in SHOWN} | {NOTEBOOK.name}
    assert {file.name for file in FOLDER.iterdir()} == names


@pytest.mark.parametrize("name", SHOWN)
def test_example(name):
    if name == "forest" and RELEASE < (3, 3):
        pytest.skip("sampling by node is refused beside XGBoost 3.2 alone")
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert re.search(SHOWN[name], done.stdout), done.stdout


def test_early_stopping_keeps_the_best_round():
    first, second = run("early_stopping").stdout.splitlines()
    best, rounds = map(int, re.findall(r"\d+", first)[:2])
    assert rounds == best + 11 and rounds < 500
    assert float(second.split(":")[-1]) == pytest.approx(float(first.split()[-1]), abs=1e-4)


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    done = run("shap_and_plots", str(tmp_path))
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.iterdir())
    assert [f.name for f in files] == ["bmi.png", "importance.png"]
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in files)


def test_notebook(builder):
    """The cells from first to last; but the module is at hand, so the first need not install it."""
    cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
    install, *others = ("".join(cell["source"]) for cell in cells)
    assert install.splitlines()[-1].startswith("%pip install ")
    command = [sys.executable, "-W", "ignore", "-c", "\n".join(others)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(SHOWN_BY_NOTEBOOK, done.stdout), done.stdout


def test_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_the_guide_names_each():
    guide = (ROOT / "plugin/guide/examples.md").read_text()
    assert all(f"`{file.name}`" in guide for file in FOLDER.iterdir())


def test_a_test_of_r_has_what_readme_shows():
    shown = re.search(r"```r\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown
    tested = (ROOT / "plugin/R/tests/testthat/test-use.R").read_text()
    assert all(line in tested for line in shown[1].splitlines())
