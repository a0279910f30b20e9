# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A random forest of exact trees: each draws rows, and each node draws columns.

Drawing for each node needs XGBoost 3.3 or newer and a usable GPU. Otherwise set colsample_bynode=1.
"""

import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True)
X_train, X_held_out, y_train, y_held_out = train_test_split(X, y, random_state=0)

forest = xgb.XGBRFClassifier(
    tree_method="exact",
    n_estimators=200,  # trees, all of one round
    max_depth=8,
    subsample=0.8,
    colsample_bynode=0.3,
)
forest.fit(X_train, y_train)
trees = len(forest.get_booster().get_dump())
print(f"{trees} trees, accuracy {forest.score(X_held_out, y_held_out):.3f} on rows held out")
