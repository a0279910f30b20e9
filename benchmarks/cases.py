# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""What is measured: shapes and series of tables, and how one table serves several processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "datasets"))

import synthetic
from synthetic import Table

SPARSE = ("data", "indices", "indptr")  # of a CSR matrix


class Case(NamedTuple):
    """A table and how it is trained. A series' cases are named `<series>-<value>`."""

    name: str
    rows: int
    max_depth: int = 6
    shape: str = ""  # one of synthetic.SHAPES; else a table of those below
    columns: int = 28
    distinct: int | None = None
    missing: float = 0.0
    a_row: int | None = None  # of a sparse table, which has no distinct or missing ones
    ones: bool = False
    categories: tuple[int, ...] = ()  # of each categorical column, which come before `columns`
    params: tuple[tuple[str, Any], ...] = ()  # XGBoost's, beside those that all have

    @property
    def objective(self) -> str:
        return synthetic.SHAPES[self.shape].objective if self.shape else "binary:logistic"

    @property
    def metric(self) -> str:
        return synthetic.SHAPES[self.shape].metric if self.shape else "logloss"

    @property
    def classes(self) -> int:
        """Trees of a round, too."""
        return synthetic.SHAPES[self.shape].classes if self.shape else 1

    @property
    def feature_types(self) -> list[str] | None:
        """XGBoost's; None: all are numbers."""
        return ["c"] * len(self.categories) + ["q"] * self.columns if self.categories else None

    @property
    def stock(self) -> bool:
        """Whether XGBoost's own exact builder grows such trees."""
        return not self.categories and "max_leaves" not in dict(self.params)

    @property
    def table(self) -> Case:
        """Equal for cases that are trained on one table."""
        return self._replace(name="", max_depth=0, params=())

    def make(self) -> Table:
        if self.shape:
            return synthetic.make(self.shape, self.rows)
        if self.categories:
            return synthetic.coded(self.rows, self.categories, self.columns)
        if self.a_row is not None:
            return synthetic.sparse(self.rows, self.columns, self.a_row, ones=self.ones)
        return synthetic.dense(
            self.rows, self.columns, distinct=self.distinct, missing=self.missing
        )


def all_cases() -> list[Case]:
    """Neighbours share a table where they can: it is made once for them."""
    cases = [
        Case(name, s.rows, s.max_depth, name)
        for name, s in synthetic.SHAPES.items()
        if name not in ("credit", "segments", "small")
    ]
    cases[1:1] = [cases[0]._replace(name=f"higgs_{d}", max_depth=d) for d in (6, 8)]
    cases += [Case(f"small-{n}", n, shape="small") for n in (1_000, 10_000, 100_000)]
    # 10^8 rows x 8 and 10^5 rows x 4,096 fit on one GPU, and are made, loaded and trained on in
    # less than a minute.
    cases += [Case(f"growth-rows-{10**p}", 10**p, columns=8) for p in range(4, 9)]
    cases += [
        Case(f"growth-features-{m}", 100_000, columns=m) for m in (4, 16, 64, 256, 1024, 4096)
    ]
    million = Case("", 1_000_000)
    cases += [million._replace(name=f"growth-depth-{d}", max_depth=d) for d in (4, 8, 12, 16)]
    cases += [
        million._replace(name=f"growth-distinct-{k or 'all'}", distinct=k)
        for k in (2, 16, 256, 4096, None)
    ]
    cases += [
        million._replace(name=f"growth-missing-{p}", missing=p / 100) for p in (0, 50, 90, 99)
    ]
    # More than a GPU should hold: workers of scale.py divide it.
    cases.append(Case("huge", 100_000_000, 8, columns=100))
    return cases + other_cases()


