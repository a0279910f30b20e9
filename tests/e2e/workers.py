# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Processes of this host as the workers of XGBoost's communicator, and what they run in tests."""

import ctypes
import multiprocessing
import os
import select
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from hist_problems import make_categorical_problem
from oracle import TAKE_OVER, Pretence, rng_state
from problems import STRATEGIES, Problem, make_problem
from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker

DEADLINE = 30  # seconds, for whatever workers do in a test


@dataclass
class Failed:
    """What a worker has raised, or that it is gone."""

    text: str


class Pool:
    """Workers that live on from one group to the next one: to start a process takes seconds."""

    def __init__(self, n_workers: int) -> None:
        self.kills_last = False  # the last worker, when the others have ended
        spawn = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self.processes = []
        self.connections: list[Connection] = []
        for rank in range(n_workers):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(there, rank, n_workers), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self.connections.append(here)
        for connection in self.connections:
            connection.recv()  # it has started

    def __len__(self) -> int:
        return len(self.processes)

    def run(self, function: Callable, *args: Any, **communicator: Any) -> list:
        """``function(rank, n_workers, *args)`` in each worker, all of one group.

        Gives what they return, or `Failed`, in the order of ranks. Fails where one takes longer
        than `DEADLINE`.
        """
        with self.group() as group:
            return self._run(function, args, group | communicator)

    def run_in_groups(self, function: Callable, sizes: list[int]) -> list:
        """``function(rank, n_workers, *groups)``, which is in none of these groups yet."""
        with ExitStack() as stack:
            groups = tuple(stack.enter_context(self.group(size)) for size in sizes)
            return self._run(function, groups, None)

    @contextmanager
    def group(self, size: int = 0) -> Iterator[dict]:
        tracker = RabitTracker(size or len(self), host_ip="127.0.0.1", sortby="task")
        tracker.start()
        yield tracker.worker_args()
        with suppress(xgb.core.XGBoostError):  # of a worker that was killed
            tracker.free()

    def _run(self, function: Callable, args: tuple, communicator: dict | None) -> list:
        for connection in self.connections:
            connection.send((function, args, communicator, len(self)))
        end = time.monotonic() + DEADLINE
        answers = []
        for rank, connection in enumerate(self.connections):
            if self.kills_last and rank == len(self) - 1:
                self.processes[rank].kill()
            if not connection.poll(max(0.0, end - time.monotonic())):
                for process in self.processes:
                    process.kill()
                raise TimeoutError(f"Worker {rank} has not ended in {DEADLINE} s: {answers}")
            try:
                answers.append(connection.recv())
            except EOFError:
                self.processes[rank].join(DEADLINE)
                answers.append(Failed("The process is gone."))
        return answers

    def close(self) -> None:
        for connection in self.connections:
            connection.close()  # ends its worker
        for process in self.processes:
            process.join(DEADLINE)
            if process.is_alive():
                process.kill()


