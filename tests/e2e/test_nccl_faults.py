# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
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
from contextlib import contextmanager
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact
from faults import DEVICE, HOST, Faults, Site, assert_explained, held_by_worker
from nccl_faults import (
    KILLED,
    POLL,
    REMOTE_ERROR,
    TIMEOUT,
    CallFault,
    NcclFault,
    NcclFaults,
    Seen,
    left_behind,
    real_nccl,
    shim_path,
    sites_of_worker,
    train_afterwards,
    train_with_call_fault,
    train_with_little_patience,
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


@contextmanager
def pool_of(n_workers: int) -> Iterator[Pool]:
    if n_gpus() < n_workers:
        pytest.skip(f"{n_gpus()} GPU visible, and {n_workers} use NCCL where each worker has its own")
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        pytest.skip("CUDA_VISIBLE_DEVICES is set, so that workers would share a GPU: unset it")
    pool = Pool(n_workers)
    yield pool
    pool.close()


@pytest.fixture
def pool(nccl: str) -> Iterator[Pool]:
    with pool_of(N_WORKERS) as pool:
        yield pool


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
        assert own.text.count(f"Rank {where} of {N_WORKERS}: NCCL error ") == 1, context
        assert f" from {name}. {REMEDY}" in own.text, context
        if isinstance(other, Failed):  # else it had all that it needed
            assert any(text in other.text for text in OF_THE_OTHER), context
        else:
            assert other == expected.model, context
    record_property("faults", len(cases))
    record_property("errors", n_errors)


@pytest.mark.parametrize("n_workers", [2, 4])
@pytest.mark.parametrize("part", [0.4, 0.7])  # of the calls: in a level, not in what comes before
def test_a_worker_is_killed_in_a_level(nccl: str, n_workers: int, part: float) -> None:
    """The others wait for a call of NCCL that it does not make, no longer than their deadline."""
    with pool_of(n_workers) as pool:
        expected = train_case(0, 1, {})
        _, usual = run(pool, expected, 0, NcclFault())
        last = n_workers - 1
        n_calls = len(usual[last].calls)
        number = usual[last].calls.index("ncclGroupEnd", int(part * n_calls)) + 1
        begin = time.monotonic()
        answers = pool.run(train_with_nccl_fault, last, NcclFault(number, KILLED))
        seconds = time.monotonic() - begin
    assert [isinstance(answer, Failed) for answer in answers] == [True] * n_workers, answers
    assert answers[last].text == "The process is gone."
    for answer in answers[:last]:
        assert any(text in answer.text for text in OF_THE_OTHER), answer.text
    assert seconds < 3 * TIMEOUT, answers


@pytest.fixture
def workers(builder: str, request: pytest.FixtureRequest) -> Iterator[Pool]:
    """With GPUs as above; those of the reference builder need none."""
    if not builder.startswith("reference builder"):
        yield request.getfixturevalue("pool")
        return
    workers = Pool(N_WORKERS)
    yield workers
    workers.close()


def skip_without_hook() -> None:
    if not Faults.possible:
        pytest.skip("takes the module whose calls can be made to fail")


def test_others_hear_that_one_has_failed(pool: Pool) -> None:
    """Where a CUDA call fails amid a tree they do not wait for the deadline."""
    skip_without_hook()
    right = pool.run(train_with_call_fault, 0, CallFault())
    kept = pool.run(held_by_worker)
    for number in (15, 30, 45):
        begin = time.monotonic()
        answers = pool.run(train_with_call_fault, 1, CallFault(number, update=1))
        assert time.monotonic() - begin < 12, answers  # of the 15 seconds of `Pool`
        assert [isinstance(answer, Failed) for answer in answers] == [True, True], (number, answers)
        assert "CUDA error" in answers[1].text, answers
        told = ("CUDA error", "another worker", "rank 1 has failed")  # by who meets it first
        assert any(text in answers[0].text for text in told), answers
        assert pool.run(held_by_worker) == kept, number
        assert pool.run(train_with_call_fault, 0, CallFault()) == right


def calls_to_fail(sites: list[Site], n_more: int) -> list[int]:
    """The first call of each name, and so many more of them all."""
    first: dict[str, int] = {}
    for site in sites:
        first[site.call] = min(site.first, first.get(site.call, site.first))
    n_calls = max(site.last for site in sites)
    return sorted({*first.values(), *(1 + n_calls * i // n_more for i in range(n_more))})


def test_calls_to_fail() -> None:
    sites = [Site("a", 1, 70), Site("b", 5, 100), Site("a", 4, 4), Site("c", 93, 93)]
    assert calls_to_fail(sites, 4) == [1, 5, 26, 51, 76, 93]


def assert_one_failed(answers: list, failed: str, right: list) -> bool:
    """Worker 1 told its error, and the other one that, or it had all it needed; gives whether it did.

    Without an error both have the right model.
    """
    context = (failed, answers)
    other, own = answers
    if not isinstance(own, Failed):  # something was given back, or done without
        assert answers == right, context
        return False
    assert failed != "", context
    assert_explained(own.text, failed)
    if isinstance(other, Failed):
        told = other.text == own.text or any(text in other.text for text in OF_THE_OTHER)
        assert told, context
    else:
        assert other == right[0], context
    return True


@pytest.mark.parametrize("update", [0, 1], ids=["set-up", "tree"])
@pytest.mark.parametrize("kind", [DEVICE, HOST], ids=["CUDA", "host"])
def test_calls_of_one_worker(
    workers: Pool,
    builder: str,
    kind: int,
    update: int,
    record_property: Callable[[str, object], None],
) -> None:
    """From the first update on, where the workers meet, or from the second one on.

    Of the set-up the shared memory is done without where it fails: then there is no error.
    """
    skip_without_hook()
    right = workers.run(train_with_call_fault, 1, CallFault())
    assert right[0] == right[1]
    assert workers.run(train_with_call_fault, 1, CallFault(0, kind, update)) == right
    sites = workers.run(sites_of_worker)[1]
    kept = [held for _, held in workers.run(left_behind)]
    numbers = calls_to_fail(sites, 8 if kind == DEVICE else 6)
    calls, n_errors = {}, 0
    for number in numbers:
        fault = CallFault(number, kind, update)
        print("now:", fault)  # shown where a test fails
        begin = time.monotonic()
        answers = workers.run(train_with_little_patience, 1, fault)
        seconds = time.monotonic() - begin
        (_, held), (failed, own_held) = workers.run(left_behind)
        context = (fault, failed, answers)
        assert seconds < 20, context
        assert [held, own_held] == kept, context
        n_errors += assert_one_failed(answers, failed, right)
        assert workers.run(train_with_call_fault, 1, CallFault()) == right, context
        calls[failed] = calls.get(failed, 0) + 1
    record_property("faults", len(numbers))
    record_property("calls", max(site.last for site in sites))
    record_property("names", len(calls))
    record_property("errors", n_errors)
    if (kind, update) == (DEVICE, 0) and not builder.startswith("reference builder"):
        assert {"cudaIpcGetMemHandle", "cudaIpcOpenMemHandle"} <= calls.keys(), calls


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
