# Copyright 2026, the gpu_exact contributors
"""Imports xgboost_gpu_exact as soon as xgboost is imported, by whatever script.

Python imports this at its start where the wheel is installed and XGBOOST_GPU_EXACT_DEVICE is set:
xgboost_gpu_exact.pth beside it says so (see `site` in Python's manual). XGBoost is not loaded before
a script wants it.
"""

import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _AfterXGBoost(MetaPathFinder):
    """Asked before all other finders, until xgboost is imported: who looks for it need not."""

    def find_spec(self, fullname: str, *where: Any) -> ModuleSpec | None:
        if fullname != "xgboost":
            return None
        others = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
        found = (finder.find_spec(fullname, *where) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            import_xgboost = spec.loader.exec_module

            def import_both(module: ModuleType) -> None:
                import_xgboost(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                if "xgboost_gpu_exact" not in sys.modules:  # else another thread imports it, and waits
                    importlib.import_module("xgboost_gpu_exact")

            spec.loader.exec_module = import_both  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _AfterXGBoost())
