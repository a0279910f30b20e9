# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Builds the package (PEP 517): scikit-build-core, and the two things that it leaves to us.

- A source distribution is rooted in this folder, and the C++ sources lie above it: they come along
  in the folder `cpp_src`.
- A wheel is tagged for every Linux on which its module loads, where that is glibc 2.28 and later;
  else for this machine.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403 - the hooks that are not below

CPP_SOURCES = "cpp_src"  # as pyproject.toml has it
PLATFORM = "manylinux_2_28_x86_64"
# The newest versions of symbols that this platform has (PEP 600).
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def loads_on_platform(module: bytes) -> bool:
    """Whether a shared library, given whole, asks for no newer versions of symbols."""
    asked = re.findall(rb"\0(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)(?=\0)", module)
    return all(
        tuple(map(int, version.decode().split("."))) <= NEWEST[name.decode()]
        for name, version in asked
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel's file name."""
    name = backend.build_wheel(wheel_directory, config_settings, metadata_directory)
    wheel = Path(wheel_directory, name)
    with zipfile.ZipFile(wheel) as archive:
        modules = [archive.read(file) for file in archive.namelist() if file.endswith(".so")]
    if not all(map(loads_on_platform, modules)):
        return name
    command = [sys.executable, "-m", "wheel", "tags", "--remove", f"--platform-tag={PLATFORM}"]
    done = subprocess.run([*command, wheel], check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.split()[-1]


def build_sdist(sdist_directory, config_settings=None):
    """The archive's file name."""
    package = Path.cwd()
    if (package / CPP_SOURCES).exists():  # an unpacked source distribution
        return backend.build_sdist(sdist_directory, config_settings)
    root = package.parents[1]
    with tempfile.TemporaryDirectory() as folder:
        others = ("__pycache__", "*.egg-info", "*.so", "dist", "make_wheel.py")
        ignore = shutil.ignore_patterns(*others)
        shutil.copytree(package, folder, ignore=ignore, dirs_exist_ok=True)
        copy = (sys.executable, root / "plugin/cmake/copy_sources.py", Path(folder, CPP_SOURCES))
        subprocess.run(copy, check=True)
        directory = Path(sdist_directory).resolve()
        here = Path.cwd()
        os.chdir(folder)
        try:
            return backend.build_sdist(str(directory), config_settings)
        finally:
            os.chdir(here)
