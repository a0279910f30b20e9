#!/usr/bin/env bash
# Copyright 2026, the gpu_exact contributors
#
#   run_tests.sh MODULE   Install plugin/R with a built module into a library of its own, and run
#                         its tests. Ends with 77, "skipped", where R cannot run them.
#   run_tests.sh          Only say whether R can.
#
# The R is the one on PATH, or the one below the root folder that GPU_EXACT_R_ROOT names and
# setup_r.sh made. It needs xgboost 3.4.1 and what the tests use: testthat, jsonlite, Matrix.
set -euo pipefail
root=${GPU_EXACT_R_ROOT:-}
plugin=$(realpath "$(dirname "$0")/../../plugin")

in_r() { # as seen from the root folder: there the work folder is $work
  if [ -n "$root" ]; then
    chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
  else
    env "$@"
  fi
}

needed='stopifnot(packageVersion("xgboost") >= "3.4.1", packageVersion("xgboost") < "3.4.2")
  for (package in c("testthat", "jsonlite", "Matrix")) loadNamespace(package)'
if ! why=$(in_r Rscript -e "$needed" 2>&1); then
  echo "R's tests are skipped, they need R >= 4.3 with xgboost 3.4.1, testthat, jsonlite, Matrix: " \
    "$(tail -n 1 <<<"$why")"
  exit 77
fi
if [ $# -eq 0 ]; then
  echo "R's tests are run."
  exit 0
fi

work=/tmp/gpu_exact_r.$$
mkdir "$root$work"
trap 'rm -rf "$root$work"' EXIT
cp -r "$plugin/R" "$1" "$root$work"
mkdir "$root$work/library"
in_r GPU_EXACT_MODULE="$work/$(basename "$1")" R CMD INSTALL --preclean --no-docs \
  --library="$work/library" "$work/R" >"$root$work/log" 2>&1 || { cat "$root$work/log"; exit 1; }
in_r R_LIBS="$work/library" sh -c "cd $work/R/tests && Rscript testthat.R"
