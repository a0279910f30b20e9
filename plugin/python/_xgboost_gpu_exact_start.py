# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Imports xgboost_gpu_exact as soon as xgboost is imported, by whatever script.

Python calls start_if_asked() at its own start where the wheel is installed: xgboost_gpu_exact.start
beside it says so, to a Python before 3.15 xgboost_gpu_exact.pth (PEP 829, and `site` in Python's
manual). `python -m xgboost_gpu_exact` calls start() for what it runs. XGBoost is not loaded before a
script wants it, and nothing else that Python has not loaded itself: every Python process pays for it.
"""

import _thread
import os
import sys


class _AfterXGBoost:
    """Asked before all other finders, until both are imported: who looks for xgboost need not import
    it, and who fails to import both may try again."""

    def __init__(self) -> None:
        self._asks = _thread._local()  # `others`: this thread asks the other finders
        self.forgives = True

    def find_spec(self, fullname, *where):  # types of importlib would have to be imported
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

            def import_both(what: object) -> object:
                delattr(loader, load)
                if of_another_hook is not None:
                    setattr(loader, load, of_another_hook)
                module = getattr(loader, load)(what)
                if "xgboost_gpu_exact" not in sys.modules:  # else it is being imported, and waits
                    self._import_plugin()
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                return module

            setattr(loader, load, import_both)
        return spec

    def _import_plugin(self) -> None:
        try:
            import xgboost_gpu_exact  # noqa: F401
        except ImportError as error:
            # Without a name it is of a variable that the user has set.
            if not self.forgives or error.name is None:
                raise
            import warnings

            warnings.warn(f"{error} XGBoost goes on without the plugin.", stacklevel=2)


_hook = _AfterXGBoost()


def start(forgives: bool = True) -> None:
    """From now on, who imports xgboost imports both.

    Parameters
    ----------
    forgives : Where this XGBoost is not served or the package is broken, warn and leave XGBoost as it
        is: who imports XGBoost has not asked for more.
    """
    _hook.forgives = forgives
    if _hook not in sys.meta_path:
        sys.meta_path.insert(0, _hook)


def start_if_asked() -> None:
    """Start, if a variable of the environment asks for it."""
    asks = os.environ.get
    for prefix in ("", "XGBOOST_"):  # the names of earlier releases
        if asks(f"{prefix}GPU_EXACT_DEVICE") or asks(f"{prefix}GPU_EXACT_CHILDREN") == "1":
            start()
            return
