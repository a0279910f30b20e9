#!/usr/bin/env bash
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
#
#   pack_r.sh ROOT MODULE OUT.tar.xz
#
# For a GPU machine that has no R: packs the R and xgboost that setup_r.sh put below ROOT, plugin/R
# with a built module, and its tests. What was packed, some 40 MB, is a root folder that runs on any
# Linux with an NVIDIA driver. There, as root:
#
#   mkdir r && tar -xf OUT.tar.xz -C r && r/run_tests
set -euo pipefail
root=$(realpath "$1") module=$(realpath "$2") out=$3
plugin=$(realpath "$(dirname "$0")/../../plugin")
in_root() {
  chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
}
small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT

rm -rf "$root/build/plugin" && mkdir -p "$root/build/plugin"
cp -r "$plugin/R" "$module" "$root/build/plugin"
in_root GPU_EXACT_MODULE="/build/plugin/$(basename "$module")" \
  R CMD INSTALL --preclean --no-docs /build/plugin/R >"$root/build/plugin.log" 2>&1 ||
  { cat "$root/build/plugin.log"; exit 1; }

# The files, below ROOT: R, the packages that the tests need, the commands that R calls, and the
# libraries of all of them; the last four are the driver's. R's modules are left out: sockets alone,
# which a test skips without, take 4 MB.
in_root bash -s >"$root/build/files" <<'LIST'
needed='base <- rownames(installed.packages(priority = "base"))
  used <- c("xgboostgpuexact", "testthat", "jsonlite", "Matrix")
  used <- c(used, unlist(tools::package_dependencies(used, installed.packages(), recursive = TRUE)))
  cat(find.package(setdiff(c(base, used), "tcltk")), sep = "\n")'
{
  find -L /usr/lib/R/{bin,etc,lib} /usr/lib/R/library/*.* /etc/R $(Rscript -e "$needed") -type f |
    grep -vE '/(help|html|doc|demo|po|include|tests|testme|translations)/|/libs/cairo.so$'
  ls /usr/bin/{R,Rscript,bash,sh,env,sed,rm,uname,dirname,basename,cat,expr,grep,mkdir,ls,which} \
    /lib64/ld-linux-x86-64.so.2
} 2>/dev/null >/build/programs
{
  cat /build/programs
  xargs ldd </build/programs 2>/dev/null | grep -oE '/[^ :]+\.so[^ :]*'
  ls /usr/lib/x86_64-linux-gnu/{libdl.so.2,librt.so.1,libpthread.so.0,libutil.so.1}
} | sed -E 's#^/(lib|lib64|bin)/#/usr/\1/#; s#^/##' | sort -u
LIST
in_root tar -C / -c -h -T /build/files | tar -C "$small" -x
find "$small" -name xgboost.so -exec strip -g {} + # not more: the plugin reads its symbol table
for folder in bin lib lib64; do ln -s "usr/$folder" "$small/$folder"; done
mkdir -p "$small"/{tmp,dev,proc}
cp -r "$plugin/R/tests" "$small/tests"
cat >"$small/run_tests" <<'RUN'
#!/bin/sh
# The tests of plugin/R, with the R below this folder and the driver of this machine. As root.
[ -n "${GPU_EXACT_MOUNTS:-}" ] || GPU_EXACT_MOUNTS=own exec unshare --mount "$0" # they end with it
here=$(dirname "$(realpath "$0")")
mount --rbind /dev "$here/dev" && mount -t proc proc "$here/proc" || exit 1
cuda=$(ldconfig -p | grep -m 1 -o '/.*libcuda\.so\.1') && driver=$(dirname "$(realpath -s "$cuda")")
mkdir -p "$here/driver"
cp -L "$driver/libcuda.so.1" "$driver/libnvidia-ptxjitcompiler.so.1" "$here/driver/" 2>/dev/null
exec chroot "$here" /usr/bin/env -i HOME=/tmp PATH=/usr/bin LC_ALL=C LD_LIBRARY_PATH=/driver \
  sh -c 'Rscript -e "xgboostgpuexact::device_status()" && cd /tests && Rscript testthat.R'
RUN
chmod +x "$small/run_tests"
tar -C "$small" -c . | xz -T0 -9e >"$out"
ls -lh "$out"
