# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""``python -m xgboost_gpu_exact``, and the device of exact boosters that name none."""

import importlib.machinery
import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import BY_NAME, TAKE_OVER, assert_same_model, run_python, stock
from small_tables import dyadic, make_table
from xgboost_gpu_exact import __main__ as runner

SCRIPT = """
import json, os, sys
import xgboost
print(json.dumps([__name__, sys.argv, sys.path[0], "xgboost_gpu_exact" in sys.modules]))
import helper
sys.exit(helper.CODE)
"""

# In any script: says the device of a booster that it trains, given what is set.
TRAIN = """
import json, sys
import numpy as np, xgboost as xgb
X = np.arange(60, dtype=np.float32).reshape(20, 3)
params = json.loads(sys.argv[1])
booster = xgb.train(params, xgb.DMatrix(X, X[:, 0]), 2)
estimator = xgb.XGBRegressor(**params, n_estimators=2).fit(X, X[:, 0])
boosters = [booster, booster.copy(), booster[:1], estimator.get_booster()]
configs = [json.loads(b.save_config())["learner"]["generic_param"] for b in boosters]
(device,) = {config["device"] for config in configs}
print(device)
"""

# Only the plugin knows the parameter, and that this is too low.
TOO_LOW = {"tree_method": "exact", "gpu_exact_memory_limit": -1}
REFUSED = "Parameter gpu_exact_memory_limit"


