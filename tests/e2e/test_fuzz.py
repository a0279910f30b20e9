# Copyright 2026, the gpu_exact contributors
"""Random small problems: the plugin's models are XGBoost's own, bit for bit.

GPU_EXACT_FUZZ sets how many (1000), GPU_EXACT_FUZZ_SEED where the seeds begin (0).
"""

import os

import pytest
from oracle import BY_NAME, CUDA, CUDA_BY_NAME, TAKE_OVER
from problems import assert_equals_stock

N_PROBLEMS = int(os.environ.get("GPU_EXACT_FUZZ", "1000"))
FIRST = int(os.environ.get("GPU_EXACT_FUZZ_SEED", "0"))
N_LARGE = N_PROBLEMS // 200
CHUNK = 50


@pytest.mark.parametrize("start", range(FIRST, FIRST + N_PROBLEMS, CHUNK))
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_equals_stock(builder: str, route: dict, start: int) -> None:
    for seed in range(start, min(start + CHUNK, FIRST + N_PROBLEMS)):
        assert_equals_stock(seed, route)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + N_LARGE))
def test_large_equals_stock(builder: str, seed: int) -> None:
    assert_equals_stock(seed, TAKE_OVER, large=True)


@pytest.mark.parametrize("start", range(FIRST, FIRST + N_PROBLEMS, CHUNK))
@pytest.mark.parametrize("route", [CUDA, CUDA_BY_NAME], ids=["exact", "by_name"])
def test_equals_stock_on_a_cuda_context(
    builder: str, cuda_context: None, route: dict, start: int
) -> None:
    for seed in range(start, min(start + CHUNK, FIRST + N_PROBLEMS)):
        assert_equals_stock(seed, route)
