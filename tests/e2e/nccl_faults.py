# Copyright 2026, the gpu_exact contributors
"""Calls of NCCL that are made to fail, and what workers run meanwhile: see support/nccl_faults.cc."""

import ctypes
import gc
import os
from dataclasses import dataclass
from pathlib import Path

import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from faults import DEVICE, OUT_OF_RESOURCES, Faults
from oracle import TAKE_OVER
from workers import PARAMS, Trained, dmatrix_of, train_case

SYSTEM_ERROR, REMOTE_ERROR = 2, 6  # ncclResult_t
POLL = "ncclCommGetAsyncError"
TIMEOUT = 5  # seconds that the others wait for the one whose call fails


@dataclass(frozen=True)
class NcclFault:
    """The call of the process that fails, from 1; 0: none."""

    number: int = 0
    result: int = SYSTEM_ERROR
    by_state: bool = False  # the call succeeds, and tells that an earlier one has failed since


@dataclass(frozen=True)
class Seen:
    """What the library saw of a training, and what that has left behind."""

    failed: str  # the call, "" if none was reached
    calls: tuple[str, ...]
    communicators: int  # that were not aborted
    held: tuple[int, ...]  # of CUDA, where the module counts it


def shim_path() -> Path | None:
    """Of the build that the module is of."""
    module = Path(gpu_exact._module._name).resolve()
    places = [folder / "tests" for folder in module.parents[:4]]
    found = [place / "libgpu_exact_nccl_faults.so" for place in places]
    return next((file for file in found if file.is_file()), None)


class NcclFaults:
    """The library in the place of NCCL."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.GpuExactNcclFaultBegin.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
        self.library.GpuExactNcclFaultEnd.restype = ctypes.c_char_p
        self.library.GpuExactNcclCall.argtypes = [ctypes.c_size_t]
        self.library.GpuExactNcclCall.restype = ctypes.c_char_p
        self.library.GpuExactNcclCommunicators.restype = ctypes.c_longlong

    def begin(self, fault: NcclFault) -> None:
        self.library.GpuExactNcclFaultBegin(fault.number, fault.result, fault.by_state)

    def end(self) -> Seen:
        failed = self.library.GpuExactNcclFaultEnd().decode()
        calls: list[str] = []
        while name := self.library.GpuExactNcclCall(len(calls)):
            calls.append(name.decode())
        held = Faults.held() if Faults.possible else ()
        return Seen(failed, tuple(calls), self.library.GpuExactNcclCommunicators(), held)


def real_nccl() -> str:
    """As the module looks for it."""
    return os.environ.get("GPU_EXACT_NCCL") or "libnccl.so.2"


# What workers run.


def shim() -> NcclFaults:
    """Put in the place of NCCL, which is looked for once in a process, at the first training."""
    path = shim_path()
    assert path is not None
    if real_nccl() != str(path):
        os.environ["GPU_EXACT_REAL_NCCL"] = real_nccl()
        os.environ["GPU_EXACT_NCCL"] = str(path)
    os.environ["GPU_EXACT_PEER_MEMORY"] = "0"  # else short messages go without NCCL
    return NcclFaults(path)


def train_with_nccl_fault(rank: int, n_workers: int, where: int, fault: NcclFault) -> bytes:
    """Worker ``where`` has a call fail."""
    shim().begin(fault if rank == where else NcclFault())
    patience = os.environ["GPU_EXACT_PEER_TIMEOUT"]
    try:
        if fault.number > 0:
            os.environ["GPU_EXACT_PEER_TIMEOUT"] = str(TIMEOUT)
        return train_case(rank, n_workers, {}).model
    finally:
        os.environ["GPU_EXACT_PEER_TIMEOUT"] = patience


def train_with_cuda_fault(rank: int, n_workers: int, where: int, number: int) -> bytes:
    """Worker ``where`` has a CUDA call of the second tree fail, amid what the workers tell each other."""
    os.environ["GPU_EXACT_PEER_MEMORY"] = "1"
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain := dmatrix_of(rank, n_workers)])
    booster.update(dtrain, 0)
    Faults.begin(DEVICE, number if rank == where else 0, OUT_OF_RESOURCES)
    try:
        booster.update(dtrain, 1)
    finally:
        Faults.end()
    return bytes(booster.save_raw("json"))


def train_afterwards(rank: int, n_workers: int) -> tuple[Seen, Trained]:
    """Gives also what was seen since the call above has begun."""
    gc.collect()  # what an error has kept
    seen = shim().end()
    return seen, train_case(rank, n_workers, {})
