# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Runs a script or module as it is, with its exact trees grown on the GPU: see HELP."""

from __future__ import annotations

import builtins
import ctypes
import importlib
import importlib.util
import os
import platform
import runpy
import signal
import subprocess
import sys
import types
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

from . import (
    DEVICE_VARIABLE,
    __version__,
    _check_release,
    _load,
    _remedy,
    _start,
    _wheels,
    device_status,
    source_hash,
)

# No docstring: `python -OO` has none.
HELP = """Run a script or module as it is, with its exact trees grown on the GPU.

    python -m xgboost_gpu_exact script.py [argument ...]
    python -m xgboost_gpu_exact -m module [argument ...]

Exact boosters that name no device get device="cuda", or the one that the environment variable
GPU_EXACT_DEVICE names. Without a script: what would build trees here, and what a bug report
needs. --version: the package's version alone.
"""


def xgboost_releases() -> str:
    """Which wheels of XGBoost are installed."""
    found = _wheels()
    releases = ", ".join(f"{name} {found[name]}" for name in sorted(found))
    return f"{releases}: {_remedy()}" if len(found) > 1 else releases or "none by pip"


def problem() -> str:
    """Why no exact tree can grow here, whatever the data; empty where one can."""
    try:
        _start()
    except Exception as error:  # whatever a broken XGBoost raises
        return f"xgboost_gpu_exact cannot be imported: {error}"
    import xgboost

    from ._console import sentence

    data = xgboost.DMatrix([[0.0]])
    try:  # by what the environment says
        xgboost.Booster({"tree_method": "exact"}, [data]).save_config()
    except xgboost.core.XGBoostError as error:
        return f"Exact boosters cannot be configured: {sentence(error)}"
    return ""


def xgboost_facts(bound: bool) -> tuple[str, str]:
    """What `import xgboost` finds, and whether its C++ functions are in sight."""
    try:
        import xgboost
        from xgboost import libpath

        library = libpath.find_lib_path()[0]
        functions = ctypes.CDLL(library)
    except Exception as error:  # whatever it is that a broken one raises
        return f"XGBoost cannot be imported: {error}", "out of reach"
    symbol = "_ZNK7xgboost7Context7ThreadsEv"  # a function that the module calls
    hidden = "hidden, found in the symbol table" if bound else "not exported"
    return f"XGBoost {xgboost.__version__}: {library}", (
        "exported" if hasattr(functions, symbol) else hidden
    )


def graphics_cards() -> list[str]:
    """Name, driver, memory of each GPU as nvidia-smi tells them."""
    query = "name,driver_version,compute_cap,memory.free,memory.total"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"nvidia-smi: {error}"]
    lines = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()
    return lines.splitlines() or ["nvidia-smi names none"]


def builder() -> list[str]:
    """What would build exact trees here, as the package can be imported."""
    import xgboost

    usable, text = device_status()
    lines = [f"Exact trees on the GPU: {text}" if usable else f"Exact trees on the CPU: {text}"]
    if usable and not xgboost.build_info()["USE_CUDA"]:
        lines.append("Gradients and predictions on the CPU: this XGBoost is built without CUDA.")
    return lines


def tell_status() -> int:
    """Print what would build trees here, and what a bug report needs.

    Returns 0, or 1 where no exact tree can grow.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` has read enough: end, without a traceback
    why = problem()
    xgboost, functions = xgboost_facts(not why)
    builders = [why] if why else builder()
    print(xgboost, *builders, "\nFor a bug report:", sep="\n")
    print(f"  xgboost_gpu_exact {__version__}, sources {'unknown' if why else source_hash()}")
    print(f"  Python {platform.python_version()}, {platform.platform()}")
    print(f"  XGBoost installed: {xgboost_releases()}")
    print(f"  XGBoost's functions: {functions}")
    for card in graphics_cards():
        print(f"  GPU: {card}")
    for name in sorted(os.environ):
        if name.startswith(("GPU_EXACT_", "CUDA_", "NVIDIA_VISIBLE")):
            print(f"  {name}={os.environ[name]}")
    return 1 if why else 0


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):  # itself, or a package that it would be in
            return False
        raise  # what such a package imports


def be_main() -> types.ModuleType:
    """An empty `__main__` for what is run, as Python's own: it stays to the end, and processes find
    the same classes in it as this one."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    return main


def fail(message: str, code: int = 2) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def check() -> None:
    """ImportError where the package cannot be imported, as far as that can be seen without XGBoost."""
    _load()
    found = importlib.util.find_spec("xgboost")
    # What an uninstall has left behind has no origin.
    file = Path(found.origin).with_name("VERSION") if found and found.origin else None
    if file is None or file.is_file():
        _check_release(file.read_text().strip() if file else None)


def start_with_xgboost() -> None:
    """Start the package when what is run imports XGBoost, with the path and environment of that.

    It has been imported without being started: only when it is imported anew it starts.
    """
    for name in [n for n in sys.modules if f"{n}.".startswith(f"{__package__}.")]:
        del sys.modules[name]
    home = str(Path(__file__).absolute().parents[1])
    if home not in sys.path[1:]:  # it is in the current folder, which a script's takes the place of
        sys.path.append(home)
    importlib.import_module("_xgboost_gpu_exact_start").start(forgives=False)
    if "xgboost" in sys.modules:  # by what Python runs at its start
        importlib.import_module(str(__package__))


def run_module(name: str, arguments: list[str]) -> int:
    """As `python -m name`. Returns 2 where there is no such module."""
    if not has_module(name):  # the current folder is in the path already
        return fail(f"There is no module `{name}`.")
    sys.argv = [name, *arguments]
    be_main()
    runpy._run_module_as_main(name)  # type: ignore[attr-defined] # what `python -m` calls
    return 0


def run_script(path: str, arguments: list[str]) -> int:
    """As `python path`. Returns 2 where there is no such file."""
    if not Path(path).exists():
        return fail(f"There is no file `{path}`.")
    is_folder = Path(path).is_dir() or zipfile.is_zipfile(path)
    if not getattr(sys.flags, "safe_path", False):  # not of Python 3.10. The current folder gives way
        sys.path[:1] = [] if is_folder else [str(Path(path).resolve().parent)]
    sys.argv = [path, *arguments]
    if is_folder:
        runpy.run_path(path, run_name="__main__")
        return 0
    main = be_main()
    main.__file__ = os.path.abspath(path)
    main.__loader__ = SourceFileLoader("__main__", main.__file__)
    source = Path(path).read_bytes()  # once: it may be a pipe
    exec(compile(source, main.__file__, "exec", dont_inherit=True), main.__dict__)
    return 0


def main(arguments: list[str]) -> int:
    """Returns 0, 1 where no exact tree can grow, or 2 where the arguments are not usable.

    What is run may end with another code.
    """
    if not arguments:
        return tell_status()
    first, *rest = arguments
    if first in ("-h", "--help"):
        print(HELP)
        return 0
    if first == "--version":
        print(__version__)
        return 0
    if first == "-m" and not rest:
        return fail("-m needs the name of a module.")
    if first.startswith("-") and first != "-m":
        return fail(f"There is no option `{first}`: see `python -m xgboost_gpu_exact --help`.")
    # In the environment, for processes that the script starts.
    os.environ[DEVICE_VARIABLE] = os.environ.get(DEVICE_VARIABLE) or "cuda"
    try:
        check()
    except ImportError as error:
        return fail(str(error), 1)
    start_with_xgboost()
    return run_module(rest[0], rest[1:]) if first == "-m" else run_script(first, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
