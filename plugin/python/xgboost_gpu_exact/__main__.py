# Copyright 2026, the gpu_exact contributors
"""``python -m xgboost_gpu_exact``: what would build trees here."""

import xgboost
import xgboost_gpu_exact as gpu_exact
from xgboost import libpath

usable, text = gpu_exact.device_status()
print(f"XGBoost {xgboost.__version__}: {libpath.find_lib_path()[0]}")
print(f"Exact trees on the GPU: {text}" if usable else f"Exact trees on the CPU: {text}")
