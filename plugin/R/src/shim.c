/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief R's way to the module libxgboost_gpu_exact.so, which knows nothing of R.
 */
#include <R.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <Rinternals.h>
#include <dlfcn.h>

/* The functions of include/gpu_exact/c_api.h. */
static struct {
  char const* (*last_error)(void);
  int (*register_updater)(void);
  int (*take_over)(int);
  int (*set_default_device)(char const*);
  int (*device_status)(int, int*, char const**);
  char const* (*source_hash)(void);
} module;

static void Check(int status) {
  if (status != 0) {
    Rf_errorcall(R_NilValue, "%s", module.last_error());
  }
}

static void* NotNull(void* p) {
  if (p == NULL) {
    Rf_errorcall(R_NilValue, "%s. Install xgboostgpuexact again; unset GPU_EXACT_MODULE.",
                 dlerror());
  }
  return p;
}

static SEXP C_load(SEXP path) {
  void* handle = NotNull(dlopen(CHAR(Rf_asChar(path)), RTLD_NOW | RTLD_LOCAL));
  *(void**)&module.last_error = NotNull(dlsym(handle, "GpuExactGetLastError"));
  *(void**)&module.register_updater = NotNull(dlsym(handle, "GpuExactRegister"));
  *(void**)&module.take_over = NotNull(dlsym(handle, "GpuExactTakeOver"));
  *(void**)&module.set_default_device = NotNull(dlsym(handle, "GpuExactSetDefaultDevice"));
  *(void**)&module.device_status = NotNull(dlsym(handle, "GpuExactDeviceStatus"));
  *(void**)&module.source_hash = NotNull(dlsym(handle, "GpuExactSourceHash"));
  return R_NilValue;
}

static SEXP C_register(void) {
  Check(module.register_updater());
  return R_NilValue;
}

static SEXP C_take_over(SEXP enabled) {
  Check(module.take_over(Rf_asLogical(enabled)));
  return R_NilValue;
}

static SEXP C_default_device(SEXP device) {
  Check(module.set_default_device(CHAR(Rf_asChar(device))));
  return R_NilValue;
}

static SEXP C_device_status(SEXP ordinal) {
  int usable = 0;
  char const* text = "";
  Check(module.device_status(Rf_asInteger(ordinal), &usable, &text));
  char const* names[] = {"usable", "text", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_ScalarLogical(usable));
  SET_VECTOR_ELT(out, 1, Rf_mkString(text));
  UNPROTECT(1);
  return out;
}

static SEXP C_source_hash(void) {
  char const* hash = module.source_hash();
  return Rf_mkString(hash == NULL ? "" : hash);
}

void attribute_visible R_init_xgboostgpuexact(DllInfo* dll) {
  static R_CallMethodDef const kEntries[] = {{"C_load", (DL_FUNC)&C_load, 1},
                                             {"C_register", (DL_FUNC)&C_register, 0},
                                             {"C_take_over", (DL_FUNC)&C_take_over, 1},
                                             {"C_default_device", (DL_FUNC)&C_default_device, 1},
                                             {"C_device_status", (DL_FUNC)&C_device_status, 1},
                                             {"C_source_hash", (DL_FUNC)&C_source_hash, 0},
                                             {NULL, NULL, 0}};
  R_registerRoutines(dll, NULL, kEntries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
}
