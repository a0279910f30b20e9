# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
#
# Copies the module's sources into this package, so that an archive of it has all that it is built of. Run here,
# in a checkout, before `R CMD build`; remotes, pak and R-universe do (Config/build/bootstrap).
python <- Sys.which("python3")
if (!nzchar(python)) {
  stop("There is no python3, which the package's build needs, too.")
}
if (system2(python, c("../cmake/copy_sources.py", "src/cpp_src")) != 0L) {
  stop("The sources were not copied: run this in the folder plugin/R of a checkout.")
}
