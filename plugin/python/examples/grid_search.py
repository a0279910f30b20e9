# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Search parameters with scikit-learn.

Fits run in this process, one after the other: one GPU is kept busy by one fit. Processes that n_jobs
starts have the plugin too, if pip has installed it.
"""

import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV

X, y = load_breast_cancer(return_X_y=True)
search = GridSearchCV(
    xgb.XGBClassifier(tree_method="exact", n_estimators=50),
    {"max_depth": [2, 4], "learning_rate": [0.1, 0.3]},
    scoring="neg_log_loss",
    cv=3,
)
search.fit(X, y)
print(f"best: {search.best_params_}, log loss {-search.best_score_:.3f}")
