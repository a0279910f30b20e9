# Copyright 2026, the gpu_exact contributors
"""ways_in.py: what counts as a way that grew its trees on the GPU, with faults planted."""

import argparse
import copy
import json
import os
import stat
import sys
from pathlib import Path

import pytest
import xgboost_gpu_exact as gpu_exact

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import ways_in  # noqa: E402
from ways_in import TRAIN, Session, Way  # noqa: E402

# Does in Python what the C program does.
PROGRAM = """
import ctypes, json, sys
import numpy as np
import xgboost as xgb
import xgboost_gpu_exact as gpu_exact
rand = ctypes.CDLL(None).rand
X = np.array([rand() for _ in range(3000)], np.float32).reshape(1000, 3) / np.float32(2**31 - 1)
usable, text = gpu_exact.device_status()
print("trees on the", "GPU:" if usable else "CPU:", text)
params = {{"tree_method": "exact", "device": sys.argv[1], "max_depth": {depth}}}
{fault}
model = xgb.train(params, xgb.DMatrix(X, X[:, 0] * X[:, 1] + X[:, 2]), 20)
print('"device":"%s"' % json.loads(model.save_config())["learner"]["generic_param"]["device"])
model.save_model(sys.argv[2])
"""
# Says that it was somewhere else.
ELSEWHERE = """
xgb.Booster.save_config = lambda _: '{"learner": {"generic_param": {"device": "elsewhere"}}}'
"""


def options(**given: object) -> argparse.Namespace:
    defaults = {"module": os.environ.get("GPU_EXACT_MODULE")}
    defaults |= dict.fromkeys(("rscript", "rscript_cuda", "c_example"))
    fixed = {"source": TESTS.parent, "timeout": 120.0}
    return argparse.Namespace(**defaults | fixed | given)


def program(folder: Path, fault: str = "", depth: int = 6) -> str:
    file = folder / "program"
    file.write_text(f"#!{sys.executable}\n{PROGRAM.format(fault=fault, depth=depth)}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def assert_works(row: dict) -> None:
    """It passed, or all is right but the device."""
    name = gpu_exact.device_status().text
    reasons = [""]
    if name.startswith("reference builder"):
        reasons = [f"the builder is no GPU: {name}"]
        if row["context"] == "cuda":  # which XGBoost looks for itself
            reasons += ["the context is cpu", "it does not say that it was in the context"]
    assert row["passed"] is (reasons == [""]) and any(r in row["reason"] for r in reasons), row


def test_each_way(builder, tmp_path):
    session = Session(options(c_example=program(tmp_path)), tmp_path)
    rows = list(session.rows_of_python(sys.executable))
    assert {row["way"] for row in rows} == {*ways_in.WAYS, "C"}
    for row in rows:
        assert_works(row)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (Way(TRAIN, env={"XGBOOST_GPU_EXACT_TAKEOVER": "0"}), "updater is not the plugin's"),
        (Way(TRAIN, imports=False), "updater is not the plugin's"),
        (
            Way("params['max_depth'] -= 'xgboost_gpu_exact' in sys.modules\n" + TRAIN),
            "the trees are not those of XGBoost's own exact",
        ),
        (Way("sys.exit('broken: ' + str(1))"), "it ended with 1: broken: 1"),
        (Way(""), "it ended without an answer"),
    ],
)
def test_a_way_with_a_fault_has_failed(builder, monkeypatch, tmp_path, way, reason):
    monkeypatch.setattr(ways_in, "WAYS", {"faulty": way})
    rows = list(Session(options(), tmp_path).rows_of_python(sys.executable))
    assert [row["passed"] for row in rows if row["way"] == "faulty"][0] is False
    assert reason in rows[0]["reason"]


@pytest.mark.parametrize(
    ("fault", "depth", "reason"),
    [
        ("", 5, "the trees are not those of XGBoost's own exact"),
        ("print('XGBoost\\'s own exact builder grows the trees')", 6, "XGBoost's own builder grew"),
        (ELSEWHERE, 6, "it does not say that it was in the context"),
        ("sys.argv[2] += '.other'", 6, "it saved no model"),
        ("sys.exit('broken')", 6, "it ended with 1: broken"),
    ],
)
def test_a_program_with_a_fault_has_failed(builder, tmp_path, monkeypatch, fault, depth, reason):
    monkeypatch.setattr(ways_in, "WAYS", {})
    session = Session(options(c_example=program(tmp_path, fault, depth)), tmp_path)
    row, *_ = session.rows_of_python(sys.executable)
    assert (row["way"], row["passed"]) == ("C", False) and reason in row["reason"]


def test_what_cannot_be_run_is_not_run(tmp_path, monkeypatch):
    absent = str(tmp_path / "absent")
    monkeypatch.setattr(ways_in, "WAYS", {})
    absents = dict.fromkeys(("rscript", "rscript_cuda", "c_example"), absent)
    session = Session(options(**absents), tmp_path)
    rows = [*session.rows_of_python(sys.executable), *session.rows_of_r()]
    assert {row["way"] for row in rows} == {"R", "C"}
    for row in rows:
        assert row["passed"] is None and "No such file" in row["reason"]
    for row, option in zip(Session(options(), tmp_path).rows_of_r(), ("", "-cuda"), strict=True):
        assert (row["passed"], row["reason"]) == (None, f"--rscript{option} was not given")


