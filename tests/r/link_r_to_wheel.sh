#!/usr/bin/env bash
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
#
#   link_r_to_wheel.sh ROOT LIBXGBOOST OUT
#
# R with device="cuda" without hours of compiling: XGBoost's R package, as setup_r.sh put it below
# ROOT, with its R interface alone, on the libxgboost.so of the Python wheel that has CUDA. Writes it
# to the folder OUT below ROOT, for R_LIBS. The library itself is looked up when R loads it: put a
# folder that has it as libxgboost.so.3 into LD_LIBRARY_PATH.
set -euo pipefail
root=$(realpath "$1") library=$(realpath "$2") out=$3

rm -rf "${root:?}/build/wheel" "${root:?}/$out" && mkdir -p "$root/build/wheel" "$root/$out"
cp "$library" "$root/build/wheel/libxgboost.so"
cp -r "$root/usr/local/lib/R/site-library/xgboost" "$root/$out"
# What the interface calls in C++ is not exported by the wheel: JSON and the log's level.
echo '#include "../../src/data/array_interface.h"
void xgboost::ArrayInterfaceHandler::SyncCudaStream(std::int64_t) {}
bool xgboost::ArrayInterfaceHandler::IsCudaPtr(void const*) { return false; }' \
  >"$root/build/xgboost/src/src/wheel_array.cc"
chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 bash -euo pipefail -s "$out" <<'BUILD'
cd /build/xgboost/src
flags="-O1 -fPIC -fvisibility=hidden -ffunction-sections -fopenmp -I. -Iinclude -Idmlc-core/include
       $(R CMD config --cppflags) -DXGBOOST_STRICT_R_MODE=1 -DDMLC_LOG_CUSTOMIZE=1
       -DXGBOOST_CUSTOMIZE_LOGGER=1 -DDMLC_LOG_BEFORE_THROW=0"
gcc $flags -c init.c -o /build/wheel/init.o
for source in xgboost_R xgboost_custom src/common/{json,charconv,common} src/{logging,global_config,wheel_array}; do
  g++ -std=gnu++17 $flags -c $source.cc -o "/build/wheel/$(basename $source).o"
done
g++ -shared -fopenmp -Wl,--no-undefined,--gc-sections -o "/$1/xgboost/libs/xgboost.so" /build/wheel/*.o \
  -L/build/wheel -lxgboost -L"$(R RHOME)/lib" -lR
BUILD
rm -rf "$root/build/wheel"
