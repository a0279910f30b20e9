# Copyright 2026, the gpu_exact contributors
"""The examples of the documentation run, through the plugin, and say what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "plugin/python/examples"
SHOWN = {  # values that they print; each asserts besides what it shows
    "early_stopping": r"\d+ of \d+.* 0\.\d+\n.*logloss:0\.\d+",
    "monotone": r"[\d.]+ to [\d.]+",
    "grid_search": r"'max_depth': \d.* 0\.\d+",
    "shap_and_plots": r"(\w+: [\d.]+ .*\n){3}.*Feature.*Gain\n(.*\n){3}",
}


def run(name: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{name}.py"), *arguments]
    fixed = {"text": True, "capture_output": True, "check": False}
    return subprocess.run(command, env=os.environ | env, **fixed)


def test_there_are_no_others():
    assert {file.stem for file in FOLDER.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_example(name):
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


@pytest.mark.parametrize("name", SHOWN)
def test_readme_names_each(name):
    assert f"{name}.py" in (ROOT / "README.md").read_text()


def test_a_test_of_r_has_what_readme_shows():
    shown = re.search(r"```r\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown
    tested = (ROOT / "plugin/R/tests/testthat/test-use.R").read_text()
    assert all(line in tested for line in shown[1].splitlines())
