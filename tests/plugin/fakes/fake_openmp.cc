/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief An OpenMP whose threads are the calling one, again and again: FAKE_TIMES times as often as asked.
 */
extern "C" __attribute__((visibility("default"))) void GOMP_parallel(  // NOLINT: its name
    void (*fn)(void*), void* data, unsigned n_threads, unsigned flags) {
  for (unsigned i = 0; flags == 0 && i < FAKE_TIMES * n_threads; ++i) {
    fn(data);
  }
}
