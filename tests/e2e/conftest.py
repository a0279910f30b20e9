# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test needs: the plugin, and a reason to skip where nothing can be shown."""

from collections.abc import Iterator

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
from oracle import CUDA, REFERENCE, TAKE_OVER, Pretence, cuda_context_reason


def pytest_report_header() -> str:
    status = gpu_exact.device_status()
    wheel = "with CUDA" if xgb.build_info()["USE_CUDA"] else "without CUDA"
    return f"XGBoost {xgb.__version__} {wheel}; builder: {status.text}"


@pytest.fixture(scope="session")
def builder() -> str:
    """The name of the device; skips where XGBoost's own builder would be compared with itself."""
    status = gpu_exact.device_status()
    if not status.usable:
        pytest.skip(f"no GPU builder: {status.text}")
    return status.text


@pytest.fixture
def gpu_module() -> None:
    """Skips where hiding the GPUs changes nothing."""
    if REFERENCE:
        pytest.skip("the reference module needs no GPU")


@pytest.fixture
def cuda_context() -> None:
    """Skips where `device="cuda"` would not be the GPU."""
    reason = cuda_context_reason()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def exact_on_cuda() -> Iterator[dict]:
    """The parameters of an exact booster on `device="cuda"`.

    Without a GPU the reference module's boosters pretend to be on one; other modules skip.
    """
    reason = cuda_context_reason()
    if not reason:
        yield CUDA
        return
    if not Pretence.possible:
        pytest.skip(reason)
    Pretence.set(True)
    yield TAKE_OVER
    Pretence.set(False)


@pytest.fixture(params=["cpu", "cuda"])
def exact(builder: str, request: pytest.FixtureRequest) -> dict:
    """The parameters of an exact booster in either context."""
    return TAKE_OVER if request.param == "cpu" else request.getfixturevalue("exact_on_cuda")
