# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The GPU, as CUDA and NVML see it."""

from __future__ import annotations

import ctypes
import threading

MIB = 1 << 20


class NoGpu(Exception):
    """There is no usable NVIDIA GPU; why."""


class Gpu:
    """The first GPU that CUDA shows, with a context on it, as NVML sees it.

    `others` is how many processes were on it before, None where the driver does not say.
    """

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpu(f"there is no NVIDIA driver: {error}") from None
        try:
            import pynvml
        except ImportError:
            raise NoGpu("the package nvidia-ml-py is not installed") from None
        device, context, bus = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(32)
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDeviceGetPCIBusId", bus, len(bus), device)
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = self._find(bus.value)
        except pynvml.NVMLError as error:
            raise NoGpu(f"NVML of the NVIDIA driver: {error}") from None
        try:
            self.others = len(pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        except pynvml.NVMLError:
            self.others = None
        # The primary context, which XGBoost and the plugin share: its memory is nobody's.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)

    def _call(self, function: str, *args: object) -> None:
        status = getattr(self._cuda, function)(*args)
        if status != 0:
            raise NoGpu(f"{function} of the NVIDIA driver answered {status}")

    def _find(self, bus: bytes) -> object:
        try:
            return self._nvml.nvmlDeviceGetHandleByPciBusId(bus)
        except self._nvml.NVMLError:
            # In a sandbox the two may number buses differently; there it shows one GPU.
            return self._nvml.nvmlDeviceGetHandleByIndex(0)

    def visible(self) -> int:
        """GPUs that CUDA shows, this one among them."""
        n = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(n))
        return n.value

    def used(self) -> int:
        """Bytes, by all processes."""
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def name(self) -> str:
        return self._nvml.nvmlDeviceGetName(self._handle)

    def driver(self) -> str:
        return self._nvml.nvmlSystemGetDriverVersion()


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
