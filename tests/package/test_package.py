# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, as a user installs them.

Environment: GPU_EXACT_ARCHITECTURES, the GPUs to compile for; XGBOOST_SOURCE_DIR, as CMake's
option; GPU_EXACT_WHEEL, a wheel to test in the place of a new one: `make_wheel.py` runs the tests of
it alone, test_wheel_*. pip needs a package index, or PIP_FIND_LINKS.
"""

import itertools
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugin/python"
NOTEBOOK = PACKAGE / "examples/exact_on_a_gpu.ipynb"
VERSIONS = runpy.run_path(str(PACKAGE / "xgboost_gpu_exact/versions.py"))
RELEASES = [r for r in VERSIONS["XGBOOST_RELEASES"] if r not in VERSIONS["R_ONLY"]]
BESIDE = list(itertools.product(RELEASES, ["xgboost-cpu", "xgboost"]))
BESIDE += [(r, "xgboost-cu12") for r in RELEASES if r >= "3.4"]  # earlier ones bring `xgboost`

# One tree of whole gradients: their sums are exact in any order, so the models are equal.
TRAIN = """
import json
import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact

rng = np.random.default_rng(7)
X = rng.integers(0, 50, (500, 4)).astype(np.float32)
dtrain = xgb.DMatrix(X, (X[:, 0] > 20) * 8 + X[:, 1] // 4)
params = {"tree_method": "exact", "base_score": 0, "max_depth": 4}
usable, text = gpu_exact.device_status()
ours = params | {"gpu_exact_fallback": "error" if usable else "warn"}
model = xgb.train(ours, dtrain, 1).save_raw("json")
gpu_exact.take_over(False)
print(json.dumps({
    "version": gpu_exact.__version__,
    "xgboost": xgb.__version__,
    "cuda": xgb.build_info()["USE_CUDA"],
    "usable": usable,
    "device": text,
    "same": model == xgb.train(params, dtrain, 1).save_raw("json"),
}))
"""


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    """Run it; a failure shows what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done


def make_environment(folder: Path, *packages: str, base: str | Path = sys.executable) -> Path:
    """A Python environment that has these packages alone; gives its interpreter."""
    run(base, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    install(python, *packages)
    return python


def install(python: Path, *arguments: object) -> None:
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", *arguments)


def build_wheel(source: Path, folder: Path) -> Path:
    defines = {
        "CMAKE_CUDA_ARCHITECTURES": os.environ.get("GPU_EXACT_ARCHITECTURES"),
        "XGBOOST_SOURCE_DIR": os.environ.get("XGBOOST_SOURCE_DIR"),
    }
    settings = [f"-Ccmake.define.{name}={value}" for name, value in defines.items() if value]
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, *settings, source)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    given = os.environ.get("GPU_EXACT_WHEEL")
    return Path(given) if given else build_wheel(PACKAGE, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory) -> Path:
    """An interpreter with what packagers use."""
    packages = ("auditwheel", "build", "check-jsonschema", "py-rattler-build", "twine", "wheel")
    return make_environment(tmp_path_factory.mktemp("tools"), *packages)


@pytest.fixture(scope="session")
def python_3_10() -> str:
    """An interpreter of that version, from PATH or pyenv."""
    found = ["python3.10", *map(str, Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))]
    for python in filter(shutil.which, found):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    pytest.fail("There is no python3.10: put one on PATH, as the wheel is for that version too.")


def test_wheel_is_for_every_linux(wheel: Path, tools: Path) -> None:
    version = VERSIONS["__version__"]
    assert wheel.name == f"xgboost_gpu_exact-{version}-py3-none-manylinux_2_28_x86_64.whl"
    assert wheel.stat().st_size <= 20e6  # 11 of five generations; line information would add 15
    text = " ".join(run(tools, "-m", "auditwheel", "show", wheel).stdout.split())
    tag = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_x86_64"', text)
    assert tag and int(tag[1]) <= 28, text


def test_wheel_tells_what_it_is(wheel: Path, tools: Path) -> None:
    """To an index, and to type checkers."""
    assert "PASSED" in run(tools, "-m", "twine", "check", "--strict", wheel).stdout
    files = files_of(wheel)
    assert "xgboost_gpu_exact/py.typed" in files
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in files if ".dist-info/" in name}


@pytest.mark.parametrize(("release", "distribution"), BESIDE)
def test_wheel_trains_beside(release: str, distribution: str, wheel: Path, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "env", "numpy", "scipy")
    assert_trains(wheel, distribution, release, python)


def test_wheel_trains_on_python_3_10(wheel: Path, python_3_10: str, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "env", "numpy", "scipy", base=python_3_10)
    assert_trains(wheel, "xgboost-cpu", VERSIONS["NEWEST_OF_PYTHON_3_10"], python)


def test_wheel_runs_the_notebook(wheel: Path, tmp_path: Path) -> None:
    """From the cell that installs it to the last one, in Jupyter."""
    python = make_environment(tmp_path / "env", "pip", "nbclient", "ipykernel")
    (python.parent / "sh").symlink_to("/bin/sh")  # by which IPython starts pip; PATH has nothing else
    assert (text := "{package}[cuda,demo]") in NOTEBOOK.read_text()
    (tmp_path / "notebook.ipynb").write_text(NOTEBOOK.read_text().replace(text, "{package}[cpu,demo]"))
    jupyter = (python, "-m", "jupyter", "execute", "--inplace")
    env = without_compiler(python) | {"GPU_EXACT_WHEEL": str(wheel)}
    run(*jupyter, tmp_path / "notebook.ipynb", cwd=tmp_path, env=env)
    assert "ms a tree" in (tmp_path / "notebook.ipynb").read_text()


