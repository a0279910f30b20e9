/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Marks pure functions that kernels call too, so that g++ alone compiles and tests them.
 */
#pragma once

#if defined(__CUDACC__)
#define GPU_EXACT_HD __host__ __device__
#else
#define GPU_EXACT_HD
#endif
