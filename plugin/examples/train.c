/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Train on exact greedy splits through XGBoost's C API, with the trees grown on the GPU.
 *
 *     train [cpu | cuda | cuda:<ordinal>] [model.ubj]
 *
 * The device is where gradients and predictions are computed; the model is saved where a file is given.
 *
 * One call is new: GpuExactTakeOver(1), before the first booster is made. C++ is the same.
 */
#include <gpu_exact/c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

/* Both C APIs return 0, or another number and a message. */
#define CHECK(call, message) check((call) == 0, #call, message())
#define XGB(call) CHECK(call, XGBGetLastError)
#define GPU_EXACT(call) CHECK(call, GpuExactGetLastError)

static void check(int passed, char const* call, char const* message) {
  if (!passed) {
    fprintf(stderr, "%s: %s\n", call, message);
    exit(EXIT_FAILURE);
  }
}

enum { kRows = 1000, kColumns = 3, kRounds = 20 };

int main(int argc, char** argv) {
  /* tree_method=exact is the plugin's from here on; without a GPU it hands on to XGBoost's own. */
  GPU_EXACT(GpuExactTakeOver(1));
  int usable = 0;
  char const* text = NULL;
  GPU_EXACT(GpuExactDeviceStatus(-1, &usable, &text));
  printf("gpu_exact %s, trees on the %s: %s\n", GpuExactVersion(), usable ? "GPU" : "CPU", text);

  /* y = x0 * x1 + x2, row by row. */
  static float x[kRows][kColumns];
  static float y[kRows];
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      x[row][column] = (float)rand() / (float)RAND_MAX;
    }
    y[row] = x[row][0] * x[row][1] + x[row][2];
  }
  DMatrixHandle table;
  XGB(XGDMatrixCreateFromMat(&x[0][0], kRows, kColumns, -1.0F, &table)); /* -1: missing */
  XGB(XGDMatrixSetFloatInfo(table, "label", y, kRows));

  BoosterHandle booster;
  XGB(XGBoosterCreate(&table, 1, &booster));
  XGB(XGBoosterSetParam(booster, "tree_method", "exact"));
  XGB(XGBoosterSetParam(booster, "device", argc > 1 ? argv[1] : "cpu"));
  for (int round = 0; round < kRounds; ++round) {
    XGB(XGBoosterUpdateOneIter(booster, round, table));
  }
  char const* name = "train";
  char const* evaluation = NULL;
  XGB(XGBoosterEvalOneIter(booster, kRounds - 1, &table, &name, 1, &evaluation));
  printf("%s\n", evaluation); /* "[19]", then the root mean squared error */

  bst_ulong length = 0;
  char const* config = NULL;
  XGB(XGBoosterSaveJsonConfig(booster, &length, &config));
  char const* device = strstr(config, "\"device\":");
  if (device != NULL) {
    printf("%.*s\n", (int)strcspn(device, ",}"), device); /* of gradients: "device":"cuda:0" */
  }

  if (argc > 2) {
    XGB(XGBoosterSaveModel(booster, argv[2]));
  }
  XGB(XGBoosterFree(booster));
  XGB(XGDMatrixFree(table));
  return EXIT_SUCCESS;
}
