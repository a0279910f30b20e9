#!/usr/bin/env bash
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
#
#   run_tests.sh MODULE         Install plugin/R with a built module into a library of its own, and
#                               run its tests. Ends with 77, "skipped", where R cannot run them.
#   run_tests.sh MODULE check   `R CMD check`, which runs the examples of its help pages too, finds
#                               nothing to say.
#   run_tests.sh                Only say whether R can.
#
# The R is the one on PATH, or the one below the root folder that GPU_EXACT_R_ROOT names: setup_r.sh
# made it, or pack_r.sh packed it with this very module and these tests. It needs XGBoost's package, and
# those that the tests use.
set -euo pipefail
root=${GPU_EXACT_R_ROOT:-}
plugin=$(realpath "$(dirname "$0")/../../plugin")
served=$(sed -n 's/^    "\([0-9.]*\)": "[0-9.]*",/\1/p' "$plugin/python/xgboost_gpu_exact/versions.py" |
  paste -sd ' ')
in_r() {
  if [ -n "$root" ]; then
    chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
  else
    env -u GPU_EXACT_MODULE "$@"
  fi
}

needed="stopifnot(any(startsWith(format(packageVersion('xgboost')), strsplit('$served', ' ')[[1]])))
  for (package in c('testthat', 'jsonlite', 'Matrix')) loadNamespace(package)"
if ! why=$(in_r Rscript -e "$needed" 2>&1); then
  echo "R's tests are skipped. They need R >= 4.3 with xgboost ${served// / or }, testthat, jsonlite and" \
    "Matrix, but: $(grep -v '^ *$' <<<"$why" | head -n 1)"
  exit 77
fi
if [ $# -eq 0 ]; then
  echo "R can run the tests."
  exit
fi

if [ -e "$root/run_tests" ]; then # packed
  cmp "$1" "$(find "$root/usr" -name "$(basename "$1")")"
  diff -r "$plugin/R/tests" "$root/tests"
  exec "$root/run_tests"
fi
work=/tmp/gpu_exact_r.$$ # below the root folder
trap 'rm -rf "$root$work"' EXIT
mkdir -p "$root$work/library"
cp -r "$plugin/R" "$1" "$root$work"
if [ "${2:-}" = check ]; then
  in_r GPU_EXACT_MODULE="$work/$(basename "$1")" _R_CHECK_FORCE_SUGGESTS_=false sh -c "cd $work &&
    R CMD build R && R CMD check --no-manual xgboostgpuexact_*.tar.gz" >"$root$work/log" 2>&1 &&
    grep '^Status: OK$' "$root$work/log" || { cat "$root$work/log"; exit 1; }
  exit
fi
in_r GPU_EXACT_MODULE="$work/$(basename "$1")" R CMD INSTALL --preclean --no-docs \
  --library="$work/library" "$work/R" >"$root$work/log" 2>&1 || { cat "$root$work/log"; exit 1; }
in_r R_LIBS="$work/library:${R_LIBS:-}" sh -c "cd $work/R/tests && Rscript testthat.R"