def other_cases() -> list[Case]:
    """What the others are not: constraints, sampling, leaf-wise, categories, sparse tables, odd sizes."""

    def case(name: str, rows: int, columns: int, max_depth: int, **fields: Any) -> Case:
        return Case(f"other-{name}", rows, max_depth, columns=columns, **fields)

    def leaves(n: int) -> dict[str, Any]:
        return {"params": (("grow_policy", "lossguide"), ("max_leaves", n))}

    falling = f"({','.join(['-1'] * 20)})"
    announced = {"subsample": 0.8, "colsample_bytree": 0.8, "eta": 0.1, "min_child_weight": 2}
    # As lenders do: a half of the columns has a sign, that of its effect.
    signs = f"({','.join(map(str, ([1, 0, -1, 0] * 8)[:30]))})"
    ads = tuple(10 ** (2 + i % 3) for i in range(26))
    access = (7_500, 4_300, 130, 180, 450, 340, 2_400, 70, 340) + (50,) * 14
    return [
        case("monotone", 1_000_000, 20, 6, params=(("monotone_constraints", falling),)),
        case(
            "credit", 1_000_000, 30, 6, shape="credit", params=(("monotone_constraints", signs),)
        ),
        case("defaults", 1_000_000, 28, 6, params=tuple(announced.items())),
        case("segments", 1_000_000, 8, 12, shape="segments"),
        case("step", 1_000_000, 20, 6, params=(("max_delta_step", 0.1),)),
        case("sampled", 1_000_000, 40, 8, params=(("subsample", 0.5), ("colsample_bytree", 0.5))),
        case("leaves_31", 1_000_000, 28, 0, **leaves(31)),
        case("leaves_255", 1_000_000, 28, 0, **leaves(255)),
        case("many_leaves_31", 10_000_000, 28, 0, **leaves(31)),
        case("many_leaves_255", 10_000_000, 28, 0, **leaves(255)),
        case("ads", 5_000_000, 13, 8, categories=ads),
        case("flights", 10_000_000, 2, 8, categories=(12, 31, 7, 22, 300, 300)),
        case("access", 300_000, 0, 6, categories=access),
        case("sparse", 1_000_000, 1_000, 8, a_row=20),
        case("sparse_narrow", 2_000_000, 200, 6, a_row=7),
        case("sparse_wide", 50_000, 10_000, 8, a_row=100),
        case("ones", 1_000_000, 1_000, 6, a_row=20, ones=True),
        case("missing", 4_000_000, 60, 8, missing=0.95),
        case("half", 50_000, 3_000, 6, missing=0.5),
        case("middle", 20_000, 200, 6),
        case("wide", 2_000, 20_000, 6),
        case("narrow", 5_000_000, 4, 8),
        case("shallow", 1_000_000, 50, 3),
        case("deep", 3_000_000, 30, 14),
    ]


def select(names: list[str]) -> list[Case]:
    """Cases by name or by the series that they belong to."""
    cases = all_cases()
    chosen = []
    for name in names:
        found = [c for c in cases if c.name == name or c.name.startswith(name + "-")]
        if not found:
            groups = dict.fromkeys(c.name.rsplit("-", 1)[0] for c in cases)
            raise ValueError(f"There is no shape `{name}`; there are {', '.join(groups)}.")
        chosen += found
    return list(dict.fromkeys(chosen))


def save(table: Table, folder: Path) -> None:
    """Write a table for load(); uncompressed, so that it can be mapped."""
    arrays = {"y": table.y, "qid": table.qid}
    if sp.issparse(table.X):
        arrays |= {name: getattr(table.X, name) for name in SPARSE}
        arrays["shape"] = np.array(table.X.shape)
    else:
        arrays["X"] = table.X
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)


def load(folder: Path) -> Table:
    """A saved table; its arrays are mapped, not read."""
    arrays = {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")}
    X = arrays.get("X")
    if X is None:
        parts = tuple(arrays[name] for name in SPARSE)
        X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]), copy=False)
    return Table(X, arrays["y"], arrays.get("qid"))


@contextlib.contextmanager
def made(case: Case) -> Iterator[Path]:
    """The folder of a case's table, in memory if there is room, else where TMPDIR says."""
    table = case.make()
    n_bytes = 12 * len(table.y)  # label and query, at most
    n_bytes += sum(getattr(table.X, n).nbytes for n in SPARSE) if sp.issparse(table.X) else table.X.nbytes
    places = [place for place in ("/dev/shm", tempfile.gettempdir()) if os.access(place, os.W_OK)]
    for place in places:
        if shutil.disk_usage(place).free > 1.1 * n_bytes:
            break
    else:
        raise SystemExit(
            f"error: None of {', '.join(places)} has {n_bytes / 1e9:.1f} GB free for the table; name a "
            "folder that has in TMPDIR, or take fewer rows."
        )
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=place) as folder:
        save(table, Path(folder))
        del table
        yield Path(folder)
