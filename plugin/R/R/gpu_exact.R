# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0

take_over <- function(enabled = TRUE) {
  known <- length(enabled) == 1L && (is.logical(enabled) || is.numeric(enabled)) && !is.na(enabled)
  if (!known) {
    stop("enabled is ", deparse1(enabled), ": set it to TRUE or FALSE.")
  }
  invisible(.Call(C_take_over, as.logical(enabled)))
}

default_device <- function(device = "cuda") {
  invisible(.Call(C_default_device, as.character(device)))
}

device_status <- function(ordinal = -1L) {
  known <- length(ordinal) == 1L && is.numeric(ordinal) && ordinal %in% -1:9999
  if (!known) {
    stop("ordinal is ", deparse1(ordinal), ": give -1, 0, 1, ...")
  }
  .Call(C_device_status, as.integer(ordinal))
}

# Of what sources the module was built.
source_hash <- function() .Call(C_source_hash)

# Of the environment; names of earlier releases began with XGBOOST_.
variable <- function(name) Sys.getenv(name, Sys.getenv(paste0("XGBOOST_", name)))

wants_take_over <- function() {
  word <- tolower(trimws(variable("GPU_EXACT_TAKEOVER")))
  if (!word %in% c("", "1", "true", "on", "yes", "0", "false", "off", "no")) {
    stop("GPU_EXACT_TAKEOVER: `", word, "` is neither yes nor no: set it to 1 or 0.",
         call. = FALSE)
  }
  word %in% c("", "1", "true", "on", "yes")
}

.onLoad <- function(libname, pkgname) {
  takes_over <- wants_take_over()  # an error before anything is registered
  # The module looks for XGBoost in the process: NAMESPACE imports xgboost, so it is loaded.
  packaged <- file.path(libname, pkgname, "libxgboost_gpu_exact.so")
  named <- Sys.getenv("GPU_EXACT_MODULE")
  .Call(C_load, path.expand(if (nzchar(named)) named else packaged))
  device <- variable("GPU_EXACT_DEVICE")
  default_device(if (nzchar(device)) device else "cpu")
  .Call(C_register)
  if (takes_over) {
    take_over()
  }
}

.onUnload <- function(libpath) {
  take_over(FALSE)
  library.dynam.unload("xgboostgpuexact", libpath)  # of the shim; the module stays in the process
}
