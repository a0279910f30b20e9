# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""XGBoost's exact tree method on NVIDIA GPUs.

``import xgboost_gpu_exact``, before or after ``import xgboost``, is all a script needs: from then
on ``tree_method="exact"`` builds its trees on the GPU, ``device="cuda"`` goes with it, and
``updater="grow_gpu_exact"`` is known. With the environment variable
``GPU_EXACT_TAKEOVER=0`` only the last holds. ``GPU_EXACT_DEVICE=cuda`` is
``default_device("cuda")``; where the package is installed, scripts that do not import it have it then.

Where the package is installed, Python processes that this one starts have it with XGBoost, as this one
has it: by ``GPU_EXACT_CHILDREN=1``, which the import sets in the environment; with 0, set before,
they have not. For workers that others start, ``EXACT`` and ``UPDATER`` are values of parameters that
import it there.

``memory_estimate`` says what a table takes before, ``last_run`` what a tree took after.
"""

import ctypes
import functools
import importlib.util
import json
import operator
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .versions import (
    NEWEST_OF_PYTHON_3_10,
    SERVED,
    XGBOOST_RELEASES,
    XGBOOST_WHEELS,
    __version__,
)

__all__ = [
    "EXACT",
    "UPDATER",
    "DeviceStatus",
    "LastRun",
    "MemoryEstimate",
    "__version__",
    "default_device",
    "device_status",
    "last_run",
    "memory_estimate",
    "source_hash",
    "take_over",
]

TAKEOVER_VARIABLE = "GPU_EXACT_TAKEOVER"  # of the environment: 0 is take_over(False)
DEVICE_VARIABLE = "GPU_EXACT_DEVICE"  # of the environment: see default_device
CHILDREN_VARIABLE = "GPU_EXACT_CHILDREN"  # of the environment: 1, or 0 for children without it
for _name in (TAKEOVER_VARIABLE, DEVICE_VARIABLE, CHILDREN_VARIABLE):
    if (_old := f"XGBOOST_{_name}") in os.environ:  # the names of earlier releases
        os.environ.setdefault(_name, os.environ.pop(_old))


class _Word(str):
    """A parameter's value. To unpickle it imports this package: so it does on a cluster's workers."""


#: ``tree_method`` of Dask's ``train`` and estimators: workers need not import the package themselves
EXACT = _Word("exact")
#: ``updater`` of the same trees, for Spark's estimators with ``tree_method="approx"``
UPDATER = _Word("grow_gpu_exact")


class DeviceStatus(NamedTuple):
    """Whether a GPU can build trees here."""

    usable: bool
    text: str  #: the device's name, or the reason why it is not usable


class MemoryEstimate(NamedTuple):
    """Device memory that a table takes at most, in bytes."""

    peak: int  #: the greatest sum of a stage
    least: int  #: the same of the least ``gpu_exact_memory_limit``; of ``sort`` there is no smaller plan
    stages: dict[str, dict[str, int]]  #: by array; ``reading``, ``sorting``, then ``growing`` trees


class LastRun(NamedTuple):
    """The last tree of this process, and how many there were."""

    gpu_trees: int  #: grown on a GPU, by all boosters of the process so far
    cpu_trees: int  #: grown by XGBoost's own builder in the place of a GPU
    device: str  #: that grew the last tree; empty where there was none yet
    reason: str  #: why that was the CPU; empty where it was not
    strategy: str  #: ``sort`` or ``histogram``; empty on the CPU
    rows: int
    columns: int
    entries: int  #: present values
    set_up_ms: float  #: once for the table, before its first tree
    tree_ms: float  #: all phases; without gradients and predictions, which are XGBoost's
    phases_ms: dict[str, float]  #: ``sampling``, ``start``, ``levels``, ``finish``, ``writing``
    device_bytes: int  #: held after the tree
    peak_bytes: int  #: the most that all tables of this process have held at a time
    planned_bytes: int  #: the most that the table may take, set-up included, without live nodes
    planned_host_bytes: int  #: page-locked memory that stands in for the device's
    refined_share: float | None  #: of the entries searched, those looked into; None: unknown


def _wheels() -> dict[str, str]:
    """The releases of the installed wheels of XGBoost that have a library, by name."""
    from importlib.metadata import distributions  # takes 20 ms

    return {
        wheel.metadata["Name"]: wheel.version
        for wheel in distributions(path=[f for f in sys.path if isinstance(f, str)])
        if wheel.metadata["Name"] in XGBOOST_WHEELS.values()
        and any(file.name == "libxgboost.so" for file in wheel.files or ())
    }


def _remedy() -> str:
    """How to have an XGBoost that is served: the wheel that is installed, or one of two."""
    newest = list(XGBOOST_RELEASES)[-1] if sys.version_info >= (3, 12) else NEWEST_OF_PYTHON_3_10
    names = list(_wheels())
    if len(names) > 1:
        return (
            f"{' and '.join(f'`{name}`' for name in names)} lie over one another, in one folder: "
            f"`pip uninstall -y {' '.join(names)}`, then install one of them, {newest}"
        )
    if names:
        return f"`pip install {names[0]}=={newest}`"
    return f"`pip install xgboost-cpu=={newest}` or `pip install xgboost=={newest}` (with CUDA)"


def _check_release(release: str | None) -> None:
    """ImportError for an XGBoost that is not served, and None: for the lack of one."""
    if release is None:
        raise ImportError(f"xgboost_gpu_exact needs XGBoost {SERVED}: {_remedy()}.", name="xgboost")
    if release not in XGBOOST_RELEASES:
        raise ImportError(
            f"xgboost_gpu_exact works with XGBoost {SERVED} only, and {release} is installed: "
            f"{_remedy()}. Whether {release} can be served, `python tests/release_check.py {release}` "
            "in the sources says.",
            name="xgboost",
        )


def _import_xgboost() -> None:
    """Load libxgboost; never install or replace one."""
    release = None
    try:
        import xgboost

        release = getattr(xgboost, "__version__", None)  # an uninstall may leave an empty folder
    except ModuleNotFoundError as error:
        if error.name != "xgboost":
            raise
    _check_release(release)
    if release and release.startswith("3.2."):
        _let_estimators_take_categories()


def _let_estimators_take_categories() -> None:
    """XGBoost 3.2's refuse them by the name of the method, before any updater is asked."""
    from xgboost.sklearn import XGBModel

    configure = XGBModel._configure_fit

    @functools.wraps(configure)
    def without_the_name(self: Any, booster: Any, params: dict, feature_weights: Any) -> tuple:
        method = {name: params.pop(name) for name in ("tree_method",) if name in params}
        configured = configure(self, booster, params, feature_weights)
        params.update(method)
        return configured

    XGBModel._configure_fit = without_the_name  # type: ignore[method-assign]


