# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""``import xgboost_gpu_exact`` in processes of its own: the order, the switch, the errors."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import xgboost_gpu_exact as gpu_exact
from oracle import NO_GPU
from xgboost_gpu_exact.versions import NEWEST_OF_PYTHON_3_10, SERVED, XGBOOST_RELEASES

NEWEST = list(XGBOOST_RELEASES)[-1] if sys.version_info >= (3, 12) else NEWEST_OF_PYTHON_3_10
TRAIN = """
import numpy as np
X = np.arange(8, dtype=np.float32).reshape(8, 1)
params = {"tree_method": "exact", "gpu_exact_memory_limit": -1}  # only we know: out of range
xgb.train(params, xgb.DMatrix(X, X[:, 0]), 1)
"""
REFUSED = "Parameter gpu_exact_memory_limit"


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
    assert REFUSED in error


LOAD = "import xgboost as xgb, xgboost_gpu_exact as gpu_exact\n"


def test_switches():
    assert not error_of(LOAD + "gpu_exact.take_over(False)\n" + TRAIN)
    again = LOAD + "gpu_exact.take_over(False)\ngpu_exact.take_over()\n" + TRAIN
    assert REFUSED in error_of(again)


@pytest.mark.parametrize("word", ["0", "false", "Off", " NO "])
def test_environment_says_no(word):
    assert not error_of(LOAD + TRAIN, GPU_EXACT_TAKEOVER=word)


@pytest.mark.parametrize("word", ["", "1", "TRUE", "on", "yes"])
def test_environment_says_yes(word):
    error = error_of(LOAD + TRAIN, GPU_EXACT_TAKEOVER=word)
    assert REFUSED in error


def test_names_of_earlier_releases_are_read():
    assert not error_of(LOAD + TRAIN, XGBOOST_GPU_EXACT_TAKEOVER="0")
    device = "import os\nassert os.environ['GPU_EXACT_DEVICE'] == 'cuda:0'\n"
    assert not error_of(LOAD + device, XGBOOST_GPU_EXACT_DEVICE="cuda:0")
    other = "import os\nassert os.environ['GPU_EXACT_DEVICE'] == 'cpu'\n"
    assert not error_of(LOAD + other, XGBOOST_GPU_EXACT_DEVICE="cuda:0", GPU_EXACT_DEVICE="cpu")


def test_environment_says_neither():
    error = error_of(LOAD + TRAIN, GPU_EXACT_TAKEOVER="maybe")
    assert "ImportError: GPU_EXACT_TAKEOVER: `maybe`" in error


def test_device_status_says_why():
    code = "import xgboost_gpu_exact as g\nusable, text = g.device_status()\n"
    assert not error_of(code + "assert text if usable is True else 'NVIDIA' in text", **NO_GPU)


@pytest.mark.parametrize("ordinal", ["cuda:0", None, 0.5])
def test_what_is_no_ordinal(ordinal):
    with pytest.raises(TypeError, match=f"ordinal is {ordinal!r}: give a whole number."):
        gpu_exact.device_status(ordinal)


@pytest.mark.parametrize("ordinal", [-2, 2**31, 2**32])
def test_what_no_ordinal_can_be(ordinal):
    with pytest.raises(ValueError, match=f"ordinal is {ordinal}: give -1, 0, 1, ..."):
        gpu_exact.device_status(ordinal)


def test_numbers_of_numpy():
    assert gpu_exact.device_status(np.int64(-1)) == gpu_exact.device_status()
    sizes = (10_000_000, 1_000)  # whose product no int32 holds
    assert gpu_exact.memory_estimate(*map(np.int32, sizes)) == gpu_exact.memory_estimate(*sizes)
    with pytest.raises(TypeError, match="columns is 1.5: give a whole number."):
        gpu_exact.memory_estimate(10, 1.5)


# As R's dyn.unload() would. XGBoost has functions of the module, here and at the end.
UNLOAD = """
import _ctypes
for _ in range(3):  # more than it was opened
    _ctypes.dlclose(gpu_exact._module._handle)
import numpy as np
X = np.arange(60, dtype=np.float32).reshape(20, 3)
for method in ("exact", "hist"):
    xgb.train({"tree_method": method, "verbosity": 0}, xgb.DMatrix(X, X[:, 0]), 2)
"""


