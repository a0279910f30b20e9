# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Stop when rows that were held out get no better, and keep the best round."""

import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True)
X_train, X_held_out, y_train, y_held_out = train_test_split(X, y, random_state=0)
train, held_out = xgb.DMatrix(X_train, y_train), xgb.DMatrix(X_held_out, y_held_out)

params = {"tree_method": "exact", "objective": "binary:logistic", "eval_metric": "logloss"}
model = xgb.train(
    params,
    train,
    num_boost_round=500,
    evals=[(held_out, "held_out")],
    early_stopping_rounds=10,
    verbose_eval=False,
)
print(f"round {model.best_iteration} of {model.num_boosted_rounds()}: {model.best_score:.4f}")

best = model[: model.best_iteration + 1]  # a model of the best rounds alone
print(best.eval(held_out))
