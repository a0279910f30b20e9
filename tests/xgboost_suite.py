#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Run XGBoost's own Python tests of exact training by `python -m xgboost_gpu_exact`.

    python tests/xgboost_suite.py --tests FOLDER --python PATH --module PATH
    python tests/xgboost_suite.py --check      # is the report fresh, and all accounted for

FOLDER is a checkout of XGBoost at the release that the interpreter has, as its source distribution
has no tests; `tests/python` and `demo/data` of it are used. The interpreter needs pytest and
hypothesis, scikit-learn and pandas. Boosters are on the GPU if XGBoost has CUDA: exact ones that name
no device, and those of a copy of the tests in which "cpu" is written "cuda". A test must pass and have
grown trees on the GPU, or is one of DIFFERS, whose reasons are in this file; those of DIFFERS must
differ. Tests that train with other methods alone are listed apart. Of Dask's tests one expects that
exact refuses several workers, in the middle of others; here it trains (test_clusters.py). Only the
standard library is needed here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from gpu_report import (
    device_facts,
    of_other_sources,
    of_others,
    read_report,
    report_parser,
    run,
    source_hash,
    xgboost_facts,
)

REPORT = "tests/xgboost_suite.json"
OPTIONS = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]  # of pytest
# File, and what pytest's -k chooses of it: the tests that train with `exact`.
SUITE = {
    "test_updaters.py": "test_exact or test_pruner or test_hist_categorical",
    "test_multi_target.py": "TestTreeMethodMulti and test_exact",
    "test_tree_regularization.py": "",
    "test_monotone_constraints.py": "exact",
    "test_interaction_constraints.py": "exact or feature_names",
    "test_training_continuation.py": "updaters_json or exact or determinism",
    "test_callback.py": "eta_decay and exact",
    "test_pickling.py": "json",
    "test_survival.py": "toy_data",
    "test_ranking.py": "weighted_data",
    "test_with_sklearn.py": "test_ranking or test_feature_importances or exact",
    "test_data_iterator.py": "test_cat_check",
}
DIFFERS = {
    "test_exact_sample_by_node_error": "XGBoost's exact refuses colsample_bynode; here it is drawn "
    "node by node, as by hist",
}
NO_TREES = ("test_cat_check",)  # exact refuses categories
# A plugin of pytest: how many trees a test grew on the GPU.
COUNTING = """
import pytest
import xgboost_gpu_exact

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    before = xgboost_gpu_exact.last_run().gpu_trees
    yield
    item.user_properties.append(("gpu_trees", xgboost_gpu_exact.last_run().gpu_trees - before))
"""


