# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What every kernel must do, read off the sources."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    file.relative_to(ROOT).as_posix()
    for folder in ("src", "tests/device", "benchmarks")
    for file in sorted((ROOT / folder).rglob("*.cu*"))
    if "__global__" in file.read_text()
]


def kernels(text: str) -> list[tuple[str, str]]:
    """The name of each kernel that is defined, and its first statement."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = []
    for definition in re.split(r"\b__global__\b", text)[1:]:
        depth = 0
        for at, char in enumerate(definition):
            depth += {"(": 1, ")": -1}.get(char, 0)
            if depth == 0 and char in "{;":
                break
        if char == "{":
            name = re.findall(r"(\w+Kernel)\(", definition[:at])[0]
            found.append((name, definition[at + 1 :].split(";")[0].strip()))
    return found


@pytest.mark.parametrize("file", FILES)
def test_kernels_await_what_comes_before_them(file: str) -> None:
    """Launch() has them begin while the one before still runs."""
    found = kernels((ROOT / file).read_text())
    assert found
    assert [name for name, first in found if first != "WaitForPreviousKernel()"] == []


def test_kernels_have_names_of_their_own() -> None:
    """By which a profiler tells them apart."""
    files = [file for file in FILES if file.startswith("src/")]
    names = [name for file in files for name, _ in kernels((ROOT / file).read_text())]
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_a_kernel_that_does_not_wait_is_found() -> None:
    text = "template <int k>\n__global__ __launch_bounds__(2) void FirstKernel(A a, B(b)) {\n  a = 1;\n}\n"
    text += "__global__ void SecondKernel(int);\n"
    text += "__global__ void ThirdKernel() {\n  WaitForPreviousKernel();\n}\n"
    assert kernels(text) == [("FirstKernel", "a = 1"), ("ThirdKernel", "WaitForPreviousKernel()")]
