# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Why a model says what it says: SHAP values, the features that matter, a tree.

Pictures, which need matplotlib, go to a folder: `python shap_and_plots.py FOLDER`.
"""

import sys
from pathlib import Path

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes
from sklearn.datasets import load_diabetes

data = load_diabetes(as_frame=True)
train = xgb.DMatrix(data.data, data.target)
model = xgb.train({"tree_method": "exact", "max_depth": 3, "eta": 0.1}, train, 100)

# shape: (rows, features + 1); what each feature adds to a prediction, and last what all rows have.
contributions = model.predict(train, pred_contribs=True)
np.testing.assert_allclose(contributions.sum(axis=1), model.predict(train), rtol=1e-4)
importance = np.abs(contributions[:, :-1]).mean(axis=0)
for i in np.argsort(-importance)[:3]:
    print(f"{data.feature_names[i]}: {importance[i]:.1f} on average")

first = model.trees_to_dataframe().query("Tree == 0")  # its thresholds lie between values
print(first[["Node", "Feature", "Split", "Gain"]].head(3).to_string(index=False))

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = Path(sys.argv[1])
    xgb.plot_importance(model, importance_type="gain", values_format="{v:.0f}")
    plt.savefig(folder / "importance.png", bbox_inches="tight")
    figure, axes = plt.subplots()
    bmi = data.feature_names.index("bmi")
    axes.scatter(data.data["bmi"], contributions[:, bmi], s=8)
    axes.set(xlabel="body mass index, centred", ylabel="added to the prediction")
    figure.savefig(folder / "bmi.png", bbox_inches="tight")
