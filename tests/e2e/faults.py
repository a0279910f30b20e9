# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Calls of the module that are made to fail: see support/faults.h."""

import ctypes
import faulthandler
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact
from oracle import FAULTS, REFERENCE

DEVICE, HOST = 0, 1  # CUDA calls; allocations by operator new
OUT_OF_MEMORY, OUT_OF_RESOURCES, ILLEGAL_ADDRESS = 2, 701, 700  # cudaError_t

# What an error says has failed, and what to do.
NAMED = ("CUDA error", "Out of device memory", "Out of page-locked host memory", "Out of host memory")
REMEDIES = ("estart the process", "Free memory", "Train again")

# Where these fail the module ignores it, or names them, or CUB, which may have made the call. Others
# also fail where the error names a kernel, an array or the GPU in their place.
TOLD_BY_NAME = """cudaEventCreateWithFlags cudaEventRecord cudaEventSynchronize cudaMemGetInfo
cudaMemcpyAsync cudaMemsetAsync cudaPointerGetAttributes cudaStreamCreateWithFlags
cudaStreamSynchronize cudaStreamWaitEvent""".split()


@dataclass(frozen=True)
class Site:
    """A place of the code that makes a call, told by the functions that lead there."""

    call: str
    first: int  # number of its first call in what was counted, from 1
    last: int


class Faults:
    """The module's hook; `possible` says whether it has one."""

    possible = REFERENCE or FAULTS
    if possible:
        _begin = gpu_exact._module.GpuExactFaultBegin
        _begin.argtypes = [ctypes.c_int, ctypes.c_longlong, ctypes.c_int, ctypes.c_int]
        _end = gpu_exact._module.GpuExactFaultEnd
        _end.restype = ctypes.c_char_p
        _site = gpu_exact._module.GpuExactFaultSite
        _site.restype = ctypes.c_char_p
        _site.argtypes = [ctypes.c_size_t, *2 * [ctypes.POINTER(ctypes.c_longlong)]]
        _held = gpu_exact._module.GpuExactFaultHeld
        _held.restype = ctypes.c_longlong
        if FAULTS:
            _take = gpu_exact._module.GpuExactFaultTake
            _take.argtypes = [ctypes.c_longlong]

    @classmethod
    def begin(cls, kind: int, number: int, status: int = 0, *, sticks: bool = False) -> None:
        """Let the call of this number fail, from 1; 0 notes the sites."""
        cls._begin(kind, number, status, int(sticks))

    @classmethod
    def end(cls) -> str:
        """No call fails any more; gives the one that failed, "" if none did."""
        return cls._end().decode()

    @classmethod
    def sites(cls) -> list[Site]:
        found = []
        first, last = ctypes.c_longlong(), ctypes.c_longlong()
        while name := cls._site(len(found), ctypes.byref(first), ctypes.byref(last)):
            found.append(Site(name.decode(), first.value, last.value))
        return found

    @classmethod
    def held(cls) -> tuple[int, ...]:
        """What the module has not given back.

        Bytes on the device, page-locked bytes, events, streams, IPC handles.
        """
        return tuple(cls._held(what) for what in range(5))

    @classmethod
    @contextmanager
    def taken(cls, leave: int) -> Iterator[None]:
        """Others take all but so many bytes, right after the module has asked what is free."""
        cls._take(leave)
        try:
            yield
        finally:
            was_taken = cls._take(-1)
        assert was_taken, "no memory was taken: the module has not asked, or there was too little"


class Watchdog:
    """A training that hangs ends the process, and says where.

    It says so where the process's own errors go: what pytest captures is lost when a process ends.
    """

    SECONDS = 100
    _stderr = 2

    @classmethod
    @contextmanager
    def of_test(cls, capfd: pytest.CaptureFixture) -> Iterator[None]:
        with capfd.disabled():
            cls._stderr = os.dup(2)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            os.close(cls._stderr)
            cls._stderr = 2

    @classmethod
    def start(cls) -> None:
        """Before each training; the time of the one before is over."""
        faulthandler.dump_traceback_later(cls.SECONDS, exit=True, file=cls._stderr)


def assert_explained(error: str, failed: str) -> None:
    """The error of a call that was made to fail names it, where it can, and tells a remedy."""
    assert any(name in error for name in NAMED), (failed, error)
    assert any(remedy in error for remedy in REMEDIES), (failed, error)
    call = re.sub("(_ptsz|_ptds|_v[0-9]+)+$", "", failed)
    if call in TOLD_BY_NAME:
        assert call in error or " from CUB " in error, (failed, error)


class HostMemory:
    """Memory of this process that a number of failures must not make grow."""

    BOUND = 64 << 20  # bytes; a column of a large table lost in each failure is far more
    KNOWN = "libasan" not in os.environ.get("LD_PRELOAD", "")  # AddressSanitizer keeps what is freed

    def __init__(self) -> None:
        self.before = self.resident()

    @staticmethod
    def resident() -> int:
        gc.collect()  # what an error has kept
        ctypes.CDLL(None).malloc_trim(0)  # what is free is given back
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def assert_kept(self) -> None:
        grown = self.resident() - self.before
        assert grown < self.BOUND or not self.KNOWN, f"{grown >> 20} MiB of host memory are not given back"


def held_by_worker(rank: int, n_workers: int) -> tuple[int, ...]:
    """For `Pool.run`."""
    gc.collect()  # what an error has kept
    return Faults.held()