def answer(depth: int = 1) -> dict:
    config = {"gradient_booster": {"updater": [{"gpu_exact_train_param": {}}]}}
    config["generic_param"] = {"device": "cuda:0"}
    model = {"learner": {"gradient_booster": {"model": {"trees": [{"depth": depth}]}}}}
    builder = {"usable": True, "text": "a GPU"}
    return {"models": [model], "configs": [{"learner": config}], "builder": builder}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ([], None, ""),
        (["configs", 0, "learner", "gradient_booster", "updater"], [{}], "is not the plugin's"),
        (["configs", 0, "learner", "generic_param", "device"], "cpu", "the context is cpu"),
        (["builder", "usable"], False, "the builder is no GPU: a GPU"),
        (["builder", "text"], "reference builder (no GPU)", "the builder is no GPU: reference"),
        (["builder"], None, "the builder is no GPU: None"),
    ],
)
def test_what_a_way_must_show(path, value, message):
    ours = answer()
    place = ours
    for step in path[:-1]:
        place = place[step]
    if path:
        place[path[-1]] = value
    reason = ways_in.judge(ours, answer(), "cuda")
    assert message in reason and bool(reason) == bool(message)
    assert "the trees are not" in ways_in.judge(ours, answer(depth=2), "cuda")


def good_report() -> dict:
    names = ("way", "release", "wheel", "context")
    rows = [dict(zip(names, row, strict=True)) for row in ways_in.expected_rows()]
    for row in rows:
        row |= {"passed": True, "reason": "", "release": row["release"] or "3.4.1"}
        row["built_of"] = ["now"]
    return {"source_hash": "now", "device": "a GPU", "rows": rows}


def test_a_complete_report_proves():
    assert ways_in.problems(good_report(), "now") == []


def test_what_does_not_prove_is_said():
    def said(**changes: object) -> str:
        return " ".join(ways_in.problems(good_report() | changes, "now"))

    assert "stale" in said(source_hash="before")
    assert "No NVIDIA GPU" in said(device=None)
    others = [row | {"built_of": ["abc"]} for row in good_report()["rows"]]
    assert said(rows=others).count("of other sources (abc)") == len(others)
    for i, row in enumerate(rows := good_report()["rows"]):
        where = f"{row['way']} "
        assert f"{where}" in said(rows=rows[:i] + rows[i + 1 :])
        for passed, word in ((False, "failed: why"), (None, "was not run: why")):
            changed = copy.deepcopy(rows)
            changed[i] |= {"passed": passed, "reason": "why"}
            text = said(rows=changed)
            assert text.startswith(where) and text.endswith(word)


def test_runs_at_the_same_sources_add_up(tmp_path):
    rows = good_report()["rows"]
    first, rest = rows[:1], rows[1:]
    not_run = [row | {"passed": None, "reason": "no interpreter"} for row in rows]
    for row in not_run:
        del row["built_of"]
    failed = [row | {"passed": False, "reason": "why"} for row in first]
    assert ways_in.merged(rest, ways_in.merged(first, [], "no interpreter"), "") == rows
    assert ways_in.merged(not_run, rows, "") == rows  # what was run stays
    assert ways_in.merged(failed, rows, "") == failed + rest  # what is run again counts
    assert ways_in.merged(first, [], "no interpreter") == first + [
        row | {"release": ""} if row["way"] == "R" else row for row in not_run[1:]
    ]
    file = tmp_path / "report.json"
    assert ways_in.earlier_rows(file, {"source_hash": "now"}) == []
    file.write_text(json.dumps(good_report()))
    assert ways_in.earlier_rows(file, {"source_hash": "now", "device": "a GPU"}) == rows
    assert ways_in.earlier_rows(file, {"source_hash": "now", "device": "another GPU"}) == []
    assert ways_in.earlier_rows(file, {"source_hash": "later", "device": "a GPU"}) == []


def test_report_and_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ways_in, "WAYS", {})
    out = tmp_path / "ways_in.json"
    files = ["--out", str(out)]
    assert ways_in.main(["--check", *files]) == 1
    assert "There is no report" in capsys.readouterr().out
    # An interpreter without XGBoost is no reason to stop.
    assert ways_in.main(["--python", sys.executable, "--python", "/bin/false", *files]) == 1
    report = json.loads(out.read_text())
    assert all(row["passed"] is None for row in report["rows"])
    assert {"source_hash", "device", "driver"} <= set(report)
    reasons = {row["reason"] for row in report["rows"]}
    assert any("/bin/false has no usable XGBoost" in reason for reason in reasons)
    assert ways_in.main(["--check", *files]) == 1
    capsys.readouterr()
    assert ways_in.main(["--table", *files]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len({line.count("|") for line in lines}) == 1 and "cpu not run" in lines[2]


def test_readme_shows_the_report():
    report = TESTS / "ways_in.json"
    if not report.is_file():
        pytest.skip("there is no tests/ways_in.json yet")
    shown = (TESTS.parent / "README.md").read_text()
    assert ways_in.table(json.loads(report.read_text())) in shown
