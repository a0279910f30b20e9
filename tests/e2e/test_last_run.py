# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What users see: what a table will take, what a tree took, who grew it; a long set-up says so."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import (
    BY_NAME,
    TAKE_OVER,
    Pretence,
    assert_grown,
    run_python,
    stock,
    trees_grown,
)
from small_tables import make_table
from test_tables import OneBatch

SLOW_SET_UP = """
import sys
import numpy as np, xgboost as xgb, xgboost_gpu_exact as gpu_exact
gpu_exact._module.GpuExactReferenceSetUpMs(int(sys.argv[1]))
X = np.arange(60, dtype=np.float32).reshape(20, 3)
params = {"tree_method": "exact", "verbosity": int(sys.argv[2])}
xgb.train(params, xgb.DMatrix(X, X[:, 0]), 2)
print(gpu_exact.last_run().set_up_ms)
"""


def make_dmatrix() -> xgb.DMatrix:
    X, y = make_table()
    return xgb.DMatrix(X, y)


@pytest.mark.parametrize("strategy", ["sort", "histogram"])
def test_a_tree_is_described(builder: str, strategy: str) -> None:
    dtrain, before = make_dmatrix(), trees_grown()
    params = TAKE_OVER | {"gpu_exact_strategy": strategy, "subsample": 0.5, "max_depth": 4}
    xgb.train(params | {"num_parallel_tree": 3}, dtrain, 2)
    assert_grown(before, gpu=6)
    run = gpu_exact.last_run()
    assert (run.device, run.reason) == (builder, "")
    assert (run.rows, run.columns) == (dtrain.num_row(), dtrain.num_col())
    assert run.entries == dtrain.num_nonmissing()
    assert list(run.phases_ms) == ["sampling", "start", "levels", "finish", "writing"]
    assert run.set_up_ms > 0 and run.tree_ms > 0 and min(run.phases_ms.values()) >= 0
    assert sum(run.phases_ms.values()) == pytest.approx(run.tree_ms, rel=0.01)
    if builder.startswith("reference"):
        assert run.refined_share == 0
        assert (run.strategy, run.device_bytes, run.peak_bytes) == ("", 3 << 20, 6 << 20)
    else:
        assert run.refined_share is None or 0 <= run.refined_share <= 1
        assert run.strategy == strategy
        assert run.phases_ms["start"] > 0 and run.phases_ms["levels"] > 0
        estimate = gpu_exact.memory_estimate(run.rows, run.columns, run.entries, max_depth=4)
        assert 0 < run.planned_bytes <= estimate[strategy].peak
        assert 0 < run.device_bytes <= run.peak_bytes


def test_entries_looked_into_are_told(builder: str) -> None:
    """Of a column of many values few are; of one of few values none."""
    if builder.startswith("reference builder"):
        pytest.skip("the reference builder has no ranges")
    X = np.random.default_rng(0).standard_normal((200_000, 2)).astype(np.float32)
    params = TAKE_OVER | {"gpu_exact_strategy": "histogram", "max_depth": 4}
    xgb.train(params, xgb.DMatrix(X, X[:, 0] * X[:, 1]), 1)
    share = gpu_exact.last_run().refined_share
    assert share is not None and 0 < share < 0.5
    xgb.train(params, xgb.DMatrix((X > 0).astype(np.float32), X[:, 0] * X[:, 1]), 1)
    assert not gpu_exact.last_run().refined_share


def test_who_grows_is_counted(builder: str) -> None:
    """Nobody else tells: a configuration names updaters, whoever does their work."""
    dtrain, before = make_dmatrix(), trees_grown()
    with stock():
        theirs = xgb.train(TAKE_OVER, dtrain, 2)
    assert_grown(before)
    theirs.update(dtrain, 2)  # keeps its updater
    assert_grown(before)
    for n, route in enumerate([TAKE_OVER, BY_NAME], 1):
        xgb.train(route, dtrain, 2)
        assert_grown(before, gpu=2 * n)
    with stock():
        xgb.train(BY_NAME, dtrain, 1)  # goes without taking over
    assert_grown(before, gpu=5)


def test_taking_over_ends(exact_on_cuda: dict) -> None:
    """On a GPU nothing is left then: XGBoost refuses to train, and to predict."""
    dtrain, before = make_dmatrix(), trees_grown()
    ours = xgb.train(exact_on_cuda, dtrain, 1)
    assert_grown(before, gpu=1)
    refusal = "not supported on GPU|not compiled with GPU"
    gpu_exact.take_over(False)
    try:
        with pytest.raises(xgb.core.XGBoostError, match=refusal):
            xgb.train(exact_on_cuda, dtrain, 1)
        ours.set_param({"eta": 0.1})  # is configured anew
        with pytest.raises(xgb.core.XGBoostError, match=refusal):
            ours.predict(dtrain)
    finally:
        gpu_exact.take_over(True)
    assert_grown(before, gpu=1)


