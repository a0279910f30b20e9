# Copyright 2026, the gpu_exact contributors
"""Calls of NCCL fail amid the training of two workers, one call in each training.

Each time the worker whose call fails has one error, which names the call and the remedy, and the
other one ends soon with an error or with the right model; where something is given back there is no
error. Nothing is lost, and the next training of the same processes is right.

It takes two GPUs and NCCL. `Pool` fails a test in which a training takes longer than 30 seconds.
"""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact
from faults import Faults, held_by_worker
from nccl_faults import (
    POLL,
    REMOTE_ERROR,
    NcclFault,
    NcclFaults,
    Seen,
    real_nccl,
    shim_path,
    train_afterwards,
    train_with_cuda_fault,
    train_with_nccl_fault,
)
from oracle import run_python
from workers import Failed, Pool, Trained, train_case

N_WORKERS = 2
REMEDY = "Train again; if that fails too, restart all workers; NCCL_DEBUG=WARN"
OF_THE_OTHER = (
    "A worker has not answered for",
    "has lost another worker",
    "NCCL error",
    "has failed",
)


def n_gpus() -> int:
    """Of the machine; as workers count them."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


@pytest.fixture
def shim() -> Path:
    path = shim_path()
    if path is None:
        pytest.skip("found no tests/libgpu_exact_nccl_faults.so in the module's build folder")
    return path


@pytest.fixture
def nccl(builder: str, shim: Path) -> str:
    """The library; skips where trainings do not use it, or cannot."""
    if builder.startswith("reference builder"):
        pytest.skip("the reference builder does not use NCCL")
    try:
        ctypes.CDLL(real_nccl())
    except OSError as error:
        pytest.skip(f"NCCL was not found; name libnccl.so.2 by GPU_EXACT_NCCL: {error}")
    return real_nccl()


@pytest.fixture
def pool(nccl: str) -> Iterator[Pool]:
    if n_gpus() < N_WORKERS:
        pytest.skip(f"{n_gpus()} GPU is visible, and two workers use NCCL where each has its own")
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        pytest.skip("CUDA_VISIBLE_DEVICES is set, so that workers would share a GPU: unset it")
    pool = Pool(N_WORKERS)
    yield pool
    pool.close()


def run(pool: Pool, expected: Trained, where: int, fault: NcclFault) -> tuple[list, list[Seen]]:
    """Give what the workers return and what was seen, after another training that was right."""
    print("now:", where, fault)  # shown where a test fails
    answers = pool.run(train_with_nccl_fault, where, fault)
    afterwards = pool.run(train_afterwards)
    assert not [a for a in afterwards if isinstance(a, Failed)], (fault, answers, afterwards)
    for _, trained in afterwards:
        assert trained.model == expected.model, (fault, answers)
    return answers, [seen for seen, _ in afterwards]


def faults_of(calls: tuple[str, ...]) -> list[NcclFault]:
    """The first and the last call of each name."""
    last = {name: i for i, name in enumerate(calls, 1)}
    first = {name: calls.index(name) + 1 for name in last}
    faults = [NcclFault(number) for number in sorted({*first.values(), *last.values()})]
    return [*faults, NcclFault(last[POLL], REMOTE_ERROR, by_state=True)]


def test_nccl_calls(pool: Pool, record_property: Callable[[str, object], None]) -> None:
    expected = train_case(0, 1, {})
    answers, usual = run(pool, expected, 0, NcclFault())
    assert answers == [expected.model] * N_WORKERS
    assert "ncclSend" in usual[1].calls, "workers did not use NCCL"
    cases = [(1, fault) for fault in faults_of(usual[1].calls)]
    cases.append((0, NcclFault(usual[0].calls.index("ncclGetUniqueId") + 1)))
    n_errors = 0
    for where, fault in cases:
        name = usual[where].calls[fault.number - 1]
        answers, seen = run(pool, expected, where, fault)
        context = (name, where, fault, answers, seen[where].calls)
        assert [s.failed for s in seen] == [name if rank == where else "" for rank in (0, 1)], (
            context
        )
        for s, u in zip(seen, usual, strict=True):
            assert (s.communicators, s.held) == (0, u.held), context
        if name == "ncclCommAbort":
            assert answers == [expected.model] * N_WORKERS, context
            continue
        n_errors += 1
        own, other = answers[where], answers[1 - where]
        assert isinstance(own, Failed), context
        assert own.text.count(f"Worker {where} of {N_WORKERS}: NCCL error ") == 1, context
        assert f" from {name}. {REMEDY}" in own.text, context
        if isinstance(other, Failed):  # else it had all that it needed
            assert any(text in other.text for text in OF_THE_OTHER), context
        else:
            assert other == expected.model, context
    record_property("faults", len(cases))
    record_property("errors", n_errors)


def test_a_cuda_call_of_one_worker(pool: Pool) -> None:
    """The others hear that it has left, and do not wait for the deadline."""
    if not Faults.possible:
        pytest.skip("takes the module whose calls can be made to fail")
    right = pool.run(train_with_cuda_fault, 0, 0)
    kept = pool.run(held_by_worker)
    for number in (15, 30, 45):
        begin = time.monotonic()
        answers = pool.run(train_with_cuda_fault, 1, number)
        assert time.monotonic() - begin < 12, answers  # of the 15 seconds of `Pool`
        assert [isinstance(answer, Failed) for answer in answers] == [True, True], (number, answers)
        assert "CUDA error" in answers[1].text, answers
        assert "has failed" in answers[0].text or "another worker" in answers[0].text, answers
        assert pool.run(held_by_worker) == kept, number
        assert pool.run(train_with_cuda_fault, 0, 0) == right


ON_SEVERAL_GPUS = """
import sys
from nccl_faults import NcclFault, shim
from workers import train_case
faults = shim()
faults.begin(NcclFault(1))
train_case(0, 1, {"gpu_exact_devices": sys.argv[1]})
print(faults.end().calls)
"""


def test_gpus_of_one_process_do_without_nccl(nccl: str) -> None:
    """Threads of one process copy from each other: there is no call that could fail."""
    devices = "0,1" if gpu_exact.device_status(1).usable else "0,0"
    assert run_python(ON_SEVERAL_GPUS, devices).strip() == "()"


def test_the_call_that_is_asked_for_fails(shim: Path) -> None:
    """By the library alone, whose calls do nothing where it has no NCCL to hand them on to."""
    faults = NcclFaults(shim)
    library, state = faults.library, ctypes.c_int()
    names = ("ncclGroupStart", POLL, "ncclGroupEnd")  # polls in a row are one call

    def call() -> list[int]:
        polls = [lambda: library.ncclCommGetAsyncError(None, ctypes.byref(state))] * 2
        return [f() for f in (library.ncclGroupStart, *polls, library.ncclGroupEnd)]

    for number, results in enumerate([[0, 0, 0, 0], [2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 2]]):
        faults.begin(NcclFault(number))
        assert call() == results
        seen = faults.end()
        assert (seen.failed, seen.calls) == (names[number - 1] if number > 0 else "", names)
        assert call() == [0, 0, 0, 0]
    faults.begin(NcclFault(2, REMOTE_ERROR, by_state=True))
    assert call() == [0, 0, 0, 0]
    assert state.value == REMOTE_ERROR