def _load_module() -> ctypes.CDLL:
    name = "libxgboost_gpu_exact.so"
    # Of an editable install the sources are here, and the module is where packages are. Python too
    # skips what is no text in its path.
    homes = [os.path.join(f, __name__) for f in sys.path if isinstance(f, str)]
    paths = [os.path.join(f, name) for f in (os.path.dirname(__file__), *homes)]
    path = os.environ.get("GPU_EXACT_MODULE") or next(filter(os.path.exists, paths), paths[0])
    try:
        module = ctypes.CDLL(path)
        module.GpuExactGetLastError.restype = ctypes.c_char_p
        module.GpuExactSourceHash.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:  # AttributeError: it is another library
        remedy = "Install xgboost_gpu_exact again."
        raise ImportError(f"{path} cannot be loaded: {error}. {remedy}", name=__name__) from None
    return module


def _name_nccl() -> None:
    """In the environment, for GPUs of several processes: the NCCL that XGBoost's wheel requires."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (TypeError, ValueError):  # a path with what is no text, a module made without a spec
        found = None
    for folder in (found and found.submodule_search_locations) or ():
        library = Path(folder, "nccl/lib/libnccl.so.2")
        if library.exists():
            os.environ.setdefault("GPU_EXACT_NCCL", str(library))


def _whole(name: str, number: Any) -> int:
    """A number of Python or NumPy; TypeError for what is none."""
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is {number!r}: give a whole number.") from None


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(_module.GpuExactGetLastError().decode())


def _tell_children(variable: str, value: str | None) -> None:
    """In the environment, so that processes which are started from now on do as this one."""
    if os.environ.get(CHILDREN_VARIABLE) != "1":
        return
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def take_over(enabled: bool = True) -> None:
    """Build the trees of ``tree_method="exact"`` on the GPU, or let XGBoost's own builder do it.

    Holds for boosters that are configured from now on, and in processes that are started from now on.
    XGBoost's own builder goes with no GPU: ``device="cuda"`` is refused then, for predictions too.
    """
    _check(_module.GpuExactTakeOver(int(enabled)))
    _tell_children(TAKEOVER_VARIABLE, "1" if enabled else "0")


def default_device(device: str = "cuda") -> None:
    """Choose the device of exact boosters that name none: ``cpu``, ``cuda`` or ``cuda:<ordinal>``.

    Holds for boosters that are configured from now on, as if they had named it, and in processes that
    are started from now on. XGBoost's own default is ``cpu``, and stays where its wheel has no CUDA or
    the GPU is not usable.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    _set_default_device(device)
    _tell_children(DEVICE_VARIABLE, None if device == "cpu" else device)


def _set_default_device(device: str) -> None:
    if _module.GpuExactSetDefaultDevice(device.encode()) != 0:
        raise ValueError(_module.GpuExactGetLastError().decode())


