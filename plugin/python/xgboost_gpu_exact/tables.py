# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Read a table from a file, from scikit-learn's bundled ones, or make one from a seed."""

from __future__ import annotations

import zlib
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
import xgboost as xgb

if TYPE_CHECKING:
    import pandas as pd

LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")
BUNDLED = ("digits", "breast_cancer", "diabetes")


class TableError(ValueError):
    """The input is not usable: one sentence that says why."""


class Table(NamedTuple):
    """Rows to learn from. In X, NaN or (sparse) an absent value is missing."""

    name: str
    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    qid: np.ndarray | None = None  # the query of each row, ascending, for ranking
    class_names: np.ndarray | None = None  # of y = 0, 1, 2, ..., where the file has text

    def rows(self, index: np.ndarray) -> Table:
        """The same table with these rows only."""
        qid = self.qid if self.qid is None else self.qid[index]
        return self._replace(X=self.X[index], y=self.y[index], qid=qid)


def load(data: str, label: str | None = None) -> Table:
    """A bundled table by its name, or a CSV, Parquet, NPZ or LIBSVM file by its suffix.

    Parameters
    ----------
    label :
        The column to predict, of a CSV or Parquet file or of an NPZ file of named columns. An NPZ
        file with an array `X` takes `y` unless another is named; a LIBSVM file brings its label.
    """
    if data in BUNDLED:
        return _bundled(data)
    path = Path(data)
    if not path.is_file():
        raise TableError(
            f"There is no file `{data}`; a bundled table is one of {', '.join(BUNDLED)}."
        )
    readers = {
        ".csv": _read_csv,
        ".parquet": _read_parquet,
        ".npz": _read_npz,
        ".libsvm": _read_libsvm,
        ".svm": _read_libsvm,
        ".txt": _read_libsvm,
    }
    if path.suffix.lower() not in readers:
        raise TableError(f"`{path.name}` is none of {', '.join(readers)}; rename or convert it.")
    try:
        with np.errstate(over="ignore"):  # told of with the infinite ones
            return readers[path.suffix.lower()](path, label)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(
            f"Reading `{path.name}` needs pandas, pyarrow or scikit-learn; install them: {error}."
        ) from error
    except (ValueError, OSError, EOFError, BadZipFile, zlib.error) as error:
        raise TableError(f"`{path.name}` cannot be read: {error}") from error