def test_trees_of_the_cpu_are_counted_with_their_reason(builder: str) -> None:
    dtrain, before = make_dmatrix(), trees_grown()
    booster = xgb.Booster({"base_score": 0.0} | TAKE_OVER, [dtrain])
    grad = np.full(dtrain.num_row(), np.nan, np.float32)
    booster.boost(dtrain, 0, grad=grad, hess=np.ones_like(grad))
    assert_grown(before, cpu=1)
    run = gpu_exact.last_run()
    assert run.device == "CPU" and "NaN" in run.reason
    assert run.set_up_ms == run.tree_ms == run.device_bytes == 0


def test_a_reason_is_told_to_the_letter(builder: str) -> None:
    """Quotes and backslashes too; a line's end becomes a blank."""
    if not builder.startswith("reference"):
        pytest.skip("only the reference module refuses for any reason that is wanted")
    code = """
import numpy as np, xgboost as xgb, xgboost_gpu_exact as gpu_exact
X = np.arange(60, dtype=np.float32).reshape(20, 3)
xgb.train({"tree_method": "exact", "verbosity": 0}, xgb.DMatrix(X, X[:, 0]), 1)
run = gpu_exact.last_run()
print(run.device, run.reason)
"""
    told = run_python(code, GPU_EXACT_REFERENCE_REFUSES='The "GPU" is at \\dev,\nor not.')
    assert told == 'CPU The "GPU" is at \\dev, or not.\n'


@pytest.fixture
def log(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[str]]]:
    """Lines of XGBoost's logger about trees, since the last call."""

    def lines() -> list[str]:
        captured = capfd.readouterr()
        return re.findall("Exact tree on .*", captured.out + captured.err)

    yield lines
    xgb.set_config(verbosity=1)


def test_a_line_a_tree(builder: str, log: Callable[[], list[str]]) -> None:
    dtrain = make_dmatrix()
    xgb.train(TAKE_OVER | {"verbosity": 1}, dtrain, 2)
    assert log() == []
    xgb.train(TAKE_OVER | {"verbosity": 2}, dtrain, 2)
    lines = log()
    assert len(lines) == 2
    assert all(builder in line and re.search(r" ms \(sampling .*levels ", line) for line in lines)
    run = gpu_exact.last_run()
    said = re.search(r", ([\d.]+) MiB \(at most ([\d.]+)\)", lines[-1])
    held = [run.device_bytes / 2**20, run.peak_bytes / 2**20]
    assert said and list(map(float, said.groups())) == pytest.approx(held, rel=0.01), lines[-1]
    for line in lines:
        numbers = re.findall(r"[\d.]+(?:e[+-]\d+)?", line.split(": ", 1)[1])
        assert len(numbers) >= 8
        assert all(float(number) == float(f"{float(number):.3g}") for number in numbers), line


def test_a_table_of_an_iterator_is_prepared_once(builder: str, tmp_path: Path) -> None:
    """Its page is another one each time, and would be read and sorted for every tree."""
    dtrain = xgb.DMatrix(OneBatch(f"{tmp_path}/cache"))
    booster, set_ups = xgb.Booster(TAKE_OVER, [dtrain]), set()
    for i in range(4):
        booster.update(dtrain, i)
        set_ups.add(gpu_exact.last_run().set_up_ms)
    other = xgb.train(TAKE_OVER, dtrain, 4)  # with a table of the first booster's
    set_ups.add(gpu_exact.last_run().set_up_ms)
    assert len(set_ups) == 1
    assert other.save_raw() == booster.save_raw()


def test_a_table_is_prepared_anew_after_a_failure(builder: str) -> None:
    """Nobody knows what is left of it."""
    if not builder.startswith("reference builder"):
        pytest.skip("only the reference module fails where a test wants it")
    dtrain = make_dmatrix()
    booster = xgb.Booster(TAKE_OVER, [dtrain])
    booster.update(dtrain, 0)
    gpu_exact._module.GpuExactReferenceSetUpMs(50)
    gpu_exact._module.GpuExactReferenceFail(b"build")
    try:
        with pytest.raises(xgb.core.XGBoostError, match="Out of host memory"):
            booster.update(dtrain, 1)
        booster.update(dtrain, 1)
    finally:
        gpu_exact._module.GpuExactReferenceSetUpMs(0)
    assert gpu_exact.last_run().set_up_ms >= 50


def test_tables_that_look_alike_are_told_apart(builder: str) -> None:
    """Of the same sizes, alive together, from the same categories' reference."""
    X, y = make_table()
    models = []
    for table in (X, X[:, ::-1].copy()):
        dtrain = xgb.DMatrix(table, y)
        models.append((dtrain, xgb.train(TAKE_OVER, dtrain, 2)))
    (_, one), (second, two) = models
    assert one.save_raw() != two.save_raw()
    with stock():
        theirs = xgb.train(TAKE_OVER, second, 1)
    assert two[:1].get_dump() == theirs.get_dump()


