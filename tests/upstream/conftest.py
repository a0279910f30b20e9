# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""XGBoost's own tests of exact training, with the plugin: those that selection.txt names.

    python -m xgboost_gpu_exact -m pytest tests/upstream/selection.txt

GPU_EXACT_XGBOOST_TESTS names a checkout of XGBoost, of the release that the interpreter has: its source
distribution has no tests. pytest takes a copy in which "cpu" is written "cuda", if XGBoost has CUDA, so
that every booster is on the GPU. A test must grow trees there and none on the CPU in their place.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact

SELECTED: dict[str, str] = {}  # what to choose of each file
DIFFERS: dict[str, str] = {}  # tests, and the reason
for line in (Path(__file__).parent / "selection.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        what, *rest = re.split(r"\s{2,}", line)
        if what == "differs":
            DIFFERS[rest[0]] = rest[1]
        else:
            SELECTED[what] = rest[0]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    if file_path.name == "selection.txt":
        return Selection.from_parent(parent, path=file_path)
    return None


class Selection(pytest.File):
    def collect(self) -> Iterator[pytest.Module]:
        checkout = Path(os.environ["GPU_EXACT_XGBOOST_TESTS"]).resolve()
        folder = Path(tempfile.mkdtemp())
        self.config.add_cleanup(lambda: shutil.rmtree(folder))
        (folder / "demo").symlink_to(checkout / "demo")
        shutil.copytree(checkout / "tests/python", folder / "tests/python")
        os.chdir(folder)  # some tests look for their data here
        for name in SELECTED:
            file = folder / "tests/python" / name
            if xgb.build_info()["USE_CUDA"]:
                file.write_text(file.read_text().replace('"cpu"', '"cuda"'))
            yield pytest.Module.from_parent(self, path=file)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [
        item
        for item in items
        if re.search(SELECTED[item.path.name], item.nodeid.partition("::")[2], re.IGNORECASE)
    ]
    if lacking := SELECTED.keys() - {item.path.name for item in chosen}:
        raise pytest.UsageError(f"Nothing was chosen of {', '.join(sorted(lacking))}.")
    for item in chosen:
        if reason := DIFFERS.get(item.originalname):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = gpu_exact.last_run()
    outcome = yield
    now = gpu_exact.last_run()
    grown = now.gpu_trees - before.gpu_trees, now.cpu_trees - before.cpu_trees
    if outcome.excinfo is None and (not grown[0] or grown[1]):
        told = f"{grown[0]} trees grew on the GPU, {grown[1]} on the CPU in their place"
        outcome.force_exception(AssertionError(told))
