# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""One module beside each release that it serves: every way in, with `device` "cpu" and "cuda".

    python tests/releases/test_releases.py     # prints the table of plugin/guide/install.md

GPU_EXACT_MODULE names the module, GPU_EXACT_C_TESTS the program of e2e/test_updater.cc,
GPU_EXACT_RELEASES a folder with XGBoost's wheels: pip brings those that are not there. They are
unpacked beside one another and not installed; what XGBoost needs is that of this Python.
"""

import json
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "plugin/python"
VERSIONS = runpy.run_path(str(PACKAGE / "xgboost_gpu_exact/versions.py"))
RELEASES = [r for r in VERSIONS["XGBOOST_RELEASES"] if r not in VERSIONS["R_ONLY"]]
DEVICES = {"xgboost-cpu": ["cpu"], "xgboost": ["cpu", "cuda"]}  # of XGBoost's wheels
WAYS = {
    "train": "`xgb.train()`",
    "cv": "`xgb.cv()`",
    "scikit_learn": "scikit-learn",
    "dask": "Dask",
    "runner": "`python -m xgboost_gpu_exact`",
}
OF_R = ["3.2.1", "3.4.1"]  # by tests/r/run_tests.sh
MODULE = os.environ.get("GPU_EXACT_MODULE", "")
REFERENCE = "_reference" in Path(MODULE).name
CELLS = [
    (wheel, release, device, way)
    for release in RELEASES
    for wheel, devices in DEVICES.items()
    for device in devices
    for way in WAYS
]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("GPU_EXACT_RELEASES")
    return Path(given) if given else tmp_path_factory.mktemp("releases")


def unpack(wheels: Path, wheel: str, release: str) -> Path:
    """The folder of a wheel, for PYTHONPATH."""
    folder = wheels / f"{wheel}-{release}"
    if folder.exists():
        return folder
    pattern = f"{wheel.replace('-', '_')}-{release}-*.whl"
    if not any(wheels.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python"]
        subprocess.run([*pip, "-d", str(wheels), f"{wheel}=={release}"], check=True)
    [archive] = wheels.glob(pattern)
    unpacked = folder.with_suffix(".part")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(unpacked)
    # As programs look for it that were linked with a release before 3.3, or with a later one.
    (unpacked / "xgboost/lib/libxgboost.so.3").symlink_to("libxgboost.so")
    unpacked.rename(folder)
    return folder


def run(*command: object, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("wheel", "release", "device", "way"), CELLS)
def test_the_trees_are_those_of_that_release(
    wheels: Path, wheel: str, release: str, device: str, way: str
) -> None:
    if device == "cuda" and REFERENCE:
        pytest.skip("the reference module needs no GPU")
    if way == "dask":
        pytest.importorskip("distributed")
    home = unpack(wheels, wheel, release)
    through = ["-m", "xgboost_gpu_exact"] if way == "runner" else []
    default = {"XGBOOST_GPU_EXACT_DEVICE": "cpu"} if device == "cpu" else {}  # not the runner's
    told = json.loads(
        run(
            sys.executable,
            *through,
            Path(__file__).with_name("ways.py"),
            way,
            device,
            PYTHONPATH=os.pathsep.join(map(str, (home, PACKAGE))),
            **default,
        ).splitlines()[-1]
    )
    if not told["usable"]:
        pytest.skip(f"no GPU builder: {told['builder']}")
    assert told["release"] == release
    assert told["device"].startswith(device)
    assert told["same"], told
    assert min(told["splits"]) > 20


@pytest.mark.parametrize("file", ["test_leaves", "test_slices"])
@pytest.mark.parametrize("wheel", DEVICES)
@pytest.mark.parametrize("release", RELEASES)
def test_end_to_end(wheels: Path, release: str, wheel: str, file: str) -> None:
    """Where `exact` does what XGBoost's own cannot, so that there is no judge: a file of e2e."""
    path = os.pathsep.join(map(str, (unpack(wheels, wheel, release), PACKAGE)))
    pytest_of = [sys.executable, "-m", "pytest", ROOT / f"tests/e2e/{file}.py"]
    out = run(*pytest_of, PYTHONPATH=path, GPU_EXACT_RUN="")
    assert f"XGBoost {release} with" in out, out
    if "passed" not in out:
        pytest.skip("no GPU builder")


@pytest.mark.parametrize("wheel", DEVICES)
@pytest.mark.parametrize("release", RELEASES)
def test_c(wheels: Path, release: str, wheel: str) -> None:
    """A program that was linked with the library of another release."""
    program = os.environ.get("GPU_EXACT_C_TESTS")
    if not program:
        pytest.skip("GPU_EXACT_C_TESTS names no program")
    out = run(program, LD_LIBRARY_PATH=str(unpack(wheels, wheel, release) / "xgboost/lib"))
    assert "[  PASSED  ]" in out and f"XGBoost {release}" in out, out


def table() -> str:
    """What is tested: a row a way in, a column a release. e2e/test_versions.py looks for it."""
    releases = list(VERSIONS["XGBOOST_RELEASES"])
    devices = ", ".join(DEVICES["xgboost"])
    ways = [*WAYS.values(), "C"]
    rows = [[way] + [devices if r in RELEASES else "" for r in releases] for way in ways]
    rows += [["R"] + ["cpu" if r in OF_R else "" for r in releases]]
    head = ["`device` tested, by", *releases]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    print(table(), end="")
