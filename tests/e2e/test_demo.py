# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The demo as a user's example, and the files that it reads."""

import re
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost_gpu_exact as gpu_exact
from sklearn.datasets import dump_svmlight_file
from xgboost_gpu_exact import compare, demo
from xgboost_gpu_exact.tables import TableError, load, objective_params, split_params, synthetic


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(200, 3)).astype(np.float32), columns=["a", "b", "c"])
    frame.loc[::7, "b"] = np.nan
    frame["kind"] = np.where(frame["a"] + frame["c"] > 0.3, "yes", "no")
    return frame


def run_demo(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["demo", *map(str, arguments)])
    return demo.main()


def test_csv_and_parquet_give_the_same_table(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        table = load(str(tmp_path / name), "kind")
        np.testing.assert_array_equal(table.X, frame[["a", "b", "c"]].to_numpy())
        np.testing.assert_array_equal(table.y, frame["kind"] == "yes")


def test_decimals_are_numbers(frame, tmp_path):
    labels = [Decimal(10), Decimal("2.5")] * 100
    frame[["a"]].assign(price=labels).to_parquet(tmp_path / "t.parquet")
    assert load(str(tmp_path / "t.parquet"), "price").y[:2].tolist() == [10.0, 2.5]


def test_npz_with_matrix_and_with_named_columns(frame, tmp_path):
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["a"].to_numpy()
    np.savez(tmp_path / "matrix.npz", X=X, y=y)
    np.savez(tmp_path / "columns.npz", a=X[:, 0], b=X[:, 1], c=X[:, 2], goal=y)
    for table in (load(str(tmp_path / "matrix.npz")), load(str(tmp_path / "columns.npz"), "goal")):
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, y)


def test_npz_of_columns_that_scipy_wrote(tmp_path):
    X = sp.random(5, 5, 0.5, "csc", random_state=1, dtype=np.float32)
    sp.save_npz(tmp_path / "x.npz", X)
    with np.load(tmp_path / "x.npz") as arrays:
        np.savez(tmp_path / "t.npz", y=np.arange(5), **arrays)
    np.testing.assert_array_equal(load(str(tmp_path / "t.npz")).X.toarray(), X.toarray())


def test_text_is_no_number(tmp_path):
    (tmp_path / "t.csv").write_text('a,price\n1,"1,234"\n2,"99"\n3,"1,234"\n')
    table = load(str(tmp_path / "t.csv"), "price")
    assert table.y.tolist() == [0, 1, 0] and table.rows([0]).class_names is table.class_names
    assert objective_params(table, "multi:softprob")["num_class"] == 2
    with pytest.raises(TableError, match="`reg:squarederror` needs numbers .* such as `1,234`, `99`"):
        objective_params(table, "reg:squarederror")


def test_libsvm_keeps_absent_apart_from_zero_and_reads_queries(tmp_path):
    X = sp.csr_matrix(([1.5, 0.0, 2.5], ([0, 1, 2], [2, 0, 1])), shape=(3, 3))
    dump_svmlight_file(X, [1, 0, 2], str(tmp_path / "t.libsvm"), query_id=[5, 3, 5])
    table = load(str(tmp_path / "t.libsvm"))
    assert table.X.nnz == 2 + 1  # the explicit zero stays
    assert table.y.tolist() == [0, 1, 2]  # the rows of a query together
    assert table.qid.tolist() == [0, 1, 1]
    assert objective_params(table, "rank:ndcg") == {"objective": "rank:ndcg"}


def test_libsvm_classes_are_zero_and_one(tmp_path):
    dump_svmlight_file(sp.eye(3).tocsr(), [1, -1, 1], str(tmp_path / "t.libsvm"))
    assert load(str(tmp_path / "t.libsvm")).y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("label", "message"),
    [(None, "it has a, b, c, kind"), ("goal", "no column `goal`; it has a, b, c, kind")],
)
def test_missing_label_names_the_columns(frame, tmp_path, label, message):
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match=message):
        load(str(tmp_path / "t.csv"), label)