def problems(report: dict, current_hash: str) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where all is accounted for."""
    found = of_other_sources(report, current_hash)
    found += of_others("XGBoost's own tests", report, current_hash)
    if not report.get("use_cuda"):
        found.append(f"{report['xgboost']} has no CUDA, or does not say: no booster is on the GPU.")
    if report["on_cpu"]:
        found.append(f"XGBoost's own builder grew trees on the CPU: {report['on_cpu']}")
    for name in sorted(set(SUITE) - {test.split("::")[0] for test in report["passed"]}):
        found.append(f"No test of {name} passed.")
    found += [f"{test} failed." for test in report["failed"]]
    found += [f"{test} was skipped: {reason}" for test, reason in report["skipped"].items()]
    found += [f"{test} grew no tree on the GPU." for test in report.get("others", []) if "exact" in test]
    differs = {test.split("::")[-1].split("[")[0] for test in report["differs"]}
    found += [f"{name} passed, and should differ." for name in sorted(set(DIFFERS) - differs)]
    return found


def ask(python: str, code: str, env: dict) -> str:
    """What an interpreter prints last."""
    _, text, _ = run([python, "-c", code], env, 300)
    return (text.strip().splitlines() or [""])[-1]


def uses_cuda(python: str) -> bool:
    """Whether the XGBoost of an interpreter has CUDA."""
    code = "import xgboost; print(xgboost.build_info()['USE_CUDA'])"
    return ask(python, code, dict(os.environ)) == "True"


def copy_tests(checkout: Path, folder: Path, on_cuda: bool) -> None:
    """Beside the data that they look for."""
    shutil.copytree(checkout / "tests/python", folder / "tests/python")
    (folder / "demo").symlink_to((checkout / "demo").resolve())
    for name in SUITE if on_cuda else ():
        file = folder / "tests/python" / name
        file.write_text(file.read_text().replace('"cpu"', '"cuda"'))


def run_suite(options: argparse.Namespace, on_cuda: bool) -> dict:
    """Tests by what came of them."""
    report: dict = {"passed": [], "others": [], "differs": {}, "failed": [], "skipped": {}}
    report["on_cpu"] = ""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "count_gpu_trees.py").write_text(COUNTING)
        copy_tests(options.tests, folder, on_cuda)
        path = [str(options.source / "plugin/python"), temporary, os.environ.get("PYTHONPATH", "")]
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if options.module:
            env["GPU_EXACT_MODULE"] = str(Path(options.module).resolve())
        code = "import xgboost_gpu_exact; print(xgboost_gpu_exact.source_hash())"
        report["built_of"] = [ask(options.python, code, env)]
        for name, chosen in SUITE.items():
            run_file(name, chosen, folder, env, options, report)
    return report


def run_file(
    name: str, chosen: str, folder: Path, env: dict, options: argparse.Namespace, report: dict
) -> None:
    out = folder / "result.xml"
    out.unlink(missing_ok=True)
    # Some tests look for their data in the current folder.
    command = ["env", "-C", str(folder), os.path.abspath(options.python)]
    command += ["-m", "xgboost_gpu_exact", "-m", "pytest", *OPTIONS, "-p", "count_gpu_trees"]
    command += ["-o", "junit_family=xunit1", f"--junitxml={out}", "-k", chosen]
    status, output, _ = run([*command, f"tests/python/{name}"], env, options.timeout)
    before = len(report["failed"])
    for case in ElementTree.parse(out).iter("testcase") if out.is_file() else ():
        sort_in(case, name, report)
    if status not in (0, 1):  # 1: tests have failed
        report["failed"].append(f"{name}::pytest ended with {status}")
    if len(report["failed"]) > before:
        print(output[-4000:])
    fell_back = [text for text in output.splitlines() if "own exact builder grows" in text]
    report["on_cpu"] = report["on_cpu"] or "".join(fell_back[:1]).strip()


def sort_in(case: ElementTree.Element, file: str, report: dict) -> None:
    test = f"{file}::{case.get('name')}"
    kinds = {child.tag: child for child in case}
    reason = DIFFERS.get(case.get("name", "").split("[")[0])
    if kinds.keys() & {"failure", "error"}:
        if reason:
            report["differs"][test] = reason
        else:
            report["failed"].append(test)
    elif "skipped" in kinds:
        report["skipped"][test] = kinds["skipped"].get("message", "")
    else:
        grown = [p.get("value") for p in case.iter("property") if p.get("name") == "gpu_trees"]
        counts = int((grown or ["0"])[0] or 0) > 0 or case.get("name") in NO_TREES
        report["passed" if counts else "others"].append(test)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = report_parser(__doc__, REPORT)
    parser.add_argument("--tests", type=Path, help="a checkout of XGBoost")
    parser.add_argument("--python", default=sys.executable, help="interpreter with a stock XGBoost")
    parser.add_argument("--module", help="libxgboost_gpu_exact.so")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a file of tests")
    options = parser.parse_args(arguments)
    options.out = options.out or options.source / REPORT
    if not options.check:
        if options.tests is None:
            parser.error("name a checkout of XGBoost with --tests")
        absent = [n for n in SUITE if not (options.tests / "tests/python" / n).is_file()]
        if absent:
            parser.error(f"`{options.tests}/tests/python` has no {', '.join(absent)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    current = source_hash(options.source)
    if not options.check:
        made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        facts = {"source_hash": current, **device_facts(None), "made": made}
        facts["xgboost"] = xgboost_facts(options.python, dict(os.environ))[0]
        facts["use_cuda"] = uses_cuda(options.python)
        report = facts | run_suite(options, facts["use_cuda"])
        options.out.write_text(json.dumps(report, indent=2) + "\n")
    report = read_report(options.out)
    if report is None:
        return 1
    kinds = ("passed", "others", "differs", "failed", "skipped")
    counts = {name: len(report.get(name, ())) for name in kinds}
    print(f"{report['xgboost']}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    for test, reason in report["differs"].items():
        print(f"{test} differs: {reason}")
    found = problems(report, current)
    print("\n".join(found) if found else f"All is accounted for on {report['device']}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
