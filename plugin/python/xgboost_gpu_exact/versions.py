# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The version of this plugin, and the releases of XGBoost that one build of it serves.

Nothing else names them: CMake reads this file, the module and the packages take them from there,
and `tests/e2e/test_versions.py` compares what has to repeat them.
`tests/release_check.py` says whether one more release can be served.
"""

__version__ = "0.3.0.dev0"  # `.dev0` until the commit that is released

# A layout of XGBoost's classes has the name of the release against whose headers its adapter is
# compiled; with the SHA-256 of that source distribution. Ascending.
XGBOOST_LAYOUTS = {
    "3.2.0": "99b0e9a2a64896cdaf509c5e46372d336c692406646d20f2af505003c0c5d70d",
    "3.3.0": "58bcb8a4cace648cdab7b94fa4f16d2c9ff26d90dd4d26907168106fa06d8746",
    "3.4.1": "6968a4c71efdfa859df0dfcad0d99211c95c28c4ffd6aecff46efff77d18026a",
}

# Each release that is served and its layout, ascending. A set and not a range: any release may lay
# out its classes anew.
XGBOOST_RELEASES = {
    "3.2.0": "3.2.0",
    "3.2.1": "3.2.0",
    "3.3.0": "3.3.0",
    "3.4.0": "3.4.1",
    "3.4.1": "3.4.1",
}
NEWEST_OF_PYTHON_3_10 = "3.2.0"  # and of 3.11; later releases have wheels for 3.12 on

# The wheels of them, which write one folder; by what the extras of this package call them.
XGBOOST_WHEELS = {
    "cpu": "xgboost-cpu",
    "cuda": "xgboost",
    "cuda12": "xgboost-cu12",
    "cuda13": "xgboost-cu13",
}
R_ONLY = {"3.2.1"}  # releases of R's package alone, as its 3.2.1.1 calls itself
SERVED = ", ".join(list(XGBOOST_RELEASES)[:-1]) + " or " + list(XGBOOST_RELEASES)[-1]
