# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A prediction that never falls where one feature grows, with thresholds that are exact."""

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = xgb.XGBRegressor(
    tree_method="exact",
    n_estimators=100,
    max_depth=4,
    monotone_constraints={"bmi": 1},  # 1: never falls, -1: never rises
)
model.fit(X, y)

# A patient at every body mass index of the table, all else as it is.
steps = np.unique(X["bmi"])
for i in range(20):
    patient = X.iloc[[i] * len(steps)].assign(bmi=steps)
    predictions = model.predict(patient)
    assert np.all(np.diff(predictions) >= 0)
    if i == 0:
        print(f"the first patient: {predictions[0]:.1f} to {predictions[-1]:.1f}")