def without_compiler(python: Path) -> dict[str, str]:
    """The environment of a process that has neither a compiler nor a toolkit, nor another module."""
    others = ("PYTHONPATH", "GPU_EXACT_MODULE")
    env = {name: value for name, value in os.environ.items() if name not in others}
    return env | {"PATH": str(python.parent)}


def assert_trains(wheel: Path, distribution: str, release: str, python: Path) -> None:
    """Install both; the trees are XGBoost's."""
    install(python, "--no-deps", wheel, f"{distribution}=={release}")  # no NCCL for one GPU
    env = without_compiler(python)
    done = run(python, "-c", TRAIN, env=env, cwd=python.parents[2])
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["version"] == VERSIONS["__version__"]
    assert (told["xgboost"], told["cuda"]) == (release, distribution != "xgboost-cpu")
    assert told["same"]
    unchanged = "import sys, xgboost; assert 'xgboost_gpu_exact' in sys.modules"
    run(python, "-c", unchanged, env=env | {"GPU_EXACT_DEVICE": "cuda"})
    script = python.parents[1] / "script.py"
    script.write_text(unchanged)
    run(python, "-m", "xgboost_gpu_exact", script, env=env)
    warned = "XGBoost's own exact builder grows the trees on the CPU instead" in done.stderr
    assert warned != told["usable"]


# Loads a library, has another one take its place, as pip does it, and then loads the module.
REPLACED = """
import ctypes, os, shutil, sys
module, library, follower = sys.argv[1:]
loaded = ctypes.CDLL(library)
shutil.copy(follower, library + ".new")
os.replace(library + ".new", library)
module = ctypes.CDLL(module)
module.GpuExactGetLastError.restype = ctypes.c_char_p
print(module.GpuExactRegister(), module.GpuExactGetLastError().decode())
"""


@pytest.fixture(scope="session")
def cuda_libraries(tmp_path_factory) -> dict[str, Path]:
    """The library of each release's CUDA wheel: it hides the functions that the module calls."""
    folder = tmp_path_factory.mktemp("libraries")
    libraries = {}
    for release in RELEASES:
        wanted = ["--no-deps", "-q", "-d", folder / release, f"xgboost=={release}"]
        run(sys.executable, "-m", "pip", "download", *wanted)
        [archive] = (folder / release).glob("*.whl")
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if ".so" in Path(name).name]
            wheel.extractall(folder / release, names)
        archive.unlink()
        libraries[release] = folder / release / "xgboost/lib/libxgboost.so"
    return libraries


@pytest.mark.parametrize("name", ["libxgboost.so", "xgboost.so"])  # of Python, of R
@pytest.mark.parametrize(("loaded", "follower"), list(itertools.product(RELEASES, repeat=2)))
def test_an_xgboost_that_is_replaced_under_a_process(
    loaded: str, follower: str, name: str, wheel: Path, cuda_libraries: dict, tmp_path: Path
) -> None:
    """Other functions lie where the new file has them; one that is put there again is the same."""
    with zipfile.ZipFile(wheel) as archive:
        module = archive.extract("xgboost_gpu_exact/libxgboost_gpu_exact.so", tmp_path)
    shutil.copytree(cuda_libraries[loaded].parents[2], tmp_path / "at", copy_function=os.link)
    library = (tmp_path / "at/xgboost/lib/libxgboost.so").rename(tmp_path / "at/xgboost/lib" / name)
    done = run(sys.executable, "-c", REPLACED, module, library, cuda_libraries[follower])
    error = f"{library} is no longer the file that this process loaded: restart it."
    assert done.stdout.strip() == ("0" if loaded == follower else f"-1 {error}")


def test_source_distribution_builds(wheel: Path, tools: Path, tmp_path: Path) -> None:
    run(tools, "-m", "build", "--sdist", "--outdir", tmp_path, PACKAGE)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    for folder in ("include", "src", "plugin/load", "plugin/hooks", "plugin/train", "plugin/workers"):
        files = [file for file in (ROOT / folder).rglob("*") if file.is_file()]
        assert {f"cpp_src/{file.relative_to(ROOT)}" for file in files} <= names
    again = build_wheel(archive, tmp_path)
    assert again.name == wheel.name
    assert files_of(again) == files_of(wheel)


def test_the_workflow_that_makes_it(tools: Path) -> None:
    check = (tools.parent / "check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    run(*check, *(ROOT / ".github/workflows").iterdir())


# Prints what the conda package is compiled with.
RENDER = """
import sys
from rattler_build import Stage0Recipe, VariantConfig
recipe = Stage0Recipe.from_file(f"{sys.argv[1]}/recipe.yaml")
[package] = recipe.render(VariantConfig.from_file(f"{sys.argv[1]}/variants.yaml"))
print(*package.recipe.to_dict()["requirements"]["build"], sep="\\n")
"""


def test_the_conda_recipe_has_a_compiler_that_will_do(tools: Path) -> None:
    needs = run(tools, "-c", RENDER, ROOT / "plugin/conda").stdout
    cmake = (ROOT / "plugin/cmake/CudaToolkit.cmake").read_text()
    [least] = re.findall(r"set\(GPU_EXACT_CUDA_MINIMUM ([\d.]+)\)", cmake)
    [found] = re.findall(r"^cuda-nvcc_linux-64 ([\d.]+)\.\*$", needs, re.MULTILINE)
    assert [int(part) for part in found.split(".")] >= [int(part) for part in least.split(".")]


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())
