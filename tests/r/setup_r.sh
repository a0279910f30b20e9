#!/usr/bin/env bash
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
#
#   setup_r.sh ROOT SOURCES [CPP_SRC ...]
#
# R 4.5 with XGBoost's R package in a Debian 13 of its own below the folder ROOT, for run_tests.sh;
# about 4 minutes and 1 GB. As root, on Debian or a relative.
#
# SOURCES  A tar archive, by path or URL, of either XGBoost's R source package (as R installs it)
#          or XGBoost's repository: of that R-package/ and amalgamation/ are taken, and src/ and
#          include/ where it has them. It may end in #sha256=<of the archive>, and a URL has to.
# CPP_SRC  The folders cpp_src of XGBoost's source distributions, which CMake puts into build/_deps;
#          only for the second kind of archive, which lacks what is in that of the same release. They
#          leave R-package/ out.
set -euo pipefail
if [[ $2 == *://* && $2 != *#sha256=* ]]; then
  echo "$2: end it in #sha256=<of the archive>." >&2
  exit 1
fi
root=$1 sources=$2
packages=r-base-core,r-cran-matrix,r-cran-jsonlite,r-cran-data.table,r-cran-testthat,g++,make,cmake
in_root() {
  chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
}

if [ ! -e "$root/.ready" ]; then
  if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends debootstrap
  fi
  # From the mirror that apt uses.
  mirror=$(apt-get indextargets --format "\$(REPO_URI)" "Created-By: Packages" | head -n 1)
  rm -rf "$root"
  debootstrap --force-check-gpg --variant=minbase --include="$packages" trixie "$root" "$mirror" >/dev/null
  in_root apt-get clean
  touch "$root/.ready"
fi

if ! in_root Rscript -e 'loadNamespace("xgboost")' >/dev/null 2>&1; then
  rm -rf "$root/build" && mkdir -p "$root/build/unpacked"
  archive=${sources%#sha256=*}
  case $archive in
    *://*) curl -fsSL -o "$root/build/sources" "$archive" ;;
    *) cp "$archive" "$root/build/sources" ;;
  esac
  [ "$archive" = "$sources" ] || sha256sum --check --quiet <<<"${sources##*=}  $root/build/sources"
  tar -xf "$root/build/sources" -C "$root/build/unpacked"
  part=$(find "$root/build/unpacked" -maxdepth 2 -type d -name R-package)
  package=$root/build/xgboost
  if [ -n "$part" ]; then # put together as for a release
    cp -r "$part" "$package"
    release=$(sed -n 's/^Version: \([0-9]*\.[0-9]*\)\..*/\1/p' "$part/DESCRIPTION")
    if [ $# -lt 3 ]; then
      echo "$sources is of XGBoost's repository: name the folders CPP_SRC too, see the head of this script." >&2
      exit 1
    fi
    for cpp_src in "${@:3}"; do # the last one, or that of the release
      version=$(sed -n 's/.*XGBOOST_VER_M[AI][JN]OR *//p' "$cpp_src/include/xgboost/version_config.h")
      [ "$(paste -sd . <<<"$version")" != "$release" ] || break
    done
    cp -r "$part/../amalgamation" "$cpp_src"/{src,include} "$package/src"
    for own in "$part"/../{src,include}; do
      [ ! -d "$own" ] || cp -r "$own" "$package/src"
    done
    mkdir "$package/src/dmlc-core"
    cp -r "$cpp_src"/dmlc-core/{include,src} "$package/src/dmlc-core"
    sed -i 's|^PKGROOT=.*|PKGROOT=.|' "$package/src/Makevars.in"
    rm -f "$package"/{bootstrap.R,CMakeLists.txt,remove_warning_suppression_pragma.sh}
  else
    mv "$root"/build/unpacked/* "$package"
  fi
  echo "CXX17FLAGS = -O1" >"$root/build/Makevars" # R's own flags take twice as long
  in_root MAKEFLAGS="-j$(nproc)" R_MAKEVARS_USER=/build/Makevars \
    R CMD INSTALL --no-docs /build/xgboost >"$root/build/install.log" 2>&1 ||
    { tail -n 20 "$root/build/install.log"; exit 1; }
fi
in_root Rscript -e 'cat(R.version.string, "with xgboost", format(packageVersion("xgboost")), "\n")'
