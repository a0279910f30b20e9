#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Run XGBoost's own Python tests of exact training, unchanged, by `python -m xgboost_gpu_exact`.

    python tests/xgboost_suite.py --tests FOLDER --python PATH --module PATH
    python tests/xgboost_suite.py --check      # is the report fresh, and all accounted for

FOLDER is a checkout of XGBoost at the release that the interpreter has, as its source distribution
has no tests; `tests/python` and `demo/data` of it are used. The interpreter needs pytest and
hypothesis, scikit-learn and pandas. Exact boosters that name no device are on the GPU where there
is one and XGBoost has CUDA. A test must pass, or is one of DIFFERS, whose reasons are in this file;
those of DIFFERS must differ. Only the standard library is needed here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from gpu_report import (
    device_facts,
    of_other_sources,
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
    "test_interaction_constraints.py": "exact or feature_names or training_accuracy",
    "test_training_continuation.py": "json or exact or determinism",
    "test_callback.py": "eta_decay",
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


def problems(report: dict, current_hash: str) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where all is accounted for."""
    found = of_other_sources(report, current_hash)
    if not report.get("use_cuda"):
        found.append(f"{report['xgboost']} has no CUDA, or does not say: no booster is on the GPU.")
    if report["on_cpu"]:
        found.append(f"XGBoost's own builder grew trees on the CPU: {report['on_cpu']}")
    for name in sorted(set(SUITE) - {test.split("::")[0] for test in report["passed"]}):
        found.append(f"No test of {name} passed.")
    found += [f"{test} failed." for test in report["failed"]]
    differs = {test.split("::")[-1].split("[")[0] for test in report["differs"]}
    found += [f"{name} passed, and should differ." for name in sorted(set(DIFFERS) - differs)]
    return found


def uses_cuda(python: str) -> bool:
    """Whether the XGBoost of an interpreter has CUDA."""
    code = "import xgboost; print(xgboost.build_info()['USE_CUDA'])"
    _, text, _ = run([python, "-c", code], dict(os.environ), 300)
    return text.strip().endswith("True")


def run_suite(options: argparse.Namespace) -> dict:
    """Tests by what came of them."""
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(options.source / "plugin/python"), os.environ.get("PYTHONPATH")])
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if options.module:
        env["GPU_EXACT_MODULE"] = str(Path(options.module).resolve())
    report: dict = {"passed": [], "differs": {}, "failed": [], "skipped": {}, "on_cpu": ""}
    for name, chosen in SUITE.items():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.xml"
            # Some tests look for their data in the current folder.
            command = ["env", "-C", str(options.tests), os.path.abspath(options.python)]
            command += ["-m", "xgboost_gpu_exact", "-m", "pytest", *OPTIONS]
            command += [f"--junitxml={out}", "-k", chosen, f"tests/python/{name}"]
            status, output, _ = run(command, env, options.timeout)
            cases = list(ElementTree.parse(out).iter("testcase")) if out.is_file() else []
        before = len(report["failed"])
        for case in cases:
            sort_in(case, name, report)
        if status not in (0, 1):  # 1: tests have failed
            report["failed"].append(f"{name}::pytest ended with {status}")
        if len(report["failed"]) > before:
            print(output[-4000:])
        fell_back = [text for text in output.splitlines() if "own exact builder grows" in text]
        report["on_cpu"] = report["on_cpu"] or "".join(fell_back[:1]).strip()
    return report


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
        report["passed"].append(test)


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
        options.out.write_text(json.dumps(facts | run_suite(options), indent=2) + "\n")
    report = read_report(options.out)
    if report is None:
        return 1
    counts = {name: len(report[name]) for name in ("passed", "differs", "failed", "skipped")}
    print(f"{report['xgboost']}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    for test, reason in report["differs"].items():
        print(f"{test} differs: {reason}")
    found = problems(report, current)
    print("\n".join(found) if found else f"All is accounted for on {report['device']}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
