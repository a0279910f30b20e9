# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Who has the plugin in threads and processes that a script starts, where the package is installed."""

import importlib.util
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact

HOME = Path(gpu_exact.__file__).parents[1]
START_FILES = ("xgboost_gpu_exact.pth", "xgboost_gpu_exact.start")

# A module of the script's that children import: it knows XGBoost alone.
WORK = """
import sys
import numpy as np, xgboost as xgb

X = np.arange(60, dtype=np.float32).reshape(20, 3)
PARAMS = {"tree_method": "exact", "nthread": 1, "verbosity": 0, "base_score": 0.0}

def grown(*_):
    "How many trees the plugin's builder has grown in this process; -1: it is not there."
    plugin = sys.modules.get("xgboost_gpu_exact")
    return plugin.last_run().gpu_trees if plugin else -1

def train(*_):
    xgb.train(PARAMS, xgb.DMatrix(X, X[:, 0], nthread=1), 2)
    return grown()
"""

SCRIPT = """
import multiprocessing, subprocess, sys
if __name__ == "__main__":
    import xgboost_gpu_exact as gpu_exact
    from work import *
{body}
    print(told)
"""
POOL = """
    with multiprocessing.get_context("{how}").Pool(1) as pool:
        told = pool.map(train, [0])
"""
SUBPROCESS = """
    command = [sys.executable, "-c", "import work; print(work.train())"]
    told = [int(subprocess.check_output(command))]
"""
JOBLIB = """
    from joblib import Parallel, delayed
    told = Parallel(n_jobs=2, backend="{how}")(delayed(train)() for _ in range(2))
"""
SCIKIT_LEARN = """
    from sklearn.model_selection import cross_val_score
    estimator = xgb.XGBRegressor(n_estimators=2, **PARAMS)
    told = cross_val_score(estimator, X, X[:, 0], cv=2, n_jobs=2, scoring=grown).tolist()
"""
RAY = """
    import ray
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    told = [ray.get(ray.remote(train).remote())]
"""
DASK = """
    import xgboost.dask
    from dask import array
    from distributed import Client, LocalCluster
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        rows = [array.from_array(data, chunks=(10, *data.shape[1:])) for data in (X, X[:, 0])]
        xgb.dask.train(client, PARAMS, xgb.dask.DaskDMatrix(client, *rows), 2)
        told = list(client.run(grown).values())
"""
SPARK = """
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession
    from xgboost.spark import SparkXGBRegressor
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [(Vectors.dense(x.tolist()), float(x[0])) for x in X]
    frame = spark.createDataFrame(rows, ["features", "label"])
    params = {"updater": "grow_gpu_exact", "tree_method": "approx", "base_score": 0.0}
    SparkXGBRegressor(num_workers=2, n_estimators=2, **params).fit(frame)  # or it is unknown
    told = spark.sparkContext.parallelize([0], 1).map(train).collect()
    spark.stop()
"""

# What starts the children, the package that does it, and how.
WAYS = [
    ("threads", "joblib", JOBLIB.format(how="threading")),
    ("fork", "multiprocessing", POOL.format(how="fork")),
    ("spawn", "multiprocessing", POOL.format(how="spawn")),
    ("forkserver", "multiprocessing", POOL.format(how="forkserver")),
    ("subprocess", "subprocess", SUBPROCESS),
    ("loky", "joblib", JOBLIB.format(how="loky")),
    ("n_jobs", "sklearn", SCIKIT_LEARN),
    ("Ray", "ray", RAY),
    ("Dask", "distributed", DASK),
    ("Spark", "pyspark", SPARK),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the package installed; it has all others of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "others.pth").write_text("\n".join(others))
    for name in (*START_FILES, "_xgboost_gpu_exact_start.py"):
        shutil.copy(HOME / name, site)
    (site / "xgboost_gpu_exact").symlink_to(HOME / "xgboost_gpu_exact")
    return folder / "bin/python"


