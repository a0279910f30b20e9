# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""In the place of scikit-learn, whose import takes longer than all else that `import xgboost` does."""

raise ImportError("tests that make no estimator do without scikit-learn")
