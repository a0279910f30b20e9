# Copyright 2026, the gpu_exact contributors
"""Imports xgboost_gpu_exact as soon as xgboost is imported, by whatever script.

Python imports this at its start where the wheel is installed and XGBOOST_GPU_EXACT_DEVICE is set:
xgboost_gpu_exact.pth beside it says so (see `site` in Python's manual); `python -m xgboost_gpu_exact`
does it for what it runs. XGBoost is not loaded before a script wants it.
"""

import importlib
import sys
import threading
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _AfterXGBoost(MetaPathFinder):
    """Asked before all other finders, until both are imported: who looks for xgboost need not import
    it, and who fails to import both may try again."""

    def __init__(self) -> None:
        self._asks = threading.local()  # `others`: this thread asks the other finders

    def find_spec(self, fullname: str, *where: Any) -> ModuleSpec | None:
        if fullname != "xgboost" or hasattr(self._asks, "others"):
            return None
        self._asks.others = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
        try:
            found = (finder.find_spec(fullname, *where) for finder in self._asks.others)
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            del self._asks.others
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            load = "exec_module" if hasattr(loader, "exec_module") else "load_module"  # of old hooks
            of_another_hook = getattr(loader, "__dict__", {}).get(load)

            def import_both(what: Any) -> Any:
                delattr(loader, load)
                if of_another_hook is not None:
                    setattr(loader, load, of_another_hook)
                module = getattr(loader, load)(what)
                if "xgboost_gpu_exact" not in sys.modules:  # else it is being imported, and waits
                    importlib.import_module("xgboost_gpu_exact")
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                return module

            setattr(loader, load, import_both)
        return spec


sys.meta_path.insert(0, _AfterXGBoost())
