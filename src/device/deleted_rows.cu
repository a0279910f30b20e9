/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Whether gradients in device memory delete any row.
 */
#include "gpu_exact/tree_builder.h"
#include "src/device/runtime.cuh"

namespace gpu_exact {
namespace {
/** @brief result: *out_any. grid: rows; block: any size. */
__global__ void AnyDeletedRowKernel(GradientPair const* gradients, RowIdx n_rows,
                                    std::uint32_t* out_any) {
  auto const ridx = GlobalIdx();
  bool const deleted = ridx < n_rows && gradients[ridx].hess < 0.0f;
  if (__syncthreads_or(deleted) && threadIdx.x == 0) {
    *out_any = 1;  // whoever writes, writes the same
  }
}
}  // namespace

bool AnyDeletedRow(int ordinal, GradientPair const* gradients, RowIdx n_rows) {
  DeviceGuard guard{ordinal};
  DeviceBuffer<std::uint32_t> any{"whether rows are deleted"};
  ZeroAsync(any.Reserve(1), 1);
  LaunchN("AnyDeletedRow", AnyDeletedRowKernel, n_rows, gradients, n_rows, any.Data());
  std::uint32_t result{0};
  CopyAsync(&result, any.Data(), 1);
  Synchronize();
  return result != 0;
}
}  // namespace gpu_exact
