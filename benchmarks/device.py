# Copyright 2026, the gpu_exact contributors
"""The machine: its GPU by way of the driver's own libraries, its CPU cores."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

MIB = 1 << 20


class NoGpu(Exception):
    """There is no usable NVIDIA GPU; why."""


def _call(library: ctypes.CDLL, function: str, *args: object) -> None:
    status = getattr(library, function)(*args)
    if status != 0:
        raise NoGpu(f"{function} of the NVIDIA driver answered {status}")


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise NoGpu(f"there is no NVIDIA driver: {error}") from None


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Gpu:
    """The first GPU that CUDA shows, with a context on it, as NVML sees it.

    `others` is how many processes were on it before.
    """

    def __init__(self) -> None:
        cuda = self._cuda = _library("libcuda.so.1")
        self._nvml = _library("libnvidia-ml.so.1")
        device, context, bus = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(32)
        _call(cuda, "cuInit", 0)
        _call(cuda, "cuDeviceGet", ctypes.byref(device), 0)
        _call(cuda, "cuDeviceGetPCIBusId", bus, len(bus), device)
        _call(self._nvml, "nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        handle = ctypes.byref(self._handle)
        if self._nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, handle) != 0:
            # In a sandbox the two may number buses differently; there it shows one GPU.
            _call(self._nvml, "nvmlDeviceGetHandleByIndex_v2", 0, handle)
        self.others = self._processes()
        # The primary context, which XGBoost and the plugin share: its memory is nobody's.
        _call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)

    def _processes(self) -> int | None:
        """Processes that compute on it; None where the driver does not say."""
        insufficient_size = 7  # how NVML answers a question for the number alone
        n = ctypes.c_uint(0)
        ask = self._nvml.nvmlDeviceGetComputeRunningProcesses_v3
        return n.value if ask(self._handle, ctypes.byref(n), None) in (0, insufficient_size) else None

    def visible(self) -> int:
        """GPUs that CUDA shows, this one among them."""
        n = ctypes.c_int()
        _call(self._cuda, "cuDeviceGetCount", ctypes.byref(n))
        return n.value

    def used(self) -> int:
        """Bytes, by all processes."""
        memory = _Memory()
        _call(self._nvml, "nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(memory))
        return memory.used

    def name(self) -> str:
        text = ctypes.create_string_buffer(96)
        _call(self._nvml, "nvmlDeviceGetName", self._handle, text, len(text))
        return text.value.decode()

    def driver(self) -> str:
        text = ctypes.create_string_buffer(81)
        _call(self._nvml, "nvmlSystemGetDriverVersion", text, len(text))
        return text.value.decode()


class MemoryWatch:
    """The most device memory used above what was used when the watch began.

    It sees the whole device: nothing else may run on it. It polls until it is told to stop, since
    polling costs time; from then on, `look` between measurements must do.
    """

    def __init__(self, gpu: Gpu, interval_s: float = 0.002) -> None:
        self._gpu, self._interval_s = gpu, interval_s
        self._begin = self._peak = gpu.used()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def look(self) -> None:
        self._peak = max(self._peak, self._gpu.used())

    def _poll(self) -> None:
        while not self._done.wait(self._interval_s):
            self.look()

    def stop_polling(self) -> None:
        self._done.set()
        self._thread.join()

    def peak_mib(self) -> int:
        return round((self._peak - self._begin) / MIB)


def cpu_cores() -> int:
    """Cores that this process may use, by affinity and by the container's quota."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))
