# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Rank the documents of queries: the best ones shall come first."""

import numpy as np
import xgboost as xgb
import xgboost_gpu_exact  # noqa: F401, all it takes

# 200 queries of 25 documents each; rows of one query lie side by side.
rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 10), dtype=np.float32)
query = np.repeat(np.arange(200), 25)
score = X[:, 0] + np.abs(X[:, 1]) + rng.standard_normal(5_000)
relevance = np.digitize(score, [0.5, 1.5, 2.5])  # 0: useless, 3: the best

train = query < 150
model = xgb.XGBRanker(
    tree_method="exact", objective="rank:ndcg", n_estimators=50, max_depth=4, learning_rate=0.1
)
model.fit(X[train], relevance[train], qid=query[train])

held_out = xgb.DMatrix(X[~train], relevance[~train], qid=query[~train])
print(model.get_booster().eval(held_out))  # 1 would be the best order

one = query == 199
order = np.argsort(-model.predict(X[one]))
print(f"relevance of the first five: {relevance[one][order[:5]]}")