def test_unusable_input_is_one_sentence(frame, tmp_path, monkeypatch, capsys):
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match="no numbers: kind; encode or drop them: .* no categories"):
        load(str(tmp_path / "t.csv"), "a")
    frame.astype({"kind": "category"}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(TableError, match="no numbers: kind; encode or drop them: .* no categories"):
        load(str(tmp_path / "c.parquet"), "a")
    with pytest.raises(TableError, match="no file"):
        load(str(tmp_path / "nothing.csv"), "a")
    (tmp_path / "t.xls").write_text("")
    with pytest.raises(TableError, match="none of .csv"):
        load(str(tmp_path / "t.xls"), "a")
    frame.assign(kind=frame["kind"].where(frame["a"] > 0)).to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(TableError, match="label of `m.csv` has missing"):  # no class of its own
        load(str(tmp_path / "m.csv"), "kind")
    np.savez(tmp_path / "flat.npz", X=np.arange(3), y=np.arange(3))
    with pytest.raises(TableError, match="is no table of rows and columns"):
        load(str(tmp_path / "flat.npz"), None)
    whole = (tmp_path / "flat.npz").read_bytes()
    (tmp_path / "torn.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="`torn.npz` cannot be read"):
        load(str(tmp_path / "torn.npz"), None)
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(TableError, match="one array without a name"):
        load(str(tmp_path / "array.npz"), None)
    names = frame.assign(qid=np.where(frame["a"] > 0, "q", None))
    names.to_parquet(tmp_path / "q.parquet")
    with pytest.raises(TableError, match="queries of `q.parquet` have missing"):
        load(str(tmp_path / "q.parquet"), "kind")
    with pytest.raises(TableError, match="NAME=VALUE"):
        split_params(["eta"])
    with pytest.raises(TableError, match="needs queries"):
        objective_params(synthetic(10), "rank:ndcg")
    arguments = ("--data", tmp_path / "t.csv", "--label", "goal", "--objective", "binary:logistic")
    assert run_demo(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err.startswith("error: `t.csv` has no column `goal`")


# name, content, label, objective, what is told
UNFIT = [
    ("inf.csv", "a,b,y\n1,2,0\ninf,3,1\n", "y", "binary:logistic", "infinite .* in columns `a`; replace"),
    ("large.csv", "a,b,y\n1,-1e39,0\n2,3,1\n", "y", "reg:squarederror", "than 32 bits .* columns `b`;"),
    ("inf.libsvm", "0 1:2\n1 2:-inf\n", None, "binary:logistic", "infinite .* in columns 1; replace"),
    ("signs.csv", "a,y\n1,-1\n2,1\n3,1\n", "y", "binary:logistic", "found -1 to 1: write 0 for"),
    ("many.csv", "a,y\n1,0\n2,1\n3,2\n", "y", "reg:logistic", "labels from 0 to 1; found 0 to 2"),
    ("w.libsvm", "# a\n0:0.5 1:2\n", None, "binary:logistic", "line 2: the weight in `0:0.5` is not read;"),
    ("w.txt", "0 1:2\n1:2 1:3\n", None, "reg:squarederror", "line 2: the weight in `1:2` is not read;"),
    ("below.csv", "a,y\n1,-1\n2,-1\n3,-1\n", "y", "count:poisson", "label must be non-negative"),  # XGBoost's
]


@pytest.mark.parametrize(("name", "content", "label", "objective", "told"), UNFIT)
@pytest.mark.parametrize("program", [demo, compare])
def test_what_does_not_fit_is_one_line(
    name, content, label, objective, told, program, tmp_path, monkeypatch, capfd
):
    (tmp_path / name).write_text(content)
    arguments = ["--data", str(tmp_path / name), "--objective", objective]
    arguments += ["--label", label] if label else []
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.main() == 2
    error = capfd.readouterr().err
    assert re.match(f"error: .*{told}", error) and error.count("\n") == 1, error


def test_users_file(frame, tmp_path, monkeypatch, capsys):
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--data", tmp_path / "t.csv", "--label", "kind", "--objective", "multi:softprob"]
    assert run_demo(monkeypatch, *arguments, "--rounds", 4, "--max-depth", 3) == 0
    out = capsys.readouterr().out
    assert "t.csv: 200 x 3" in out and "mlogloss" in out
    counts = re.search(r"all trees: (\d+) identical, (\d+) near-tie, 0 different", out)
    assert int(counts[1]) + int(counts[2]) == 8
    assert out.count(": round 4 of at most 4 ") == 2
    assert ("milliseconds a tree" in out) == gpu_exact.device_status().usable
    assert ("nothing was timed" in out) != gpu_exact.device_status().usable


def test_without_a_gpu_nothing_is_timed(monkeypatch, capsys):
    """Both sides would be XGBoost's own builder."""
    status = gpu_exact.DeviceStatus(False, "none for this test")
    for module in (demo, compare):
        monkeypatch.setattr(module, "device_status", lambda: status)
    monkeypatch.setattr(demo, "CASES", demo.CASES[1:2])
    assert run_demo(monkeypatch, "--rounds", 3) == 0
    out = capsys.readouterr().out
    assert "breast_cancer: 569 x 30" in out and "0 different" in out
    assert " ms a tree" not in out and "milliseconds" not in out and "speed" not in out


def test_a_different_tree_fails(frame, tmp_path, monkeypatch, capsys):
    frame.to_csv(tmp_path / "t.csv", index=False)
    train = demo.train

    def train_worse(params, *args, ours, **kwargs):
        depth = params["max_depth"] - 1 if ours else params["max_depth"]
        return train(params | {"max_depth": depth}, *args, ours=ours, **kwargs)

    monkeypatch.setattr(demo, "train", train_worse)
    arguments = ["--data", tmp_path / "t.csv", "--label", "kind", "--objective", "binary:logistic"]
    assert run_demo(monkeypatch, *arguments, "--rounds", 4, "--max-depth", 3) == 1
    out = capsys.readouterr().out
    assert "different:" in out and "plugin   leaf" in out and "XGBoost  f" in out


def test_a_query_is_not_split():
    table = synthetic(100)._replace(qid=np.arange(100) // 7)
    for_training, held_out = demo.split(table)
    assert not set(for_training.qid) & set(held_out.qid)
    assert len(for_training.qid) + len(held_out.qid) == 100


def test_synthetic_follows_the_seed():
    a, b, c = synthetic(50, 5, seed=1), synthetic(50, 5, seed=1), synthetic(50, 5, seed=2)
    np.testing.assert_array_equal(a.X, b.X)
    assert (a.X != c.X).any() and 0 < a.y.mean() < 1
