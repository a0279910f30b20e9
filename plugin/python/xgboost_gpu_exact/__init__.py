# Copyright 2026, the gpu_exact contributors
"""XGBoost's exact tree method on NVIDIA GPUs.

``import xgboost_gpu_exact``, before or after ``import xgboost``, is all a script needs: from then
on ``tree_method="exact"`` builds its trees on the GPU, ``device="cuda"`` goes with it, and
``updater="grow_gpu_exact"`` is known. With the environment variable
``XGBOOST_GPU_EXACT_TAKEOVER=0`` only the last holds. ``XGBOOST_GPU_EXACT_DEVICE=cuda`` is
``default_device("cuda")``.
"""

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

from .versions import XGBOOST_RELEASES, __version__

__all__ = ["DeviceStatus", "__version__", "default_device", "device_status", "take_over"]

DEVICE_VARIABLE = "XGBOOST_GPU_EXACT_DEVICE"  # of the environment: see default_device


class DeviceStatus(NamedTuple):
    """Whether a GPU can build trees here."""

    usable: bool
    text: str  #: the device's name, or the reason why it is not usable


def _import_xgboost() -> None:
    """Load libxgboost; never install or replace one."""
    newest = list(XGBOOST_RELEASES)[-1]
    wheels = f"`pip install xgboost-cpu=={newest}` or `pip install xgboost=={newest}` (with CUDA)"
    served = " or ".join(XGBOOST_RELEASES)
    try:
        import xgboost
    except ModuleNotFoundError as error:
        if error.name != "xgboost":
            raise
        raise ImportError(f"xgboost_gpu_exact needs XGBoost {served}: {wheels}.") from None
    if xgboost.__version__ not in XGBOOST_RELEASES:
        raise ImportError(
            f"xgboost_gpu_exact works with XGBoost {served} only, and {xgboost.__version__} is "
            f"installed: {wheels}."
        )


def _load_module() -> ctypes.CDLL:
    path = Path(__file__).parent / "libxgboost_gpu_exact.so"
    path = Path(os.environ.get("GPU_EXACT_MODULE", path))
    try:
        module = ctypes.CDLL(str(path))
    except OSError as error:
        remedy = "Install xgboost_gpu_exact again."
        raise ImportError(f"{path} cannot be loaded: {error}. {remedy}") from None
    module.GpuExactGetLastError.restype = ctypes.c_char_p
    return module


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(_module.GpuExactGetLastError().decode())


def take_over(enabled: bool = True) -> None:
    """Build the trees of ``tree_method="exact"`` on the GPU, or let XGBoost's own builder do it.

    Holds for boosters that are configured from now on. XGBoost's own builder goes with no GPU:
    ``device="cuda"`` is refused then, for predictions too.
    """
    _check(_module.GpuExactTakeOver(int(enabled)))


def default_device(device: str = "cuda") -> None:
    """Choose the device of exact boosters that name none: ``cpu``, ``cuda`` or ``cuda:<ordinal>``.

    Holds for boosters that are configured from now on, as if they had named it. XGBoost's own
    default is ``cpu``, and stays where its wheel has no CUDA or the GPU is not usable.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if _module.GpuExactSetDefaultDevice(device.encode()) != 0:
        raise ValueError(_module.GpuExactGetLastError().decode())


def device_status(ordinal: int = -1) -> DeviceStatus:
    """Ask whether a GPU can build trees, -1: the first visible one. Makes a CUDA context."""
    usable, text = ctypes.c_int(), ctypes.c_char_p()
    _check(_module.GpuExactDeviceStatus(ordinal, ctypes.byref(usable), ctypes.byref(text)))
    return DeviceStatus(bool(usable.value), (text.value or b"").decode())


_import_xgboost()
_module = _load_module()
try:
    _check(_module.GpuExactRegister())
    if os.environ.get("XGBOOST_GPU_EXACT_TAKEOVER", "1") != "0":
        take_over()
    default_device(os.environ.get(DEVICE_VARIABLE) or "cpu")
except RuntimeError as error:
    raise ImportError(str(error)) from None
except ValueError as error:
    raise ImportError(f"{DEVICE_VARIABLE}: {error}") from None
