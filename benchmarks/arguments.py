# Copyright 2026, the gpu_exact contributors
"""What arguments of several scripts may be: what cannot be run is said before anything is made."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Number = TypeVar("Number", int, float)


def words(text: str) -> list[str]:
    """By comma, one at least."""
    found = [word for word in text.split(",") if word]
    if not found:
        raise argparse.ArgumentTypeError("name one at least")
    return found


def above_zero(kind: type[Number]) -> Callable[[str], Number]:
    """For an int or a float that must be."""

    def read(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = kind(0)
        if not number > 0:
            what = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"`{text}` is no {what} above 0")
        return number

    return read


def folder(text: str) -> Path:
    """One that there is."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder `{text}`")
    return Path(text)