def run(
    python: Path | str, folder: Path, body: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of this body, beside the module `work`."""
    (folder / "work.py").write_text(WORK)
    (folder / "script.py").write_text(SCRIPT.format(body=body))
    ours = ("PYTHONPATH", *(f"GPU_EXACT_{name}" for name in ("CHILDREN", "DEVICE", "TAKEOVER")))
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    env = clean | {"PYSPARK_PYTHON": str(python), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"} | env
    fixed = {"text": True, "capture_output": True, "check": False, "timeout": 300}
    return subprocess.run([python, "script.py"], env=env, cwd=folder, **fixed)


def told(python: Path | str, folder: Path, body: str, **env: str) -> list[int]:
    done = run(python, folder, body, **env)
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()[-1].strip("[]").split(", ")
    return [int(float(word)) for word in words]


@pytest.mark.parametrize(("package", "body"), [way[1:] for way in WAYS], ids=[w[0] for w in WAYS])
def test_children_have_the_plugin(
    builder: str, python: Path, tmp_path: Path, package: str, body: str
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    n_trees = told(python, tmp_path, body)
    assert n_trees and min(n_trees) > 0, n_trees


NOT_THERE = -1


@pytest.mark.parametrize(
    ("before", "env", "n_trees"),
    [
        ("", {"GPU_EXACT_CHILDREN": "0"}, NOT_THERE),
        ("", {"GPU_EXACT_TAKEOVER": "0"}, 0),
        ("gpu_exact.take_over(False)", {}, 0),
        ("gpu_exact.take_over(False); gpu_exact.take_over()", {}, 2),
        ("gpu_exact.take_over()", {"GPU_EXACT_TAKEOVER": "0"}, 2),
        ("gpu_exact.take_over(False)", {"GPU_EXACT_CHILDREN": "0"}, NOT_THERE),
        ("gpu_exact.default_device()", {"GPU_EXACT_CHILDREN": "0"}, NOT_THERE),
    ],
)
def test_a_child_does_as_its_parent(
    builder: str, python: Path, tmp_path: Path, before: str, env: dict[str, str], n_trees: int
) -> None:
    assert told(python, tmp_path, f"    {before}\n{SUBPROCESS}", **env) == [n_trees]


def test_a_child_has_the_default_device(python: Path, tmp_path: Path) -> None:
    look = """
    told = []
    for device in ("cuda:0", "cpu"):
        gpu_exact.default_device(device)
        code = "import os; print(len(os.environ.get('GPU_EXACT_DEVICE', '')))"
        told.append(int(subprocess.check_output([sys.executable, "-c", code])))
"""
    assert told(python, tmp_path, look) == [len("cuda:0"), 0]


def test_a_child_without_the_package(python: Path, tmp_path: Path) -> None:
    """Of another environment, which the variable reaches too."""
    body = SUBPROCESS.replace("sys.executable", repr(sys.executable))
    assert told(python, tmp_path, body) == [NOT_THERE]


def test_a_package_that_is_not_installed_reaches_no_child(tmp_path: Path) -> None:
    """Python reads xgboost_gpu_exact.pth where packages are installed, not in PYTHONPATH."""
    home = str(Path(gpu_exact.__file__).parents[1])
    if any(Path(path, "xgboost_gpu_exact.pth").exists() for path in sys.path if path != home):
        pytest.skip("the package is installed")
    assert told(sys.executable, tmp_path, SUBPROCESS, PYTHONPATH=home) == [NOT_THERE]


# Of a script that imports XGBoost, whatever is in the environment.
IMPORTS = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import xgboost
    import xgboost
told = [str(w.message) for w in caught]
assert len(told) == 1 and {text!r} in told[0] and "XGBoost goes on without the plugin" in told[0], told
assert xgboost.__version__
try:
    import xgboost_gpu_exact
except ImportError as error:
    assert {text!r} in str(error)
else:
    raise AssertionError("it was imported")
"""


@pytest.mark.parametrize("variable", ["GPU_EXACT_CHILDREN", "GPU_EXACT_DEVICE"])
@pytest.mark.parametrize("broken", ["a release that is not served", "no module", "no package"])
def test_who_imports_xgboost_alone_has_it(
    python: Path, tmp_path: Path, variable: str, broken: str
) -> None:
    """With one warning. Who imports the plugin has the error."""
    env = {variable: "1" if variable.endswith("CHILDREN") else "cpu"}
    text = "works with XGBoost"
    if broken == "a release that is not served":
        (tmp_path / "xgboost.py").write_text("__version__ = '3.1.0'\n")
    elif broken == "no module":
        env["GPU_EXACT_MODULE"], text = str(tmp_path / "none.so"), "none.so cannot be loaded"
    else:
        (tmp_path / "xgboost_gpu_exact.py").write_text(
            "raise ModuleNotFoundError('no package', name='xgboost_gpu_exact')"
        )
        text = "no package"
    (tmp_path / "imports.py").write_text(IMPORTS.format(text=text))
    clean = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "imports.py"], env=clean | env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_a_script_is_run_with_it_must_have(python: Path, tmp_path: Path) -> None:
    """`python -m xgboost_gpu_exact` was asked for it, and warns of nothing."""
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost/__init__.py").write_text("__version__ = '3.1.0'\n")
    newest = list(gpu_exact.XGBOOST_RELEASES)[-1]
    (tmp_path / "xgboost/VERSION").write_text(newest)  # seen before the script runs
    (tmp_path / "script.py").write_text("import xgboost\n")
    clean = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    command = [python, "-m", "xgboost_gpu_exact", "script.py"]
    done = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "and 3.1.0 is installed" in done.stderr, done.stderr


def test_the_start_of_python_loads_next_to_nothing(python: Path) -> None:
    """Every Python process pays for it."""
    [site] = python.parents[1].glob("lib/python*/site-packages")
    code = f"import os, sys; sys.path.append({str(site)!r}); before = set(sys.modules)\n"
    code += "import _xgboost_gpu_exact_start as s; s.start(); print(*set(sys.modules) - before)"
    loaded = subprocess.check_output([python, "-S", "-c", code], text=True).split()
    assert loaded == ["_xgboost_gpu_exact_start"]


def test_every_python_starts_alike() -> None:
    """From 3.15 on it reads the one file, before the other (PEP 829)."""
    lines, entry = ((HOME / name).read_text().strip() for name in START_FILES)
    module, name = entry.split(":")
    assert lines == f"import {module}; {module}.{name}()"
    assert callable(pkgutil.resolve_name(entry))