def synthetic(n_rows: int, n_columns: int = 28, seed: int = 0) -> Table:
    """A dense table of continuous values with a noisy binary label; the same for the same seed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    signal = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - 0.8 + 0.5 * X[:, 3]
    y = (signal + rng.standard_normal(n_rows, dtype=np.float32) > 0).astype(np.float32)
    return Table(f"synthetic, seed {seed}", X, y)


def objective_params(table: Table, objective: str) -> dict[str, str | int]:
    """The objective and what it needs besides: the number of classes."""
    params: dict[str, str | int] = {"objective": objective}
    if table.class_names is not None and not objective.startswith(("binary:", "multi:")):
        names = _some([f"`{name}`" for name in table.class_names[:3]])
        raise TableError(f"`{objective}` needs numbers as labels; found text such as {names}.")
    if objective.startswith("rank:") and table.qid is None:
        raise TableError(
            f"`{objective}` needs queries: a LIBSVM file with qid:, or a column or array `qid`."
        )
    low, high = table.y.min(), table.y.max()
    if objective in LOGISTIC and (low < 0 or high > 1):
        raise TableError(
            f"`{objective}` needs labels from 0 to 1; found {low:g} to {high:g}: write 0 for one class "
            "and 1 for the other."
        )
    if objective.startswith("multi:"):
        if low < 0 or np.any(table.y != np.floor(table.y)):
            raise TableError(f"`{objective}` needs labels 0, 1, 2, ...; found {low} to {high}.")
        params["num_class"] = int(high) + 1
    return params


def to_dmatrix(table: Table, objective: str) -> xgb.DMatrix:
    """The table as XGBoost takes it; queries go along for ranking only."""
    return xgb.DMatrix(table.X, table.y, qid=table.qid if objective.startswith("rank:") else None)


def split_params(assignments: list[str]) -> dict[str, str]:
    """`["eta=0.3"]` to `{"eta": "0.3"}`; XGBoost reads the values."""
    for text in assignments:
        if "=" not in text:
            raise TableError(f"`--param {text}` is not NAME=VALUE.")
    return dict(text.split("=", 1) for text in assignments)


def _bundled(name: str) -> Table:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise TableError(f"The table `{name}` comes with scikit-learn; install that.") from error
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Table(name, X.astype(np.float32), y.astype(np.float32))


def _read_csv(path: Path, label: str | None) -> Table:
    import pandas as pd

    return _from_frame(path, pd.read_csv(path), label)


def _read_parquet(path: Path, label: str | None) -> Table:
    import pandas as pd

    return _from_frame(path, pd.read_parquet(path), label)


def _from_frame(path: Path, frame: pd.DataFrame, label: str | None) -> Table:
    _require_label(path, label, list(map(str, frame.columns)))
    frame.columns = frame.columns.map(str)
    features = frame.drop(columns=[label, "qid"], errors="ignore")
    text = [c for c in features if not _is_number(features[c])]
    if text:
        raise TableError(
            f"Columns of `{path.name}` that hold no numbers: {_some(text)}; encode or drop them: XGBoost's "
            "own exact builder, which the plugin is compared with, takes no categories."
        )
    if frame[label].isna().any():  # of text and booleans, too
        raise TableError(MISSING_LABEL.format(path.name))
    qid = frame["qid"].to_numpy() if "qid" in frame.columns and label != "qid" else None
    if qid is not None and frame["qid"].isna().any():
        raise TableError(f"The queries of `{path.name}` have missing values; drop their rows.")
    X = features.to_numpy(dtype=np.float32, na_value=np.nan)
    y, class_names = _encode(frame[label].to_numpy())
    return _checked(Table(path.name, X, y, qid, class_names), list(features))


def _is_number(column: pd.Series) -> bool:
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column)  # also True for booleans


def _read_npz(path: Path, label: str | None) -> Table:
    with open(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise TableError(f"`{path.name}` is one array without a name; write it by `np.savez`.")
    with np.load(path, allow_pickle=False) as arrays:
        names = list(arrays.files)
        if {"indptr", "indices", "data", "shape"} <= set(names):
            content = (arrays["data"], arrays["indices"], arrays["indptr"])
            by_column = "format" in names and arrays["format"].item() in ("csc", b"csc")
            make = sp.csc_matrix if by_column else sp.csr_matrix
            X = make(content, shape=tuple(arrays["shape"]), dtype=np.float32).tocsr()
        elif "X" in names:
            X = np.asarray(arrays["X"], np.float32)
        else:
            X = None
        label = "y" if label is None and X is not None else label
        _require_label(path, label, names)
        if X is None:
            columns = [arrays[n] for n in names if n not in (label, "qid")]
            X = np.column_stack(columns).astype(np.float32)
        qid = arrays["qid"] if "qid" in names else None
        y, class_names = _encode(arrays[label])
        return _checked(Table(path.name, X, y, qid, class_names))


def _read_libsvm(path: Path, label: str | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    if label is not None:
        raise TableError(f"`{path.name}` is LIBSVM, where the label comes first; drop `--label`.")
    try:
        X, y, qid = load_svmlight_file(str(path), dtype=np.float32, query_id=True)
    except ValueError:
        _refuse_weights(path)
        raise
    if set(np.unique(y)) == {-1.0, 1.0}:  # the format's two classes; XGBoost's are 0 and 1
        y = y > 0
    return _checked(Table(path.name, X, y.astype(np.float32), qid if len(qid) else None))


def _refuse_weights(path: Path) -> None:
    """TableError where a label has a weight, as in XGBoost's own text format."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            label, colon, weight = b"".join(line.split(b"#")[0].split()[:1]).decode().partition(":")
            if colon:
                raise TableError(
                    f"`{path.name}`, line {number}: the weight in `{label}:{weight}` is not read; write "
                    f"`{label}` alone."
                )


def _require_label(path: Path, label: str | None, columns: list[str]) -> None:
    if label is None:
        raise TableError(
            f"Say which column of `{path.name}` is the label; it has {_some(columns)}."
        )
    if label not in columns:
        raise TableError(f"`{path.name}` has no column `{label}`; it has {_some(columns)}.")


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _encode(label: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers as they are; anything else as 0, 1, 2, ... in sorted order, with what they stand for."""
    if label.dtype.kind in "biuf" or all(isinstance(value, Number) for value in label):
        return label.astype(np.float32), None
    class_names, y = np.unique(label.astype(str), return_inverse=True)
    return y.astype(np.float32), class_names


MISSING_LABEL = "The label of `{}` has missing or infinite values; drop them."


def _checked(table: Table, columns: list[str] | None = None) -> Table:
    """The table, its queries in order; TableError where it is none. `columns`: their names."""
    if table.X.ndim != 2 or 0 in table.X.shape:
        raise TableError(f"`{table.name}` is no table of rows and columns: shape {table.X.shape}.")
    n_rows = table.X.shape[0]
    if table.y.shape != (n_rows,):
        raise TableError(f"`{table.name}` has {n_rows} rows, its label the shape {table.y.shape}.")
    if not np.all(np.isfinite(table.y)):
        raise TableError(MISSING_LABEL.format(table.name))
    if isinstance(table.X, np.ndarray):
        infinite = np.flatnonzero(np.isinf(table.X).any(axis=0))
    else:
        infinite = np.unique(table.X.indices[np.isinf(table.X.data)])
    if len(infinite):
        names = _some([f"`{columns[i]}`" if columns else str(i) for i in infinite])
        raise TableError(
            f"`{table.name}` has infinite values, or larger ones than 32 bits hold, in columns {names}; "
            "replace them by numbers, or leave them out."
        )
    if table.qid is None:
        return table
    qid = np.unique(table.qid, return_inverse=True)[1]  # numbers, also where they were names
    order = np.argsort(qid, kind="stable")  # XGBoost wants a query's rows together
    return table._replace(qid=qid).rows(order)
