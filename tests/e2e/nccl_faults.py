# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Calls of NCCL that are made to fail, and what workers run meanwhile: see support/nccl_faults.cc."""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from faults import DEVICE, OUT_OF_RESOURCES, Faults, Site
from oracle import TAKE_OVER
from workers import PARAMS, Trained, dmatrix_of, train_case

SYSTEM_ERROR, REMOTE_ERROR = 2, 6  # ncclResult_t
KILLED = -1  # in its place: the process is killed
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
    with patience(TIMEOUT) if fault.number > 0 else nullcontext():
        return train_case(rank, n_workers, {}).model


@dataclass(frozen=True)
class CallFault:
    """A call of the module in one of the workers, see faults.py."""

    number: int = 0  # from 1, counted from that update on; 0: none fails
    kind: int = DEVICE
    update: int = 0  # the first one sets up


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """How long this worker waits for the others."""
    usual = os.environ["GPU_EXACT_PEER_TIMEOUT"]
    os.environ["GPU_EXACT_PEER_TIMEOUT"] = str(seconds)
    try:
        yield
    finally:
        os.environ["GPU_EXACT_PEER_TIMEOUT"] = usual


def train_with_call_fault(rank: int, n_workers: int, where: int, fault: CallFault) -> bytes:
    """Worker ``where`` has a call fail, amid what the workers tell each other."""
    os.environ["GPU_EXACT_PEER_MEMORY"] = "1"
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain := dmatrix_of(rank, n_workers)])
    booster.save_config()  # configured already: what fails there is not the trees'
    try:
        for i in range(2):
            if i == fault.update:
                number = fault.number if rank == where else 0
                Faults.begin(fault.kind, number, OUT_OF_RESOURCES)
            booster.update(dtrain, i)
        model = bytes(booster.save_raw("json"))
        del booster, dtrain  # calls that give something back may fail too
        return model
    finally:
        Faults.end()


def train_with_little_patience(rank: int, n_workers: int, where: int, fault: CallFault) -> bytes:
    with patience(TIMEOUT):
        return train_with_call_fault(rank, n_workers, where, fault)


def sites_of_worker(rank: int, n_workers: int) -> list[Site]:
    """Where the training before made its calls, if none was to fail."""
    return Faults.sites()


def left_behind(rank: int, n_workers: int) -> tuple[str, tuple[int, ...]]:
    """The call that failed in the training before, "" if none did, and what is held."""
    gc.collect()  # what an error has kept
    return Faults.end(), Faults.held()


def train_afterwards(rank: int, n_workers: int) -> tuple[Seen, Trained]:
    """Gives also what was seen since the call above has begun."""
    gc.collect()  # what an error has kept
    seen = shim().end()
    return seen, train_case(rank, n_workers, {})
