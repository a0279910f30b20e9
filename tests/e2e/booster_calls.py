# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Everything that a booster can be asked, as arrays and texts to compare.

Run as a program it answers in a process without the plugin: PICKLE TABLE ANSWERS.
"""

import pickle
import sys
from collections.abc import Callable

import numpy as np
import xgboost as xgb

CALLS: dict[str, Callable[[xgb.Booster, xgb.DMatrix], object]] = {
    "predict": lambda b, d: b.predict(d),
    "margin": lambda b, d: b.predict(d, output_margin=True),
    "predict_training": lambda b, d: b.predict(d, training=True),
    "predict_some_rounds": lambda b, d: b.predict(d, iteration_range=(1, 3)),
    "inplace_predict": lambda b, d: b.inplace_predict(dense(d), iteration_range=(0, 2)),
    "pred_leaf": lambda b, d: b.predict(d, pred_leaf=True),
    "pred_contribs": lambda b, d: b.predict(d, pred_contribs=True),
    "approx_contribs": lambda b, d: b.predict(d, pred_contribs=True, approx_contribs=True),
    "pred_interactions": lambda b, d: b.predict(d, pred_interactions=True),
    "eval": lambda b, d: np.array(float(b.eval(fresh(d)).split(":")[-1])),
    "get_dump": lambda b, _: b.get_dump(with_stats=True, dump_format="json"),
    "get_score": lambda b, _: sorted(b.get_score(importance_type="gain").items()),
    "trees_to_dataframe": lambda b, _: b.trees_to_dataframe().to_csv(),
    "get_categories": lambda b, _: repr(b.get_categories(export_to_arrow=True).to_arrow()),
    "num_boosted_rounds": lambda b, _: b.num_boosted_rounds(),
    "num_features": lambda b, _: b.num_features(),
    "slice": lambda b, d: b[1:3].predict(d),
    "slice_of_slice": lambda b, d: b[0:4][::2].predict(d),
    "copy": lambda b, d: b.copy().predict(d),
    "save_raw": lambda b, _: b.save_raw("json").decode(),
    "load_model": lambda b, d: loaded(b).predict(d),
    "reset": lambda b, d: b.copy().reset().predict(d),
}


def dense(data: xgb.DMatrix) -> np.ndarray:
    """The table with NaN for what is missing; it has no empty last column."""
    table = data.get_data()
    out = np.full(table.shape, np.nan, np.float32)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    out[rows, table.indices] = table.data
    return out


def fresh(data: xgb.DMatrix) -> xgb.DMatrix:
    """One that no booster keeps predictions of."""
    return xgb.DMatrix(dense(data), data.get_label())


def loaded(booster: xgb.Booster) -> xgb.Booster:
    return xgb.Booster({"tree_method": "exact"}, model_file=booster.save_raw())


def answers(booster: xgb.Booster, data: xgb.DMatrix) -> dict[str, object]:
    """A call that XGBoost refuses, as it does some on a GPU, is answered by `refused`."""
    given: dict[str, object] = {}
    for name, call in CALLS.items():
        try:
            given[name] = call(booster, data)
        except xgb.core.XGBoostError:
            given[name] = "refused"
    return given


if __name__ == "__main__":
    model, table, out = sys.argv[1:]
    with open(model, "rb") as file:
        given = pickle.load(file)
    assert "xgboost_gpu_exact" not in sys.modules
    arrays = np.load(table)
    with open(out, "wb") as file:
        pickle.dump(answers(given, xgb.DMatrix(arrays["X"], arrays["y"])), file)