def _serve(connection: Connection, rank: int, n_workers: int) -> None:
    if len(list(Path("/dev").glob("nvidia[0-9]*"))) >= n_workers:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", str(rank))  # each has a GPU
    os.environ["GPU_EXACT_PEER_TIMEOUT"] = str(DEADLINE // 2)
    connection.send(None)
    while True:
        try:
            function, args, communicator, n_workers = connection.recv()
        except EOFError:
            return
        try:
            group: Any = nullcontext()
            if communicator is not None:
                group = CommunicatorContext(dmlc_task_id=str(rank), **communicator)
            with group:
                answer = function(rank, n_workers, *args)
        except Exception as error:  # whatever it is, the test looks at it
            answer = Failed(str(_first(error)))
        Pretence.set(False)
        connection.send(answer)


def _first(error: BaseException) -> BaseException:
    """What was raised before XGBoost failed to leave the group in order, too."""
    return _first(error.__context__) if error.__context__ else error


# How the rows of a problem lie, by the worker: where each begins, and the end.


def shards(n_rows: int, n_workers: int, seed: int) -> list[int]:
    """Some workers have no row now and then, the first one too; some have nearly all."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4)
    if kind == 0:
        inner = [n_rows * i // n_workers for i in range(1, n_workers)]
    elif kind == 1:
        inner = [0] * (n_workers - 1)  # the last one has all
    elif kind == 2:
        inner = [n_rows] * (n_workers - 1)  # the first one has all
    else:
        inner = sorted(rng.integers(0, n_rows + 1, n_workers - 1).tolist())
    return [0, *inner, n_rows]


def shard_of(problem: Problem, begin: int, end: int) -> Problem:
    """A worker's rows; as Dask has it, one without rows knows nothing of columns and weights."""
    rows = slice(begin, end)
    if begin == end:
        nothing = np.empty(0, np.float32)
        rounds = [(nothing, nothing)] * len(problem.gradients)
        return Problem(problem.seed, np.empty((0, 0)), problem.params, {}, rounds)
    info = {k: v if k.startswith("feature") else v[rows] for k, v in problem.info.items()}
    rounds = [(grad[rows], hess[rows]) for grad, hess in problem.gradients]
    return Problem(problem.seed, problem.X[rows], problem.params, info, rounds)


@dataclass
class Trained:
    """What training leaves behind in a worker."""

    model: bytes
    rng: str
    margins: np.ndarray  # of its rows
    gpu_trees: int
    device_bytes: int  # of the last table


def trained(booster: xgb.Booster, dtrain: xgb.DMatrix, before: int) -> Trained:
    margins = booster.predict(dtrain, output_margin=True) if dtrain.num_row() else np.empty(0)
    run = gpu_exact.last_run()
    model = bytes(booster.save_raw("json"))
    return Trained(model, rng_state(booster), margins, run.gpu_trees - before, run.device_bytes)


def grow_problems(
    rank: int, n_workers: int, seeds: list[int], route: dict, peer_memory: str = "1"
) -> list[Trained]:
    os.environ["GPU_EXACT_PEER_MEMORY"] = peer_memory
    return [
        grow_problem(
            rank,
            n_workers,
            make_problem(seed),
            route | {"gpu_exact_strategy": STRATEGIES[seed % len(STRATEGIES)]},
        )
        for seed in seeds
    ]


def grow_problem(rank: int, n_workers: int, problem: Problem, how: dict) -> Trained:
    bounds = shards(len(problem.X), n_workers, problem.seed)
    before = gpu_exact.last_run().gpu_trees
    booster, dtrain = shard_of(problem, bounds[rank], bounds[rank + 1]).train(how)
    return trained(booster, dtrain, before)


def grow_categorical(rank: int, n_workers: int, seeds: list[int]) -> list[Trained]:
    return [
        grow_problem(rank, n_workers, make_categorical_problem(seed), TAKE_OVER) for seed in seeds
    ]


def train_with_types(rank: int, n_workers: int, rounds: list[list]) -> tuple[bytes, list[float]]:
    """With the types of each round and worker. Gives the model, and what set-up took."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 9, N_ROWS), rng.integers(-9, 9, N_ROWS)], axis=1)
    rows = rows_of(rank, n_workers)
    dtrain = xgb.DMatrix(X[rows], X[rows, 0] % 3)
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    set_up = []
    for i, types in enumerate(rounds):
        dtrain.feature_types = types[rank]
        boost_integers(booster, dtrain, range(i, i + 1))
        set_up.append(gpu_exact.last_run().set_up_ms)
    return bytes(booster.save_raw("json")), set_up


# A table with what exact trees care about, and a label for each kind of objective.

N_ROWS = 240


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.integers(0, 9, (N_ROWS, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, rng.integers(0, 3, N_ROWS).astype(np.float32)


def rows_of(rank: int, n_workers: int) -> slice:
    return slice(N_ROWS * rank // n_workers, N_ROWS * (rank + 1) // n_workers)


def dmatrix_of(rank: int, n_workers: int) -> xgb.DMatrix:
    X, y = table()
    rows = rows_of(rank, n_workers)
    return xgb.DMatrix(X[rows], y[rows])


PARAMS = {"nthread": 1, "base_score": 0.5, "max_depth": 4, "verbosity": 1}


def train_case(
    rank: int, n_workers: int, params: dict, continued: bool = False, pretend: bool = False
) -> Trained:
    """Four rounds; ``continued``: in two steps, the second from what the first has saved."""
    before = gpu_exact.last_run().gpu_trees
    Pretence.set(pretend)
    dtrain = dmatrix_of(rank, n_workers)
    params = PARAMS | TAKE_OVER | params
    model = None
    if continued:
        first = xgb.train(params, dtrain, 2)
        model = xgb.Booster(model_file=first.save_raw("ubj"))
    booster = xgb.train(params, dtrain, 2 if continued else 4, xgb_model=model)
    return trained(booster, dtrain, before)


def draw_with_deleted_rows(rank: int, n_workers: int) -> Trained:
    """Rows with a negative hessian take no random number; here they are of the first worker."""
    before = gpu_exact.last_run().gpu_trees
    dtrain = dmatrix_of(rank, n_workers)
    rows = rows_of(rank, n_workers)
    grad = ((np.arange(N_ROWS) % 17 - 8) / 16).astype(np.float32)
    hess = np.where((np.arange(N_ROWS) < 40) & (np.arange(N_ROWS) % 3 == 0), -1, 1)
    booster = xgb.Booster(PARAMS | TAKE_OVER | {"subsample": 0.5}, [dtrain])
    for i in range(3):
        booster.boost(dtrain, i, grad=grad[rows], hess=hess[rows].astype(np.float32))
    return trained(booster, dtrain, before)


def train_with_new_table(rank: int, n_workers: int, at: int, where: int) -> tuple[Trained, list]:
    """From round ``at`` worker ``where`` takes another DMatrix; gives also what set-up took."""
    before = gpu_exact.last_run().gpu_trees
    dtrain, other = (dmatrix_of(rank, n_workers) for _ in range(2))  # all make both: XGBoost meets
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    set_up = []
    for i in range(4):
        if i == at and rank == where:
            dtrain = other
        booster.update(dtrain, i)
        set_up.append(gpu_exact.last_run().set_up_ms)
    return trained(booster, dtrain, before), set_up


def boost_integers(booster: xgb.Booster, dtrain: xgb.DMatrix, rounds: range) -> None:
    """Gradients whose sums are exact in any order of rows."""
    grad = dtrain.get_label() - 1
    for i in rounds:
        booster.boost(dtrain, i, grad=grad, hess=np.ones_like(grad))


def train_in_two_groups(
    rank: int, n_workers: int, first: dict, second: dict
) -> tuple[bytes, bytes, list[float]]:
    """A DMatrix and a booster that outlive their group; in the second one ranks are reversed."""
    dtrain = dmatrix_of(rank, n_workers)
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    set_up = []
    with CommunicatorContext(dmlc_task_id=str(rank), **first):
        boost_integers(booster, dtrain, range(2))
        set_up.append(gpu_exact.last_run().set_up_ms)
    with CommunicatorContext(dmlc_task_id=str(n_workers - rank), **second):
        boost_integers(booster, dtrain, range(2, 4))
        set_up.append(gpu_exact.last_run().set_up_ms)
    together = bytes(booster.save_raw("json"))
    boost_integers(booster, dtrain, range(4, 5))  # alone
    set_up.append(gpu_exact.last_run().set_up_ms)
    return together, bytes(booster.save_raw("json")), set_up


def train_after_others(rank: int, n_workers: int, others: dict, all_of_them: dict) -> list[float]:
    """The last worker has not seen the table that the others have trained on."""
    if rank != n_workers - 1:
        with CommunicatorContext(dmlc_task_id=str(rank), **others):
            dtrain = dmatrix_of(rank, n_workers)
            boost_integers(xgb.Booster(PARAMS | TAKE_OVER, [dtrain]), dtrain, range(1))
    dtrain = dmatrix_of(rank, n_workers)
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    set_up = []
    with CommunicatorContext(dmlc_task_id=str(rank), **all_of_them):
        for i in range(3):
            boost_integers(booster, dtrain, range(i, i + 1))
            set_up.append(gpu_exact.last_run().set_up_ms)
    return set_up


def meet(rank: int, n_workers: int) -> tuple[float, float]:
    """When each begins and ends a call without bytes, to which the last worker is late."""
    if rank == n_workers - 1:
        time.sleep(1)
    begin = time.monotonic()  # of all processes alike
    gpu_exact._module.GpuExactReferenceAllGather(None, ctypes.c_size_t(0))
    return begin, time.monotonic()


def words_of(rank: int, n: int) -> np.ndarray:
    return np.random.default_rng(rank).integers(0, 2**64, n, np.uint64)


def gather_and_sum(rank: int, n_workers: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of all workers, and their sums."""
    gathered = np.zeros((n_workers, n), np.uint64)
    gathered[rank] = summed = words_of(rank, n)
    words = ctypes.POINTER(ctypes.c_uint64)
    call = gpu_exact._module.GpuExactReferenceAllGather
    call(gathered.ctypes.data_as(words), ctypes.c_size_t(8 * n))
    call = gpu_exact._module.GpuExactReferenceAllReduce
    call(summed.ctypes.data_as(words), ctypes.c_size_t(n))
    return gathered, summed


def train_and_fail(rank: int, n_workers: int, how: str) -> bytes:
    """The last worker does something else than the others. Gives the model if nothing fails."""
    other = rank == n_workers - 1
    # By the strategy whose text of what is missing the test knows.
    params = PARAMS | TAKE_OVER | {"subsample": 0.8, "gpu_exact_strategy": "histogram"}
    rounds = 0

    def objective(margins: np.ndarray, dtrain: xgb.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        nonlocal rounds
        rounds += 1
        grad = margins - dtrain.get_label()
        if other and rounds == 2:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "kill in a tree":
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            elif how == "stop in a tree":  # so that it is not even noticed to be gone
                subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -STOP {os.getpid()}"])
            elif how == "raise":
                raise ValueError("This worker's objective is broken.")
            elif how.startswith("sleep"):  # longer than the others wait
                time.sleep(9)
            elif how == "not_finite":
                grad[3] = np.nan
            elif how in ("build", "positions"):
                gpu_exact._module.GpuExactReferenceFail(how.encode())
            elif how == "sends_more":  # than the others read
                send_to_all(bytes(1000))
                raise ValueError("This worker's objective is broken.")
        elif how == "sends_more" and rounds == 2:
            time.sleep(6)  # until it is gone
        return grad, np.ones_like(grad)

    if other:
        if how == "set up":
            gpu_exact._module.GpuExactReferenceFail(how.encode())
        elif how == "not_taken_over":
            gpu_exact.take_over(False)
        params |= OTHER_PARAMS.get(how, {})
    n_rounds = {"kill in a tree": 100_000, "stop in a tree": 100_000}.get(how, 4)
    if other and how == "fewer_rounds":
        n_rounds = 2
    dtrain = dmatrix_of(rank, n_workers)
    if how == "sleep among signals" and not other:
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)  # seconds
    try:
        return bytes(xgb.train(params, dtrain, n_rounds, obj=objective).save_raw())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        gpu_exact.take_over(True)


def train_and_repeat(rank: int, n_workers: int, failing: int) -> bytes:
    """A round fails on the last worker alone, when it is done on the others; it has another try."""
    dtrain = dmatrix_of(rank, n_workers)
    booster = xgb.Booster(PARAMS | TAKE_OVER, [dtrain])
    for i in range(4):
        if i == failing and rank == n_workers - 1:
            gpu_exact._module.GpuExactReferenceFail(b"positions")
            with suppress(xgb.core.XGBoostError):
                booster.update(dtrain, i)
                raise AssertionError("This worker's round has not failed.")
        booster.update(dtrain, i)
    return bytes(booster.save_raw())


def train_from(rank: int, n_workers: int, other: str) -> bytes:
    """The last worker goes on from fewer rounds than the others, or knows of fewer classes."""
    dtrain = dmatrix_of(rank, n_workers)
    params = PARAMS | TAKE_OVER | {"base_score": 0.5}
    is_other = rank == n_workers - 1
    if other == "fewer classes":
        labels = dtrain.get_label() > 0
        dtrain.set_label(labels if is_other else labels + np.arange(len(labels)) % 2)
        params |= {"objective": "multi:softprob", "num_class": 3}
        params |= {"objective": "binary:logistic", "num_class": 0} if is_other else {}
        return bytes(xgb.train(params, dtrain, 3).save_raw())
    booster = xgb.train(params, dtrain, 3)
    booster = xgb.Booster(params, model_file=booster.save_raw()) if other == "loaded" else booster
    booster = booster[:1] if is_other else booster
    return bytes(xgb.train(params, dtrain, 2, xgb_model=booster).save_raw())


def connections() -> Iterator[socket.socket]:
    """Those with other workers, in turn; NCCL's, too."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as connection:
                listens = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if connection.family == socket.AF_INET and not listens:
                    yield connection


def send_to_all(message: bytes) -> None:
    for connection in connections():
        with suppress(OSError):  # one that has ended
            connection.send(message)


def has_ended(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))


def connections_after_a_loss(rank: int, n_workers: int) -> list[bool]:
    """Whether each has ended, on a worker that has lost one and is in the group still."""
    with suppress(xgb.core.XGBoostError):
        train_and_fail(rank, n_workers, "raise")
    return [has_ended(connection) for connection in connections()]


OTHER_PARAMS = {
    "other_depth": {"max_depth": 3},
    "other_method": {"tree_method": "hist"},
    "other_forest": {"num_parallel_tree": 2},
    "short_of_memory": {"gpu_exact_memory_limit": 4096},
    "other_direction": {"default_direction": "left"},
    "other_policy": {"grow_policy": "lossguide"},
    "other_seed": {"seed": 5},
    "other_strategy": {"gpu_exact_strategy": "sort"},
    "other_route": {"updater": "grow_gpu_exact,prune"},
    "refused": {"interaction_constraints": "[[0, 0.5]]"},
}
