# Copyright 2026, the gpu_exact contributors
"""xgboost_suite.py: what is made of the results of XGBoost's own tests, with faults planted."""

import json
import os
import sys
from pathlib import Path

import pytest
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import xgboost_suite  # noqa: E402

FILE = """
import sys
from pathlib import Path
import numpy as np, pytest, xgboost as xgb

def train(method):
    X = np.arange(60, dtype=np.float32).reshape(20, 3)
    xgb.train({{"tree_method": method}}, xgb.DMatrix(X, X[:, 0]), 2)

def test_good():
    assert "xgboost_gpu_exact" in sys.modules and Path("demo").is_dir()
    train("exact")

def test_hist():
    train("hist")

def test_bad():
    assert False

@pytest.mark.parametrize("k", [1])
def test_other(k):
    assert {differs}

def test_absent():
    pytest.skip("no data")

def test_not_chosen():
    assert False
"""
CHOSEN = "good or hist or bad or other or absent"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one file of tests."""
    monkeypatch.setattr(xgboost_suite, "SUITE", {"test_a.py": CHOSEN})
    monkeypatch.setattr(xgboost_suite, "DIFFERS", {"test_other": "we do more"})
    monkeypatch.setattr(xgboost_suite, "OPTIONS", ["-q", "-p", "no:cacheprovider"])
    for folder in ("tests/python", "demo"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests/python/test_a.py").write_text(FILE.format(differs=False))
    return tmp_path


def run(checkout: Path) -> dict:
    out = checkout / "report.json"
    module = os.environ.get("GPU_EXACT_MODULE") or gpu_exact._module._name
    arguments = ["--tests", str(checkout), "--module", module, "--out", str(out)]
    assert xgboost_suite.main(arguments) == 1
    return json.loads(out.read_text())


def test_each_test_is_accounted_for(checkout, builder):
    report = run(checkout)
    assert report["passed"] == ["test_a.py::test_good"]
    assert report["others"] == ["test_a.py::test_hist"]
    assert report["failed"] == ["test_a.py::test_bad"]
    assert report["differs"] == {"test_a.py::test_other[1]": "we do more"}
    assert report["skipped"] == {"test_a.py::test_absent": "no data"}
    there = {"device": "a GPU", "use_cuda": True, "built_of": [report["source_hash"]]}
    found = xgboost_suite.problems(report | there, report["source_hash"])
    assert found == ["test_a.py::test_bad failed.", "test_a.py::test_absent was skipped: no data"]


def test_an_exact_test_that_grows_no_tree_on_the_gpu_is_told(checkout):
    text = FILE.format(differs=False).replace("test_hist", "test_good_exact")
    (checkout / "tests/python/test_a.py").write_text(text)
    report = run(checkout)
    assert "test_a.py::test_good_exact" in report["others"]
    found = xgboost_suite.problems(report, report["source_hash"])
    assert "test_a.py::test_good_exact grew no tree on the GPU." in found


def test_a_module_of_other_sources_is_told(checkout):
    report = run(checkout)
    assert report["built_of"] == [gpu_exact.source_hash()]
    found = xgboost_suite.problems(report | {"built_of": ["abc"]}, report["source_hash"])
    assert [text for text in found if "of other sources (abc)" in text]


def test_boosters_are_brought_to_the_gpu(checkout, tmp_path_factory):
    (checkout / "tests/python/test_a.py").write_text('check("cpu", tree_method="exact")')
    for on_cuda, device in ((True, "cuda"), (False, "cpu")):
        folder = tmp_path_factory.mktemp("copy")
        xgboost_suite.copy_tests(checkout, folder, on_cuda)
        text = (folder / "tests/python/test_a.py").read_text()
        assert text == f'check("{device}", tree_method="exact")'


@pytest.mark.parametrize("use_cuda", [False, None])
def test_an_xgboost_without_cuda_proves_nothing(checkout, monkeypatch, use_cuda):
    assert xgboost_suite.uses_cuda(sys.executable) == xgb.build_info()["USE_CUDA"]
    monkeypatch.setattr(xgboost_suite, "uses_cuda", lambda _: use_cuda)
    report = run(checkout) | {"device": "a GPU"}
    found = xgboost_suite.problems(report, report["source_hash"])
    assert [text for text in found if "has no CUDA" in text]
    found = xgboost_suite.problems(report | {"device": None, "use_cuda": True}, "")
    assert "No NVIDIA GPU took part." in found


def test_what_should_differ_must(checkout):
    (checkout / "tests/python/test_a.py").write_text(FILE.format(differs=True))
    found = xgboost_suite.problems(run(checkout), "other sources")
    assert "test_other passed, and should differ." in found
    assert any("stale" in problem for problem in found)


def test_a_file_that_does_not_load_has_failed(checkout):
    (checkout / "tests/python/test_a.py").write_text("import nothing_of_that_name")
    report = run(checkout)
    assert report["failed"] and not report["passed"]
    assert "No test of test_a.py passed." in xgboost_suite.problems(report, "")


def test_trees_of_the_cpu_are_told(checkout):
    text = "import warnings\ndef test_good():\n    warnings.warn('the own exact builder grows')"
    (checkout / "tests/python/test_a.py").write_text(text)
    found = xgboost_suite.problems(run(checkout), "")
    assert any("own builder grew trees on the CPU" in problem for problem in found)


def test_checkout_and_report_must_be_there(checkout, capsys):
    with pytest.raises(SystemExit):
        xgboost_suite.main(["--tests", str(checkout / "demo")])
    assert "has no test_a.py" in capsys.readouterr().err
    assert xgboost_suite.main(["--check", "--out", str(checkout / "absent.json")]) == 1
    assert "There is no report absent.json" in capsys.readouterr().out
