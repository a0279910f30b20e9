# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""XGBoost's own exact builder as the judge, and how to tell models apart."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact

RELEASE = tuple(int(part) for part in xgb.__version__.split(".")[:2])
TAKE_OVER = {"tree_method": "exact"}
BY_NAME = {"updater": "grow_gpu_exact"}
CUDA = {"tree_method": "exact", "device": "cuda"}
# What a module is for is told by its name, not by what it exports: lost exports are errors.
MODULE = Path(gpu_exact._module._name).name
REFERENCE = MODULE == "libxgboost_gpu_exact_reference.so"
FAULTS = MODULE == "libxgboost_gpu_exact_faults.so"
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # the environment of a process without one
CUDA_BY_NAME = {"updater": "grow_gpu_exact", "device": "cuda"}


def cuda_context_reason() -> str:
    """Why `device="cuda"` cannot be tested here; empty where it can."""
    status = gpu_exact.device_status()
    if not status.usable or REFERENCE:
        return f"no GPU builder: {status.text}"
    if not xgb.build_info()["USE_CUDA"]:
        return "this XGBoost is built without CUDA"
    return ""


class Pretence:
    """Boosters that believe to be on a GPU while they are configured: see support/layout_hooks.cc.

    The reference module has it. It shows what XGBoost and the plugin make of parameters, and runs on
    the CPU.
    """

    possible = REFERENCE
    on = False

    @classmethod
    def set(cls, on: bool) -> None:
        """For boosters made from now on."""
        if on != cls.on:
            gpu_exact._module.GpuExactPretendCuda(int(on))
        cls.on = on


@contextmanager
def stock() -> Iterator[None]:
    """Boosters configured inside use XGBoost's own exact builder, which is one of the CPU."""
    pretending = Pretence.on
    Pretence.set(False)
    gpu_exact.take_over(False)
    try:
        yield
    finally:
        gpu_exact.take_over(True)
        Pretence.set(pretending)


def uses_plugin(booster: xgb.Booster) -> bool:
    """Whether the booster's updater is the plugin's."""
    updaters = json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"]
    return any("gpu_exact_train_param" in updater for updater in updaters)


def trees_grown() -> tuple[int, int]:
    """Trees of this process that the plugin's builder grew, and XGBoost's own in its place."""
    run = gpu_exact.last_run()
    return run.gpu_trees, run.cpu_trees


def assert_grown(before: tuple[int, int], gpu: int = 0, cpu: int = 0, context: object = "") -> None:
    """Where trees grew since: a configuration that names the plugin does not tell."""
    now = trees_grown()
    found = (now[0] - before[0], now[1] - before[1])
    assert found == (gpu, cpu), (
        f"{found[0]} trees grew on the GPU and {found[1]} on the CPU in its place, not {gpu} and "
        f"{cpu}; {context}"
    )


def rng_state(booster: xgb.Booster) -> str:
    """Of the generator; empty before XGBoost 3.3, where the thread has one and boosters have none."""
    param = json.loads(booster.save_config())["learner"]["generic_param"]
    return param["rng_state"] if RELEASE >= (3, 3) else ""


def trees(booster: xgb.Booster) -> list[dict]:
    model = json.loads(booster.save_raw("json"))
    booster = model["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]["trees"]  # of DART it lies one deeper


def assert_same_model(ours: xgb.Booster, theirs: xgb.Booster, context: object = "") -> None:
    """Byte for byte; a failure names the first array that differs."""
    if ours.save_raw("json") == theirs.save_raw("json"):
        return
    for i, (a, b) in enumerate(zip(trees(ours), trees(theirs), strict=True)):
        for key in b:
            assert a[key] == b[key], f"tree {i}, {key}; {context}"
    raise AssertionError(f"The trees agree, but not what is around them; {context}")


def assert_cache_is_right(booster: xgb.Booster, dtrain: xgb.DMatrix, context: object = "") -> None:
    """The margins that training kept for its DMatrix are those of the trees."""
    cached = booster.predict(dtrain, output_margin=True)
    fresh = booster.predict(xgb.DMatrix(dtrain.get_data()), output_margin=True)
    config = json.loads(booster.save_config())["learner"]
    forest = config["gradient_booster"]["gbtree_model_param"]["num_parallel_tree"] != "1"
    on_cuda = config["generic_param"]["device"].startswith("cuda")
    # On a GPU XGBoost adds the trees of one round in another order here than there.
    tolerance = 1e-6 if forest and on_cuda else 0
    np.testing.assert_allclose(cached, fresh, tolerance, tolerance, err_msg=str(context))


def run_python(code: str, *args: str, **env: str) -> str:
    """Run code in a process of its own; gives what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code, *args],
        env=os.environ | env,
        cwd=Path(__file__).parent,  # code may import what the tests import
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
