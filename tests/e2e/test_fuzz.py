# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Random small problems: the plugin's models are XGBoost's own, bit for bit.

GPU_EXACT_FUZZ sets how many (300), GPU_EXACT_FUZZ_SEED where the seeds begin (0).
"""

import pytest
from oracle import BY_NAME, TAKE_OVER
from problems import CHUNKS, FIRST, N_PROBLEMS, assert_equals_stock


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
@pytest.mark.parametrize("route", [TAKE_OVER, BY_NAME], ids=["take_over", "by_name"])
def test_equals_stock(builder: str, route: dict, seeds: range) -> None:
    for seed in seeds:
        assert_equals_stock(seed, route)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, N_PROBLEMS // 200)))
def test_large_equals_stock(builder: str, seed: int) -> None:
    assert_equals_stock(seed, TAKE_OVER, large=True)
