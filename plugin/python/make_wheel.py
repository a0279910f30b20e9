#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Make the wheel that is published, for every GPU that is served, and test it.

    python plugin/python/make_wheel.py FOLDER [option of `pip wheel` ...]

The folder then has the wheel and its SHA-256, if the wheel has passed its tests: it is for every Linux,
not too large, has the metadata that an index wants, and trains without a compiler beside each XGBoost
that is served. See tests/package/test_package.py. It takes no GPU, but a C++ compiler, a package index, and
Python 3.12 or newer with a Python 3.10 beside it.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
TESTS = PACKAGE.parents[1] / "tests/package/test_package.py"


def run(*command: object, **env: str) -> None:
    """Ends the program where the command fails."""
    words = [str(word) for word in command]
    if subprocess.run(words, check=False, env=os.environ | env).returncode != 0:
        sys.exit(f"No wheel was made, as this failed: {' '.join(words)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the wheel that is published, and test it.")
    parser.add_argument("folder", type=Path, help="for the wheel and its SHA-256")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of `pip wheel`")
    arguments = parser.parse_args()
    if sys.version_info < (3, 12):
        parser.error("the newest XGBoost needs Python 3.12 or newer: run this program by that")
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = (f"{scratch}/bin/python", "-m")
        run(*python, "pip", "install", "--quiet", "pytest")
        made = ("--wheel-dir", f"{scratch}/wheel")
        run(*python, "pip", "wheel", "--no-deps", *made, *arguments.options, PACKAGE)
        [wheel] = Path(scratch, "wheel").iterdir()
        env = {"GPU_EXACT_WHEEL": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
        run(*python, "pytest", "-v", "-k", "test_wheel_", TESTS, **env)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, arguments.folder)
    sha256 = hashlib.sha256((arguments.folder / wheel.name).read_bytes()).hexdigest()
    (arguments.folder / f"{wheel.name}.sha256").write_text(f"{sha256}  {wheel.name}\n")
    print(f"{arguments.folder / wheel.name}\nSHA-256 {sha256}")


main()
