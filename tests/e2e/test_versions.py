# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What has to repeat `versions.py`: the module, the package's extras, R's package, README."""

import ctypes
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import xgboost
import xgboost_gpu_exact as gpu_exact
from proof import source_hash
from xgboost_gpu_exact.versions import SERVED, XGBOOST_LAYOUTS, XGBOOST_RELEASES, XGBOOST_WHEELS

ROOT = Path(__file__).parents[2]
RELEASES = list(XGBOOST_RELEASES)
EXAMPLE = ROOT / "plugin/examples/CMakeLists.txt"
R_PACKAGE = ROOT / "plugin/R/DESCRIPTION"


def test_one_version():
    path = Path(gpu_exact.__file__).parent / "libxgboost_gpu_exact.so"
    module = ctypes.CDLL(os.environ.get("GPU_EXACT_MODULE", str(path)))
    module.GpuExactVersion.restype = ctypes.c_char_p
    assert module.GpuExactVersion().decode() == gpu_exact.__version__
    major, minor, patch = map(int, gpu_exact.__version__.removesuffix(".dev0").split("."))
    header = (ROOT / "include/gpu_exact/c_api.h").read_text()
    assert f"\n#define GPU_EXACT_VERSION {10_000 * major + 100 * minor + patch}\n" in header
    assert f"find_package(xgboost_gpu_exact {major}.{minor} " in EXAMPLE.read_text()
    recipe = (ROOT / "plugin/conda/recipe.yaml").read_text()
    assert f"\n  version: {gpu_exact.__version__}\n" in recipe
    changes = (ROOT / "plugin/guide/changes.md").read_text()
    [newest] = re.findall(r"^# Changes\n+## (\S+)$", changes.replace(", not released", ""), re.MULTILINE)
    assert newest == gpu_exact.__version__.removesuffix(".dev0")
    assert (", not released" in changes) == gpu_exact.__version__.endswith(".dev0")


def test_this_release_is_served():
    assert xgboost.__version__ in RELEASES


def read_project() -> dict:
    tomllib = pytest.importorskip("tomllib")  # Python 3.10 has none
    return tomllib.loads((ROOT / "plugin/python/pyproject.toml").read_text())["project"]


def test_extras_install_what_is_served():
    project = read_project()
    bounds = f">={RELEASES[0]},<={RELEASES[-1]}"
    extras = project["optional-dependencies"]
    wheels = {name: extras[name] for name in XGBOOST_WHEELS}
    assert wheels == {extra: [f"{wheel}{bounds}"] for extra, wheel in XGBOOST_WHEELS.items()}


def test_packages_name_the_project_and_no_address():
    project = read_project()
    assert project["authors"] == [{"name": "The gpu_exact contributors"}]
    for file in (project["readme"], *project["license-files"]):
        assert (ROOT / "plugin/python" / file).read_text()
    assert "\nAuthor: The gpu_exact contributors\nMaintainer: ORPHANED\n" in R_PACKAGE.read_text()
    assert "@" not in R_PACKAGE.read_text()  # R takes a maintainer without an address by that word alone


def test_guides_name_what_is_served():
    first, of_r = ((ROOT / name).read_text() for name in ("README.md", "plugin/guide/r.md"))
    assert f"| XGBoost | {SERVED} |" in first
    assert f"`xgboost` {SERVED}." in of_r
    named = set(re.findall(r"\b3\.\d+\.\d+\b", first + of_r))  # releases of XGBoost 3
    assert named <= set(RELEASES)


def test_r_package():
    text = R_PACKAGE.read_text()
    version = gpu_exact.__version__.replace(".dev0", ".9000")  # as R calls what comes before a release
    assert f"\nVersion: {version}\n" in text
    assert (R_PACKAGE.parent / "NEWS.md").read_text().startswith(f"# xgboostgpuexact {version}\n")
    first, middle, last = RELEASES[-1].split(".")
    assert f"xgboost (>= {RELEASES[0]}), xgboost (< {first}.{middle}.{int(last) + 1})" in text
    manual = (R_PACKAGE.parent / "man/xgboostgpuexact.Rd").read_text()
    assert f"Version {SERVED}, not stripped" in manual


def test_archives_of_packages_have_all_that_is_compiled(tmp_path: Path):
    copy = [sys.executable, ROOT / "plugin/cmake/copy_sources.py", tmp_path / "cpp_src"]
    subprocess.run(copy, check=True)
    assert source_hash(tmp_path / "cpp_src") == source_hash()


def test_every_layout_is_that_of_a_release():
    assert list(dict.fromkeys(XGBOOST_RELEASES.values())) == list(XGBOOST_LAYOUTS)


def test_the_guide_says_what_is_tested():
    table = runpy.run_path(str(ROOT / "tests/releases/test_releases.py"))["table"]
    assert table() in (ROOT / "plugin/guide/install.md").read_text()