def run(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "xgboost_gpu_exact", *arguments]
    fixed = {"text": True, "capture_output": True, "check": False}
    return subprocess.run(command, env=os.environ | env, cwd=cwd, **fixed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds a script, and a package that has it as a module."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for where in (tmp_path, package):
        (where / "script.py").write_text(SCRIPT)
        (where / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text("CODE = 7")
    return tmp_path


def test_status() -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    assert f"XGBoost {xgb.__version__}: " in done.stdout
    assert gpu_exact.device_status().text in done.stdout


def test_status_has_what_a_bug_report_needs() -> None:
    report = run(GPU_EXACT_DEVICE="cpu").stdout.partition("bug report")[2]
    wheel = "xgboost" if xgb.build_info()["USE_CUDA"] else "xgboost-cpu"
    hidden = wheel == "xgboost"  # the wheel with CUDA exports its C functions only
    for fact in (
        gpu_exact.__version__,
        gpu_exact.source_hash(),
        f"{wheel} {xgb.__version__}",
        "hidden" if hidden else "exported",
        "GPU_EXACT_DEVICE=cpu",
    ):
        assert fact in report
    cards = [line for line in report.splitlines() if line.startswith("  GPU: ")]
    usable, name = gpu_exact.device_status()
    if usable and shutil.which("nvidia-smi") and not name.startswith("reference builder"):
        assert any(name in card and "MiB" in card for card in cards)
    else:
        assert cards


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"PYTHONPATH": "{folder}"}, " 3.1.3 "),
        ({"GPU_EXACT_MODULE": "{folder}/none.so"}, "/none.so "),
        ({"GPU_EXACT_DEVICE": "tpu"}, "GPU_EXACT_DEVICE: "),
        ({"GPU_EXACT_FALLBACK": "err"}, "configured: GPU_EXACT_FALLBACK is `err`: set it to"),
    ],
)
def test_status_says_why_there_is_none(tmp_path: Path, env: dict[str, str], problem: str) -> None:
    """One line, and still what a bug report needs."""
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost/__init__.py").write_text("__version__ = '3.1.3'")
    env = {name: value.format(folder=tmp_path) for name, value in env.items()}
    path = [env.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")]
    done = run(**env | {"PYTHONPATH": os.pathsep.join(filter(None, path))})
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    told = ("xgboost_gpu_exact cannot be imported: ", "Exact boosters cannot be configured: ")
    line = next(line for line in done.stdout.splitlines() if line.startswith(told))
    assert problem in line
    assert "bug report" in done.stdout and "  GPU: " in done.stdout
    for name in env.keys() - {"PYTHONPATH"}:
        assert f"  {name}={env[name]}" in done.stdout


@pytest.mark.parametrize(
    "program",
    ["xgboost_gpu_exact", "xgboost_gpu_exact.compare --help", "xgboost_gpu_exact.demo --help"],
)
def test_who_reads_no_more_ends_it_without_a_traceback(program: str) -> None:
    """As `| head` does."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", *program.split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE and "Traceback" not in done.stderr, done.stderr


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"{gpu_exact.__version__}\n"), done.stderr


def test_an_empty_folder_is_no_xgboost(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an uninstall may leave it: Python finds a package without a file."""
    left = importlib.machinery.ModuleSpec("xgboost", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: left)
    with pytest.raises(ImportError, match="needs XGBoost"):
        runner.check()


def test_a_script_runs_as_by_python(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = str(folder / "script.py")
    done = run(script, "-m", "--flag", "x", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout) == ["__main__", [script, "-m", "--flag", "x"], str(folder), True]


def test_a_module_runs_as_by_python(folder: Path) -> None:
    done = run("-m", "package.script", "--flag", "x", cwd=folder)
    assert done.returncode == 7, done.stderr
    name, argv, path, loaded = json.loads(done.stdout)
    assert (name, argv[1:], path, loaded) == ("__main__", ["--flag", "x"], str(folder), True)
    assert argv[0] == str(folder / "package" / "script.py")


POOL = """
import atexit, multiprocessing, os, pickle, sys
class Answer:
    def __init__(self, value):
        self.value = value
def answer(question):
    return Answer(question.value + 1)
if __name__ == "__main__":
    os.chdir("/")
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(answer, [Answer(1)])[0].value, flush=True)
    atexit.register(lambda: print(len(pickle.dumps(Answer(1))) > 0, os.path.dirname(__file__)))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("what", [["pool.py"], ["-m", "pool"]])
def test_processes_of_a_script_know_its_classes(what: list[str], method: str, tmp_path: Path) -> None:
    """And so does the script itself at its end; wherever it has gone, it knows its own folder."""
    (tmp_path / "pool.py").write_text(POOL)
    done = run(*what, method, cwd=tmp_path, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert (done.stdout.split(), done.returncode) == (["2", "True", str(tmp_path)], 0), done.stderr


def test_a_script_may_be_a_pipe() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "xgboost_gpu_exact", "/dev/stdin"]
    done = subprocess.run(command, input="print(6 * 7)", text=True, capture_output=True, check=True)
    assert done.stdout == "42\n"


def test_what_a_package_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking/__init__.py").write_text("import absent_dependency")
    (tmp_path / "lacking/train.py").touch()
    done = run("-m", "lacking.train", cwd=tmp_path)
    assert done.returncode == 1 and "No module named 'absent_dependency'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["absent.py"], "file `absent.py`"),
        (["-m", "absent"], "module `absent`"),
        (["-m", "absent.inside"], "module `absent.inside`"),
        (["-m"], "-m "),
        (["--fast"], "option `--fast`"),
    ],
)
def test_what_cannot_run_is_one_sentence(arguments: list[str], named: str) -> None:
    done = run(*arguments)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("error: ") and named in line


@pytest.mark.parametrize("options", [[], ["-OO"]])  # without docstrings
def test_help(options: list[str]) -> None:
    command = [sys.executable, *options, "-m", "xgboost_gpu_exact", "--help"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0 and "script.py [argument ...]" in done.stdout


def test_a_script_has_the_plugin(folder: Path) -> None:
    done = run(str(folder / "train.py"), json.dumps(TOO_LOW))
    assert REFUSED in done.stderr


# As Python reads the folder where pip installs; then a script that does not know the plugin.
AT_START = """
import site, sys
site.addsitedir(sys.argv.pop(1))
early = "xgboost" in sys.modules
"""
WHO_IS_LOADED = """
import json
print(json.dumps([early, "xgboost_gpu_exact" in sys.modules]))
"""


@pytest.mark.parametrize("imported", ["xgboost", "xgboost_gpu_exact", "xgboost.sklearn", "json"])
@pytest.mark.parametrize(
    ("device", "children"), [("cpu", "0"), ("cuda", ""), ("", "0"), ("", ""), ("", "1")]
)
def test_the_environment_is_enough(imported: str, device: str, children: str) -> None:
    """A script has the plugin as soon as it has XGBoost, and not before."""
    folder = str(Path(gpu_exact.__file__).parents[1])
    code = f"{AT_START}import {imported}\n{WHO_IS_LOADED}"
    env = {"GPU_EXACT_DEVICE": device, "GPU_EXACT_CHILDREN": children}
    told = json.loads(run_python(code, folder, **env))
    wanted = bool(device) or children == "1"
    loaded = imported == "xgboost_gpu_exact" or (wanted and imported != "json")
    assert told == [False, loaded]


def test_who_only_looks_for_xgboost_takes_nothing_from_who_imports_it() -> None:
    folder = str(Path(gpu_exact.__file__).parents[1])
    look = 'import importlib.util\nassert importlib.util.find_spec("xgboost").name == "xgboost"\n'
    code = f'{AT_START}{look}early = early or "xgboost" in sys.modules\n{look}import xgboost\n'
    told = run_python(code + WHO_IS_LOADED, folder, GPU_EXACT_DEVICE="cpu")
    assert json.loads(told) == [False, True]


IMPORTED_BY_TWO = """
import importlib, json, threading
threads = [threading.Thread(target=importlib.import_module, args=[name])
           for name in ("xgboost_gpu_exact", "xgboost")]
for thread in threads: thread.start()
for thread in threads: thread.join()
import xgboost
"""
FAILS_AT_FIRST = """
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "scipy.sparse": raise ImportError("for now")
sys.meta_path.insert(0, Broken())
try: import xgboost
except ImportError as error: assert "for now" in str(error)
sys.meta_path.pop(0)
import xgboost
"""


ASKS_ITS_FELLOWS = """
class Asks:
    def find_spec(self, name, path=None, target=None):
        others = (f.find_spec(name, path, target) for f in sys.meta_path if f is not self)
        return next(filter(None, others), None)
sys.meta_path.insert(0, Asks())
import pickle, xgboost
pickle.dumps(xgboost.__spec__)
"""


OTHER_HOOK = """
import importlib.util
class Other:
    def find_spec(self, name, path=None, target=None):
        if name != "xgboost" or self not in sys.meta_path: return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def both(module):
            execute(module)
            module.seen_by_the_other = True
        spec.loader.exec_module = both
        return spec
sys.meta_path.insert({at}, Other())
import xgboost
assert xgboost.seen_by_the_other
"""
LOADS_BY_NAME = """
import importlib
from importlib.machinery import ModuleSpec
class Loader:
    def load_module(self, name):
        sys.meta_path.remove(finder)
        return importlib.import_module(name)
class Finder:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, Loader()) if name == "xgboost" else None
finder = Finder()
sys.meta_path.insert(0, finder)
import xgboost
"""


@pytest.mark.parametrize(
    "code",
    [
        IMPORTED_BY_TWO,
        FAILS_AT_FIRST,
        ASKS_ITS_FELLOWS,
        OTHER_HOOK.format(at=0),
        OTHER_HOOK.format(at=1),
        LOADS_BY_NAME,
    ],
)
def test_xgboost_is_imported_in_odd_ways(code: str) -> None:
    folder = str(Path(gpu_exact.__file__).parents[1])
    told = run_python(AT_START + code + WHO_IS_LOADED, folder, GPU_EXACT_DEVICE="cpu")
    assert json.loads(told) == [False, True]


FAILS_AND_IS_ASKED_AGAIN = """
import importlib, os
for device, name in (("tpu", "xgboost_gpu_exact"), ("tpu", "xgboost"), ("cpu", "xgboost")):
    os.environ["GPU_EXACT_DEVICE"] = device
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert device == "tpu" and "`tpu` is no device" in str(error)
    else:
        assert device == "cpu"
"""


def test_what_fails_fails_again() -> None:
    """Of a variable that the user has set. A library may go on without XGBoost: who imports it then
    does not have it without the plugin."""
    folder = str(Path(gpu_exact.__file__).parents[1])
    told = run_python(
        AT_START + FAILS_AND_IS_ASKED_AGAIN + WHO_IS_LOADED, folder, GPU_EXACT_DEVICE="tpu"
    )
    assert json.loads(told) == [False, True]


def test_what_fails_has_not_taken_over() -> None:
    code = """
import numpy as np
try: import xgboost_gpu_exact
except ImportError as error: assert "`tpu` is no device" in str(error)
import xgboost as xgb
X = np.arange(60, dtype=np.float32).reshape(20, 3)
booster = xgb.train({"tree_method": "exact", "verbosity": 0}, xgb.DMatrix(X, X[:, 0]), 1)
print("gpu_exact" in booster.save_config())
"""
    assert run_python(code, GPU_EXACT_DEVICE="tpu") == "False\n"


def test_a_script_has_its_own_path_and_environment(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Not the current folder's modules, and what it sets before it imports XGBoost counts."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "secrets.py").write_text("raise ImportError('of the current folder')")
    lines = "import os, sys\nassert 'xgboost' not in sys.modules and 'numpy' not in sys.modules\n"
    (folder / "train.py").write_text(lines + TRAIN)
    done = run(str(folder / "train.py"), json.dumps({"tree_method": "hist"}), cwd=elsewhere)
    assert (done.returncode, done.stdout) == (0, "cpu\n"), done.stderr


def test_a_script_has_the_plugin_where_python_imports_xgboost_at_its_start(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = tmp_path_factory.mktemp("start")
    home = str(Path(gpu_exact.__file__).parents[1])
    code = f"import site\nsite.addsitedir({home!r})\nimport xgboost\n"
    (at / "sitecustomize.py").write_text(code)
    path = os.pathsep.join([str(at), os.environ.get("PYTHONPATH", "")])
    command = [str(folder / "train.py"), json.dumps(TOO_LOW)]
    done = run(*command, PYTHONPATH=path, GPU_EXACT_DEVICE="cpu")
    assert REFUSED in done.stderr


def test_a_script_has_the_plugin_of_the_current_folder(folder: Path) -> None:
    home = Path(gpu_exact.__file__).parents[1]
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and Path(p) != home]
    done = run(
        str(folder / "train.py"), json.dumps(TOO_LOW), cwd=home, PYTHONPATH=os.pathsep.join(others)
    )
    assert REFUSED in done.stderr


def test_an_xgboost_that_is_not_served_is_told_before_a_script_runs(folder: Path) -> None:
    (folder / "xgboost").mkdir()
    (folder / "xgboost/__init__.py").touch()
    (folder / "xgboost/VERSION").write_text("3.1.3\n")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = run(str(folder / "train.py"), PYTHONPATH=path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and line.startswith("error: ") and " 3.1.3 " in line


def test_a_script_has_the_plugin_where_xgboost_was_there_before(folder: Path) -> None:
    code = f"""
import runpy, sys, xgboost
sys.argv[1:] = [{str(folder / "script.py")!r}]
runpy.run_module("xgboost_gpu_exact", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout)[3] is True


def test_a_folder_is_run_as_by_python(folder: Path) -> None:
    """Without the modules beside it."""
    (folder / "secrets.py").write_text("raise ImportError('of the folder around')")
    (folder / "package/__main__.py").write_text("import secrets, sys\nprint(sys.path[0])\n")
    done = run("package", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "package\n"), done.stderr


def test_the_environment_chooses_the_device(folder: Path) -> None:
    """As `python -m xgboost_gpu_exact` does; one that is none is an error."""
    at = str(Path(gpu_exact.__file__).parents[1])
    command = [sys.executable, "-c", AT_START + TRAIN, at, json.dumps(TOO_LOW)]
    for device, error in (("cpu", REFUSED), ("tpu", "`tpu` is no device")):
        env = os.environ | {"GPU_EXACT_DEVICE": device}
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
        assert error in done.stderr


@pytest.mark.parametrize("device", ["tpu", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1.5", "CUDA"])
def test_what_is_no_device(device: str) -> None:
    with pytest.raises(ValueError, match=f"`{device}`.*`cuda:<ordinal>`") as error:
        gpu_exact.default_device(device)
    done = run("train.py", GPU_EXACT_DEVICE=device)
    assert (done.returncode, done.stderr) == (1, f"error: GPU_EXACT_DEVICE: {error.value}\n")


@pytest.fixture
def default_cuda() -> Iterator[None]:
    gpu_exact.default_device("cuda")
    yield
    gpu_exact.default_device("cpu")


def device_of(booster: xgb.Booster) -> str:
    return json.loads(booster.save_config())["learner"]["generic_param"]["device"]


def train(params: dict) -> xgb.Booster:
    X, _ = make_table()
    params = {"nthread": 1, "base_score": 0.5} | params
    return xgb.train(params, xgb.DMatrix(X, dyadic(len(X))), 1)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:1", "cpu"])
def test_an_xgboost_without_cuda_stays_on_the_cpu(builder: str, device: str) -> None:
    """Where a GPU is the default, this is told once, for several boosters."""
    if xgb.build_info()["USE_CUDA"]:
        pytest.skip("this XGBoost is built with CUDA")
    code = f"import os; os.dup2(1, 2)\nimport xgboost_gpu_exact as g\ng.default_device('{device}')\n"
    told = run_python(code + TRAIN, json.dumps(TAKE_OVER))
    assert told.endswith("cpu\n") and told.count("built without CUDA") == (device != "cpu")


def test_a_named_device_is_remembered(builder: str) -> None:
    """So that a booster which is loaded has no other one."""
    booster = train(TAKE_OVER | {"device": "cpu"})
    for each in (booster, booster.copy(), pickle.loads(pickle.dumps(booster))):
        config = json.loads(each.save_config())["learner"]["gradient_booster"]
        assert config["gpu_exact"]["device"] == "named"
        assert config["gbtree_train_param"]["tree_method"] == "exact"
    for params in (TAKE_OVER, {"tree_method": "hist", "device": "cpu"}):  # none is named; not exact
        config = json.loads(train(params).save_config())["learner"]["gradient_booster"]
        assert "gpu_exact" not in config


@pytest.mark.parametrize(
    ("params", "device"),
    [
        (TAKE_OVER, "cuda:0"),
        (BY_NAME, "cuda:0"),
        (TAKE_OVER | {"booster": "dart", "rate_drop": 0.1}, "cuda:0"),
        (TAKE_OVER | {"device": "cpu"}, "cpu"),
        (BY_NAME | {"device": "cpu"}, "cpu"),
        (TAKE_OVER | {"device": "cuda"}, "cuda:0"),
        ({"tree_method": "hist"}, "cpu"),
        ({"tree_method": "approx"}, "cpu"),
    ],
)
def test_default_device(cuda_context: None, default_cuda: None, params: dict, device: str) -> None:
    booster = train(params)
    assert device_of(booster) == device
    for each in (booster.copy(), pickle.loads(pickle.dumps(booster)), booster[:1]):
        assert device_of(each) == device
    if params.get("tree_method") == "exact" and "booster" not in params:
        with stock():
            assert_same_model(booster, train(TAKE_OVER | {"device": "cpu"}))


def test_a_device_named_later_holds(cuda_context: None, default_cuda: None) -> None:
    X, _ = make_table()
    dtrain = xgb.DMatrix(X, dyadic(len(X)))
    booster = xgb.Booster(TAKE_OVER, [dtrain])
    booster.update(dtrain, 0)
    assert device_of(booster) == "cuda:0"
    booster.set_param({"device": "cpu"})
    booster.update(dtrain, 1)
    booster.set_param({"eta": 0.1})
    booster.update(dtrain, 2)
    assert device_of(booster) == "cpu"


@pytest.mark.parametrize("params", [TAKE_OVER, TAKE_OVER | {"device": "cpu"}])
def test_a_script_has_the_device(cuda_context: None, folder: Path, params: dict) -> None:
    expected = params.get("device", "cuda:0")
    for arguments in (["train.py"], ["-m", "package.train"]):
        done = run(*arguments, json.dumps(params), cwd=folder)
        assert done.stdout.strip() == expected, done.stderr
    done = run("train.py", json.dumps(params), cwd=folder, GPU_EXACT_DEVICE="cpu")
    assert done.stdout.strip() == "cpu", done.stderr


def test_the_environment_is_enough_where_the_plugin_is_imported(
    cuda_context: None, folder: Path
) -> None:
    (folder / "train.py").write_text("import xgboost_gpu_exact\n" + TRAIN)
    command = [sys.executable, "train.py", json.dumps(TAKE_OVER)]
    env = os.environ | {"GPU_EXACT_DEVICE": "cuda"}
    done = subprocess.run(command, env=env, cwd=folder, text=True, capture_output=True, check=False)
    assert done.stdout.strip() == "cuda:0", done.stderr
