/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "gpu_exact/source_hash.h"

namespace gpu_exact {
char const* SourceHash() {
  return
#include "source_hash.inc"  // written by every build: a string
      ;
}
}  // namespace gpu_exact
