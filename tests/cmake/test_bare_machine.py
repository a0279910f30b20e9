# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A machine on which no CUDA toolkit is in sight: the build installs nvcc from PyPI.

Environment: XGBOOST_SOURCE_DIR, as CMake's option. pip needs a package index. The machine's toolkits
are hidden from CMake, which is told not to look where they are.
"""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NVCC = "_deps/cuda/nvidia/cu13/bin/nvcc"  # in the build folder
TOOLKIT = ("CUDACXX", "CUDAARCHS", "CUDA_HOME", "CUDA_PATH", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH")
ENV = {name: value for name, value in os.environ.items() if name not in TOOLKIT}
# Make keeps lists of the headers that were read; Ninja does not.
ENV |= {"CMAKE_GENERATOR": "Unix Makefiles", "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())}
FOLDERS = [*os.get_exec_path(), "/usr/local/cuda/bin", "/usr/local/bin", "/usr/bin", "/bin"]
HIDDEN = {folder for folder in FOLDERS if Path(folder, "nvcc").exists()}
DEFINES = {
    "CMAKE_IGNORE_PATH": ";".join(HIDDEN),
    "CMAKE_CUDA_ARCHITECTURES": "75-virtual",
    "XGBOOST_SOURCE_DIR": os.environ["XGBOOST_SOURCE_DIR"],
}


def run(*command: object, **env: str) -> str:
    """What it said; a failure shows that."""
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, capture_output=True, check=False, env=ENV | env)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def read_headers(build: Path) -> set[Path]:
    """Those of CUDA that the compilers have read, where links lead."""
    lists = list(build.rglob("*.cu.o.d"))
    assert len(lists) > 30
    words = {word for file in lists for word in file.read_text().replace("\\\n", " ").split()}
    found = {Path(word).resolve() for word in words}
    return {path for path in found if re.search("/(cuda|nv)", str(path)) and ROOT not in path.parents}


def test_configures_and_downloads_once(tmp_path: Path) -> None:
    python = ["-DGPU_EXACT_BUILD_TESTS=OFF", "-DGPU_EXACT_PYTHON_ENV=none"]
    defines = [f"-D{name}={value}" for name, value in DEFINES.items()]
    told = "nvcc was not found: installing nvcc from PyPI"
    assert told in run("cmake", "-S", ROOT, "-B", tmp_path, *python, *defines)
    again = run("cmake", tmp_path, PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null", PIP_FIND_LINKS="")
    assert "installing nvcc" not in again
    assert str(tmp_path / NVCC) in (tmp_path / "compile_commands.json").read_text()


def test_wheel_is_built_and_loads(tmp_path: Path) -> None:
    settings = [f"-Ccmake.define.{name}={value}" for name, value in DEFINES.items()]
    build = f"-Cbuild-dir={tmp_path / 'build'}"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path]
    run(*pip, build, *settings, ROOT / "plugin/python")
    toolkit = (tmp_path / "build" / NVCC).parents[1]
    others = {path for path in read_headers(tmp_path / "build") if not path.is_relative_to(toolkit)}
    assert others == set()  # gcc looks in /usr/local/include, where a toolkit may have links
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "package")
    run(sys.executable, "-m", "xgboost_gpu_exact", PYTHONPATH=str(tmp_path / "package"))
