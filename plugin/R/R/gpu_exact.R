# Copyright 2026, the gpu_exact contributors

take_over <- function(enabled = TRUE) {
  invisible(.Call(C_take_over, isTRUE(enabled)))
}

default_device <- function(device = "cuda") {
  invisible(.Call(C_default_device, as.character(device)))
}

device_status <- function(ordinal = -1L) {
  .Call(C_device_status, as.integer(ordinal))
}

.onLoad <- function(libname, pkgname) {
  # The module looks for XGBoost in the process: NAMESPACE imports xgboost, so it is loaded.
  packaged <- file.path(libname, pkgname, "libxgboost_gpu_exact.so")
  .Call(C_load, path.expand(Sys.getenv("GPU_EXACT_MODULE", packaged)))
  if (Sys.getenv("XGBOOST_GPU_EXACT_TAKEOVER", "1") != "0") {
    take_over()
  }
  device <- Sys.getenv("XGBOOST_GPU_EXACT_DEVICE")
  if (nzchar(device)) {
    default_device(device)
  }
}

.onUnload <- function(libpath) {
  take_over(FALSE)
  library.dynam.unload("xgboostgpuexact", libpath)  # of the shim; the module stays in the process
}
