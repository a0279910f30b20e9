# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The problems of test_fuzz.py with `device="cuda"`: a file of its own, as each of them takes minutes."""

import pytest
from oracle import CUDA, CUDA_BY_NAME
from problems import CHUNKS, assert_equals_stock


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
@pytest.mark.parametrize("route", [CUDA, CUDA_BY_NAME], ids=["exact", "by_name"])
def test_equals_stock(builder: str, cuda_context: None, route: dict, seeds: range) -> None:
    for seed in seeds:
        assert_equals_stock(seed, route)
