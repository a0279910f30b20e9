# Copyright 2026, the gpu_exact contributors
"""Time exact trees against their peers: one JSON line a run, each run in a process of its own.

    python benchmarks/train.py --shape higgs --rows 1000000 --system gpu_exact_cuda xgb_hist_gpu_256

The metric on the training rows is part of the line. All systems that build exact trees must agree
on it, to 1e-6 with the first of them that ran; a system that does not is an error, not a line.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "datasets"))
sys.path.insert(0, str(ROOT / "plugin/python"))  # the module itself is named by GPU_EXACT_MODULE

MIB = 1 << 20
HIST = {"tree_method": "hist", "device": "cuda"}
SYSTEMS = {
    "gpu_exact_cuda": {"updater": "grow_gpu_exact", "device": "cuda"},
    "gpu_exact_cpu_context": {"tree_method": "exact", "gpu_exact_fallback": "error"},
    "xgb_exact_cpu": {"tree_method": "exact"},
    "xgb_hist_gpu_256": HIST | {"max_bin": 256},
    "xgb_hist_gpu_4096": HIST | {"max_bin": 4096},
}
EXACT = ("gpu_exact_cuda", "gpu_exact_cpu_context", "xgb_exact_cpu")
ON_GPU = tuple(name for name in SYSTEMS if name != "xgb_exact_cpu")


class MemoryWatch:
    """The most device memory used above what was used when the watch began, by NVML.

    It sees the whole device: nothing else may run on it.
    """

    class _Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self) -> None:
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._handle = ctypes.c_void_p()
        _check(self._nvml.nvmlInit_v2())
        _check(self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._handle)))
        _make_context()
        self._begin = self.peak = self._used()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _used(self) -> int:
        memory = self._Memory()
        _check(self._nvml.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory)))
        return memory.used

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.peak = max(self.peak, self._used())

    def stop(self) -> int:
        """MiB above the context."""
        self._done.set()
        self._thread.join()
        return round((self.peak - self._begin) / MIB)


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"The NVIDIA driver answered {status}; is there a GPU?")


def _make_context() -> None:
    """The primary context of device 0, which XGBoost and the plugin share."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    _check(cuda.cuInit(0))
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))


def measure(options: argparse.Namespace) -> dict:
    """One run in this process: load, train, and what it cost."""
    import synthetic

    if options.measure.startswith("gpu_exact"):
        import xgboost_gpu_exact  # noqa: F401  before XGBoost builds anything
    import xgboost as xgb

    shape = synthetic.SHAPES[options.shape]
    X, y, qid = synthetic.make(options.shape, options.rows, options.seed)
    watch = MemoryWatch() if options.measure in ON_GPU else None
    params = SYSTEMS[options.measure] | {
        "objective": shape.objective,
        "eval_metric": shape.metric,
        "max_depth": options.max_depth or shape.max_depth,
        "nthread": os.cpu_count(),
    }
    begin = time.perf_counter()
    if options.measure in EXACT:
        dtrain = xgb.DMatrix(X, y, qid=qid, nthread=os.cpu_count())
    else:
        dtrain = xgb.QuantileDMatrix(X, y, qid=qid, max_bin=params["max_bin"])
    load_s = time.perf_counter() - begin

    booster, seconds = xgb.Booster(params, [dtrain]), []
    for i in range(options.iterations):
        begin = time.perf_counter()
        booster.update(dtrain, i)
        seconds.append(time.perf_counter() - begin)
    value = float(booster.eval(dtrain).rsplit(":", 1)[1])
    steady = [1e3 * s for s in seconds[1:]]
    return {
        "system": options.measure,
        "shape": options.shape,
        "rows": dtrain.num_row(),
        "columns": dtrain.num_col(),
        "entries": dtrain.num_nonmissing(),
        "max_depth": params["max_depth"],
        "iterations": options.iterations,
        "ms_per_tree": round(statistics.median(steady), 3),
        "ms_per_tree_quartiles": [round(q, 3) for q in statistics.quantiles(steady)[::2]],
        "first_iteration_s": round(seconds[0], 3),
        "load_s": round(load_s, 3),
        "metric": shape.metric,
        "metric_value": value,
        "peak_device_mib": watch.stop() if watch else None,
    }


def machine() -> dict:
    """What every line says of where it was measured."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        device, driver = text.strip().splitlines()[0].split(", ")
    except (OSError, subprocess.CalledProcessError):
        device = driver = None
    spec = importlib.util.spec_from_file_location("gpu_report", ROOT / "tests/gpu_report.py")
    gpu_report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_report)
    return {
        "device": device,
        "driver": driver,
        "cpu_cores": os.cpu_count(),
        "source_hash": gpu_report.source_hash(ROOT),
    }


def run_all(options: argparse.Namespace) -> int:
    """Measure system after system; returns how many failed."""
    where, reference, failed = machine(), None, 0
    for system in options.system:
        command = [sys.executable, __file__, "--measure", system, *sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print(f"{system}: failed with exit {done.returncode}", file=sys.stderr)
            failed += 1
            continue
        line = json.loads(done.stdout.strip().splitlines()[-1])
        value = line["metric_value"]
        if system in EXACT:
            reference = value if reference is None else reference
            if abs(value - reference) > 1e-6 * abs(reference):
                print(f"{system}: {line['metric']} {value}, not {reference}", file=sys.stderr)
                failed += 1
                continue
        text = json.dumps(line | where)
        print(text, flush=True)
        if options.out:
            with options.out.open("a") as out:
                out.write(text + "\n")
    return failed


def parse() -> argparse.Namespace:
    import synthetic

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", choices=synthetic.SHAPES, required=True)
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rows", type=int, help="default: the shape's own")
    parser.add_argument("--max-depth", type=int, help="default: the shape's own")
    parser.add_argument("--iterations", type=int, default=11, help="the first is counted apart")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON lines file to add to")
    parser.add_argument("--measure", choices=SYSTEMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.iterations < 3:
        parser.error("--iterations must be at least 3: one to set up, two for a median")
    return options


def main() -> int:
    options = parse()
    if options.measure:
        print(json.dumps(measure(options)))
        return 0
    return 1 if run_all(options) else 0


if __name__ == "__main__":
    sys.exit(main())
