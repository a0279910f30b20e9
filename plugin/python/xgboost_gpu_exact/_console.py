# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Printing for the package's two programs."""

from __future__ import annotations

import re
import sys
import time

import xgboost as xgb

from .tree_diff import TreeReport


def sentence(error: Exception) -> str:
    """What an error says, in one line: without the place and the stack that XGBoost puts around it."""
    text = re.sub(r"^\[[\d:]+\] \S+: ", "", str(error).split("\nStack trace")[0])
    return " ".join(text.split())


def difference_lines(report: TreeReport) -> list[str]:
    """Both sides of every node that differs."""
    return [
        line
        for d in report.differences
        for line in (
            f"node {d.node}, {d.verdict}:",
            f"  plugin   {d.ours}",
            f"  XGBoost  {d.stock}",
        )
    ]


class Progress(xgb.callback.TrainingCallback):
    """One line that is rewritten every round; on a pipe, only its last state. Times the rounds."""

    def __init__(self, title: str, rounds: int, silent: bool = False) -> None:
        self.title, self.rounds, self.silent = title, rounds, silent
        self.seconds: list[float] = []  # of each round
        self.line = ""

    def before_training(self, model: xgb.Booster) -> xgb.Booster:
        self._last = time.perf_counter()
        return model

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self._last = now
        metrics = [
            f"{data} {name} {values[-1]:.5f}"
            for data, by_name in evals_log.items()
            for name, values in by_name.items()
        ]
        self.line = f"{self.title}: round {epoch + 1} of at most {self.rounds}  {'  '.join(metrics)}"
        if sys.stdout.isatty() and not self.silent:
            print(f"\r\033[K{self.line}", end="", flush=True)
        return False

    def after_training(self, model: xgb.Booster) -> xgb.Booster:
        if not self.silent:
            print(f"\r\033[K{self.line}" if sys.stdout.isatty() else self.line, flush=True)
        return model