@pytest.mark.skipif(not Pretence.possible, reason="only the reference module can be slow")
@pytest.mark.parametrize(
    ("ms", "verbosity", "said"), [(2500, 1, True), (200, 1, False), (2500, 0, False)]
)
def test_a_long_set_up_says_so(
    ms: int, verbosity: int, said: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os; os.dup2(1, 2)\n" + SLOW_SET_UP  # what the process says on either
    text = run_python(code, str(ms), str(verbosity))
    assert ("preparing the table of 20 x 3 for the GPU" in text) == said
    assert float(text.split()[-1]) >= ms


def test_memory_estimate() -> None:
    estimate = gpu_exact.memory_estimate(1_000_000, 28)
    assert list(estimate) == ["sort", "histogram"]
    for plan in estimate.values():
        assert list(plan.stages) == ["reading", "sorting", "growing"]
        assert plan.peak == max(sum(arrays.values()) for arrays in plan.stages.values())
    assert estimate["sort"].stages["reading"]["table by row"] == 8 * 28_000_000 + 8 * 1_000_000
    assert estimate["histogram"].stages["reading"]["values by row"] == 4 * 28_000_000
    fewer = gpu_exact.memory_estimate(1_000_000, 28, 14_000_000)
    deeper = gpu_exact.memory_estimate(1_000_000, 28, max_depth=16)
    for strategy, plan in estimate.items():
        assert fewer[strategy].peak < plan.peak
        nodes = [e[strategy].stages["growing"]["live nodes"] for e in (estimate, deeper)]
        assert nodes[1] == 1024 * nodes[0]


def test_memory_estimate_of_categories() -> None:
    """They are bins, and nothing else: no values or sorted rows of their columns."""
    entries = 400 * 60_000
    few = gpu_exact.memory_estimate(400, 60_000, categories=[3] * 60_000)["histogram"]
    numbers = gpu_exact.memory_estimate(400, 60_000)["histogram"]
    assert few.peak < numbers.peak and few.least < numbers.least
    growing = few.stages["growing"]
    assert 2 * entries <= growing["bins"] <= 2.1 * entries
    assert growing["sorted rows"] == growing["values by row"] == 0
    some = gpu_exact.memory_estimate(400, 60_000, categories=[3] * 30_000)["histogram"]
    assert few.peak < some.peak < numbers.peak
    wide = gpu_exact.memory_estimate(2_000_000, 1, categories=[4_000_000])["histogram"]
    assert wide.stages["growing"]["sums of wide columns"] == 48 * 2_000_000
    assert wide.stages["growing"]["values by row"] == 4 * 2_000_000


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([1, 1, 1], "2 columns has no 3 categorical ones"),
        ([(1 << 24) + 1], "at most 16777216"),
        ([-1], "-1 to -1: give 0 to 16777216"),
        ([1 << 32], "give 0 to 16777216"),
    ],
)
def test_memory_estimate_of_no_categories(categories: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpu_exact.memory_estimate(10, 2, categories=categories)
    with pytest.raises(TypeError, match="categories is 1.5"):
        gpu_exact.memory_estimate(10, 2, categories=[1.5])


@pytest.mark.parametrize(
    ("sizes", "max_depth", "message"),
    [
        ((1 << 32, 2), 6, "at most 4294967294 rows"),
        ((2, 1 << 32), 6, "at most 4294967294 rows"),
        ((10, 10, 101), 6, "has no 101 entries"),
        ((10, 10), -1, "max_depth is -1"),
        ((-1, 10), 6, "out of range"),
        ((10, 10, 1 << 64), 6, "out of range"),
        ((10, 10), 1 << 31, "out of range"),
    ],
)
def test_memory_estimate_of_no_table(sizes: tuple, max_depth: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpu_exact.memory_estimate(*sizes, max_depth=max_depth)


def test_labels_far_apart(builder: str, recwarn: pytest.WarningsRecorder) -> None:
    """Sums of the GPU are exact in 62 bits; what does not fit is handed over, once it matters."""
    X, y = make_table()
    y = np.abs(y) + 1

    def both(labels: np.ndarray) -> tuple[list[str], list[str]]:
        params = {"nthread": 1, "base_score": 0.0, "max_depth": 4} | TAKE_OVER
        dtrain = xgb.DMatrix(X, labels)
        ours = xgb.train(params, dtrain, 1)
        with stock():
            return ours.get_dump(), xgb.train(params, dtrain, 1).get_dump()

    before = trees_grown()
    far = y.copy()  # the default base_score, their mean, would leave no small gradient
    far[7] = 1e18
    ours, theirs = both(far)
    assert_grown(before, cpu=1)
    assert ours == theirs
    assert any("check labels and weights" in str(w.message) for w in recwarn)
    run = gpu_exact.last_run()
    assert run.device == "CPU" and "check labels and weights" in run.reason
    with pytest.raises(xgb.core.XGBoostError, match="check labels and weights"):
        params = {"base_score": 0.0, "gpu_exact_fallback": "error"}
        xgb.train(TAKE_OVER | params, xgb.DMatrix(X, far), 1)
    before = trees_grown()
    both(np.where(np.arange(len(y)) == 7, np.float32(1e9), y))  # fits
    both(1e12 * y)  # large, but none is far from the others
    assert_grown(before, gpu=2)
