# Copyright 2026, the gpu_exact contributors
"""The version of this plugin, and the releases of XGBoost that one build of it serves.

Nothing else names them: CMake reads this file, the module and the packages take them from there,
and `tests/e2e/test_versions.py` compares what has to repeat them.
`tests/release_check.py` says whether one more release can be served.
"""

__version__ = "0.1.0"

# Each with the SHA-256 of its source distribution, ascending. The module is compiled against the
# headers of the last one. A set and not a range: any release may lay out its classes anew.
XGBOOST_RELEASES = {
    "3.4.0": "a6b5d114e7186b5a68c5b08b42297fc76c8c5d7292294220cdb12a6efd59977e",
    "3.4.1": "6968a4c71efdfa859df0dfcad0d99211c95c28c4ffd6aecff46efff77d18026a",
}
