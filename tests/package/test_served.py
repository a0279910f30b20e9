# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Each release that is served: `release_check.py` says so, and random problems give its own models.

Environment: GPU_EXACT_MODULE, the reference module; GPU_EXACT_BUILD, the folder that it was built in;
GPU_EXACT_FUZZ, random problems a release (200). pip needs a package index.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_package import RELEASES, ROOT, make_environment

sys.path.insert(0, str(ROOT / "tests"))
from release_check import REPEATED, adapters_of, bodies

BUILD = Path(os.environ["GPU_EXACT_BUILD"])
CHECK = (sys.executable, ROOT / "tests/release_check.py", "--build", BUILD)


def check(release: str | Path) -> tuple[int, str]:
    """Its status, and what it says."""
    words = [str(word) for word in (*CHECK, release)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_is_served(release: str) -> None:
    status, text = check(release)
    assert status == 0 and f"\nXGBoost {release} can be served by the adapter to " in text, text
    assert len(re.findall(r"^  xgboost(-cpu)? +has all ", text, re.MULTILINE)) == 2, text
    assert "Add to" not in text


def test_a_class_that_is_laid_out_anew_is_found(tmp_path: Path) -> None:
    """In a source tree that calls itself a release, and has one member more."""
    known = adapters_of(BUILD)[RELEASES[-1]].tree
    for folder in ("include", "src", "dmlc-core/include"):
        shutil.copytree(known / folder, tmp_path / folder)
    header = tmp_path / "include/xgboost/context.h"
    header.write_text(header.read_text().replace("std::int32_t nthread", "double more; std::int32_t nthread"))
    status, text = check(tmp_path)
    assert (status, "CANNOT be served" in text) == (1, True), text
    assert "xgboost::Context: size is " in text


def test_the_functions_that_are_compared_are_there() -> None:
    tree = adapters_of(BUILD)[RELEASES[-1]].tree
    for file, names in REPEATED.items():
        assert all(bodies((tree / file).read_text(), name) for name in names.split()), file


@pytest.mark.parametrize("release", RELEASES)
def test_models_are_its_own(release: str, tmp_path: Path) -> None:
    needed = ("numpy", "scipy", "pytest", f"xgboost-cpu=={release}")
    python = make_environment(tmp_path / "env", *needed)
    env = os.environ | {"PYTHONPATH": str(ROOT / "plugin/python"), "GPU_EXACT_RUN": ""}
    env.setdefault("GPU_EXACT_FUZZ", "200")
    fuzz = ROOT / "tests/e2e/test_fuzz.py"
    done = subprocess.run([python, "-m", "pytest", fuzz], env=env, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"XGBoost {release} without CUDA" in done.stdout
    assert re.search(r"= \d+ passed(, \d+ warnings?)? in ", done.stdout), done.stdout