def device_status(ordinal: int = -1) -> DeviceStatus:
    """Ask whether a GPU can build trees, -1: the first visible one. Makes a CUDA context.

    Raises
    ------
    TypeError, ValueError
        For what is no ordinal.
    """
    if not -1 <= (ordinal := _whole("ordinal", ordinal)) < 2**31:
        raise ValueError(f"ordinal is {ordinal}: give -1, 0, 1, ...")
    usable, text = ctypes.c_int(), ctypes.c_char_p()
    _check(_module.GpuExactDeviceStatus(ordinal, ctypes.byref(usable), ctypes.byref(text)))
    return DeviceStatus(bool(usable.value), (text.value or b"").decode())


def _read_json(function: str, *arguments: Any) -> Any:
    text = ctypes.c_char_p()
    _check(getattr(_module, function)(*arguments, ctypes.byref(text)))
    return json.loads((text.value or b"").decode())


def memory_estimate(
    rows: int,
    columns: int,
    entries: int | None = None,
    *,
    max_depth: int = 6,
    categories: Sequence[int] = (),
) -> dict[str, MemoryEstimate]:
    """Device memory that a table will take at most, by strategy: ``sort`` and ``histogram``.

    Needs no GPU. It is an upper bound, as if all values of a numerical column were distinct, of the
    kind of GPU that takes most.

    Parameters
    ----------
    rows, columns : Of the table, at most 2**32 - 2 and less than 2**32.
    entries : Its present values; None: no value is missing.
    max_depth : Of the trees; 0: no limit.
    categories : For each categorical column one more than its greatest code, at most 2**24. Such
        tables take ``histogram``, never ``sort``.

    Raises
    ------
    TypeError, ValueError
        For sizes that no table has.
    """
    rows, columns = _whole("rows", rows), _whole("columns", columns)
    sizes = (rows, columns, rows * columns if entries is None else _whole("entries", entries))
    max_depth = _whole("max_depth", max_depth)
    if min(sizes) < 0 or max(sizes) >= 2**64 or not -(2**31) <= max_depth < 2**31:
        raise ValueError(f"rows, columns, entries {sizes}, max_depth {max_depth}: out of range.")
    counts = [_whole("categories", n) for n in categories]
    if not all(0 <= n < 2**32 for n in counts):
        raise ValueError(f"categories has {min(counts)} to {max(counts)}: give 0 to {2**24}.")
    arguments = (
        *map(ctypes.c_uint64, sizes),
        ctypes.c_int(max_depth),
        (ctypes.c_uint32 * len(counts))(*counts),
        ctypes.c_uint64(len(counts)),
    )
    try:
        estimate = _read_json("GpuExactMemoryEstimate", *arguments)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return {strategy: MemoryEstimate(**parts) for strategy, parts in estimate.items()}


def last_run() -> LastRun:
    """What the last tree of this process took and where it grew, milliseconds and bytes.

    Trees count whose boosters the plugin serves. ``verbosity=2`` logs a line of it for every tree.
    """
    return LastRun(**_read_json("GpuExactLastRun"))


def source_hash() -> str:
    """What sources the module was built of: a hash of all that is compiled."""
    return (_module.GpuExactSourceHash() or b"").decode()


def _wants_take_over() -> bool:
    """What the environment says; an error for what is neither yes nor no."""
    word = os.environ.get(TAKEOVER_VARIABLE, "").strip().lower()
    if word in ("", "1", "true", "on", "yes"):
        return True
    if word in ("0", "false", "off", "no"):
        return False
    raise ValueError(f"`{word}` is neither yes nor no: set it to 1 or 0.")


def _load() -> bool:
    """Load the module, without XGBoost. Returns whether the environment says to take over."""
    global _module
    try:
        takes_over = _wants_take_over()
    except ValueError as error:
        raise ImportError(f"{TAKEOVER_VARIABLE}: {error}") from None
    _module = _load_module()
    try:
        _set_default_device(os.environ.get(DEVICE_VARIABLE) or "cpu")
    except ValueError as error:
        raise ImportError(f"{DEVICE_VARIABLE}: {error}") from None
    return takes_over


def _start() -> None:
    """Load and register the module as the environment says."""
    takes_over = _load()  # what fails here leaves XGBoost to the next who imports it
    _import_xgboost()
    _name_nccl()
    try:
        _check(_module.GpuExactRegister())
        _check(_module.GpuExactTakeOver(int(takes_over)))
    except RuntimeError as error:
        raise ImportError(str(error), name="xgboost") from None
    os.environ.setdefault(CHILDREN_VARIABLE, "1")


def _is_program() -> bool:
    """Whether this is `python -m xgboost_gpu_exact`: __main__.py starts the package when it is wanted."""
    argv = getattr(sys, "argv", [])  # `-m`, then the program's arguments, while it is looked for
    name = sys.orig_argv[-len(argv) :][:1]  # or `-m<name>`, with other letters before the m
    return argv[:1] == ["-m"] and bool(name and re.fullmatch(rf"(-\w*m)?{__name__}", name[0]))


_module: ctypes.CDLL
if not _is_program():
    _start()
