#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Copy what the module is built of into a folder: packages are built from archives of their own.

    python copy_sources.py FOLDER
"""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "include src plugin/cmake plugin/load plugin/hooks plugin/train plugin/workers".split()


def copy_sources(folder: Path) -> None:
    """As they lie in the repository; what was there before goes."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    package = ROOT / "plugin/python"
    files = [ROOT / "CMakeLists.txt", package / "xgboost_gpu_exact/versions.py"]
    files += [*package.glob("xgboost_gpu_exact.*"), package / "_xgboost_gpu_exact_start.py"]
    files += [file for file in (ROOT / "plugin").iterdir() if file.is_file()]
    for file in files:
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)


if __name__ == "__main__":
    copy_sources(Path(sys.argv[1]))
