# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""With GPU_EXACT_STRICT, as CI and proof.py set it, a skip that skips.txt does not list is a failure.

So is a file of which nothing has passed. GPU_EXACT_RUN names the suite, GPU_EXACT_PIECE which part of the
tests is run: of "2/8" every eighth one, from the second on.
"""

import os
from collections.abc import Iterator

import pytest
from proof import may_skip

SUITE = os.environ.get("GPU_EXACT_RUN", "") if "GPU_EXACT_STRICT" in os.environ else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    number, of = map(int, os.environ.get("GPU_EXACT_PIECE", "1/1").split("/"))
    items[:] = items[number - 1 :: of]


def judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if SUITE and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        name = report.nodeid.removesuffix(".py").replace(".py::", ".").replace("::", ".")
        if not may_skip(SUITE, name.replace("/", "."), reason):
            report.outcome = "failed"
            report.longrepr = f"skipped, which tests/skips.txt does not list for {SUITE}: {reason}"


@pytest.hookimpl(hookwrapper=True)
def judged() -> Iterator[None]:
    outcome = yield
    judge(outcome.get_result())


pytest_runtest_makereport = pytest_make_collect_report = judged


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if SUITE and exitstatus == 0 and not reporter.stats.get("passed"):
        print(f"\nNo test has passed, though {SUITE} is to have this file.")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
