# Copyright 2026, the gpu_exact contributors
"""Calls of the module that are made to fail: see support/faults.h."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import xgboost_gpu_exact as gpu_exact

DEVICE, HOST = 0, 1  # CUDA calls; allocations by operator new
OUT_OF_MEMORY, OUT_OF_RESOURCES, ILLEGAL_ADDRESS = 2, 701, 700  # cudaError_t


@dataclass(frozen=True)
class Site:
    """A place of the code that makes a call, told by the functions that lead there."""

    call: str
    first: int  # number of its first call in what was counted, from 1
    last: int


class Faults:
    """The module's hook; `possible` says whether it has one."""

    possible = hasattr(gpu_exact._module, "GpuExactFaultBegin")
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
        if hasattr(gpu_exact._module, "GpuExactFaultTake"):  # the reference module has no device
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


def held_by_worker(rank: int, n_workers: int) -> tuple[int, ...]:
    """For `Pool.run`."""
    gc.collect()  # what an error has kept
    return Faults.held()