def test_it_cannot_be_unloaded():
    assert not error_of(LOAD + UNLOAD)


def test_without_xgboost():
    code = "import sys\nsys.modules['xgboost'] = None\nimport xgboost_gpu_exact"
    error = error_of(code)
    assert "ImportError: " in error and SERVED in error and gpu_exact._remedy() in error


@pytest.mark.parametrize(
    ("wheels", "commands"),
    [
        ([], [f"pip install xgboost-cpu=={NEWEST}", f"pip install xgboost=={NEWEST}"]),
        (["xgboost-cu12"], [f"pip install xgboost-cu12=={NEWEST}"]),
        (["xgboost", "xgboost-cpu"], ["pip uninstall -y xgboost xgboost-cpu"]),
    ],
)
def test_remedies_name_the_wheel_that_is_there(wheels, commands, tmp_path, monkeypatch):
    for wheel in [*wheels, "xgboost-cu13"]:  # the last has no library of its own
        folder = tmp_path / f"{wheel.replace('-', '_')}-3.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {wheel}\nVersion: 3.1.0\n")
        library = "xgboost/lib/libxgboost.so" if wheel in wheels else "LICENSE"
        (tmp_path / library).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / library).touch()
        (folder / "RECORD").write_text(f"{library},,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert gpu_exact._wheels() == dict.fromkeys(wheels, "3.1.0")
    remedy = gpu_exact._remedy()
    assert NEWEST in remedy and re.findall("`(pip [^`]*)`", remedy) == commands


def test_an_empty_folder_is_no_xgboost():
    """As an uninstall may leave it: Python takes it for a package."""
    code = "import sys, types\nsys.modules['xgboost'] = types.ModuleType('xgboost')\n"
    error = error_of(code + "import xgboost_gpu_exact")
    assert "ImportError: " in error and SERVED in error


def test_other_xgboost(tmp_path):
    (tmp_path / "xgboost.py").write_text("__version__ = '3.1.3'\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    error = error_of("import xgboost_gpu_exact", PYTHONPATH=path)
    assert "ImportError: " in error and SERVED in error and " 3.1.3 " in error


@pytest.mark.parametrize("argv", [["-m", "a", "b", "c", "d"], ["-m"], []])
def test_a_program_of_another_name_imports_it(argv):
    assert not error_of(f"import sys\nsys.argv = {argv}\n{LOAD}gpu_exact.source_hash()")


@pytest.mark.parametrize(
    "odd",
    [
        "sys.path += [None, b'/', 7, '/' + 300 * 'x']",
        "sys.modules['nvidia'] = types.ModuleType('nvidia')",  # no spec
        "sys.modules['nvidia'] = None",
    ],
)
def test_what_other_programs_leave_behind(odd):
    assert not error_of(f"import sys, types\n{odd}\n{LOAD}gpu_exact.source_hash()")


def test_a_folder_of_the_path_that_holds_the_module(tmp_path):
    """As of an editable install: the sources are elsewhere. Others in the path are skipped."""
    (tmp_path / "xgboost_gpu_exact").mkdir()
    (tmp_path / "xgboost_gpu_exact/libxgboost_gpu_exact.so").symlink_to("/dev/null")
    code = f"import sys\nsys.path += [None, {str(tmp_path)!r}]\nimport xgboost_gpu_exact"
    if os.path.exists(os.path.join(os.path.dirname(gpu_exact.__file__), "libxgboost_gpu_exact.so")):
        pytest.skip("the module is beside the sources")
    assert f"{tmp_path}/xgboost_gpu_exact/libxg" in error_of(code, GPU_EXACT_MODULE="")


def test_module_that_is_another_library():
    error = error_of("import xgboost_gpu_exact", GPU_EXACT_MODULE="libm.so.6")
    assert "ImportError: libm.so.6 " in error


def test_module_that_cannot_be_loaded(tmp_path):
    missing = str(tmp_path / "absent.so")
    error = error_of("import xgboost_gpu_exact", GPU_EXACT_MODULE=missing)
    assert f"ImportError: {missing} " in error
