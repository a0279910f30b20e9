/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/row_sampler.h"

#include <cstddef>
#include <future>
#include <numeric>

#include "train/bernoulli_mt19937.h"
#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
using Gradients = xgboost::HostDeviceVector<xgboost::GradientPair>;

bool IsDeleted(xgboost::GradientPair const& gpair) { return gpair.GetHess() < 0.0f; }

std::size_t CountDeleted(std::vector<xgboost::GradientPair> const& gradients) {
  std::size_t n_deleted{0};
  for (auto const& gpair : gradients) {  // no early exit, no std::count_if: this one is vectorised
    n_deleted += IsDeleted(gpair) ? 1 : 0;
  }
  return n_deleted;
}

/** @brief Look for deleted rows while rows are drawn as if there were none: it reads 8 B a row. */
std::future<std::size_t> CountDeleted(xgboost::Context const* ctx, TreeBuilder* builder,
                                      Gradients const& gradients) {
  constexpr std::size_t kWorthAThread = 1 << 17;
  if (ctx->IsCUDA()) {
    gradients.SetDevice(ctx->Device());
    auto const* gpair = reinterpret_cast<GradientPair const*>(gradients.ConstDevicePointer());
    bool const any = builder->AnyDeletedRow(gpair);
    return std::async(std::launch::deferred, [&gradients, any] {
      return any ? CountDeleted(gradients.ConstHostVector()) : 0;
    });
  }
  auto const& values = gradients.ConstHostVector();
  auto when = std::launch::deferred;
  if (values.size() >= kWorthAThread) {
    when |= std::launch::async;  // or deferred, if there is no thread
  }
  return std::async(when, [&values] { return CountDeleted(values); });
}
constexpr std::uint64_t kWordsADraw = 2;
}  // namespace

std::uint8_t const* RowSampler::Sample(xgboost::Context const* ctx, TreeBuilder* builder,
                                       Gradients const& gradients, float subsample,
                                       Communicator* comm, RandomEngine* rng) {
  auto const n_rows = gradients.Size();
  std::uint64_t n_after{0};
  std::shared_future<std::size_t> count;
  if (comm) {
    auto const n_drawn = TellAll(comm, [&]() -> std::uint64_t {
      included_.resize(n_rows);
      count = CountDeleted(ctx, builder, gradients);
      return n_rows - count.get();
    });
    auto const own = n_drawn.cbegin() + comm->Rank();
    rng->discard(kWordsADraw * std::accumulate(n_drawn.cbegin(), own, std::uint64_t{0}));
    n_after = std::accumulate(own + 1, n_drawn.cend(), std::uint64_t{0});
  } else {
    included_.resize(n_rows);
    count = CountDeleted(ctx, builder, gradients);
  }
  auto const start = *rng;
  DrawBernoulli(subsample, n_rows, rng, included_.data());
  if (auto n_deleted = count.get(); n_deleted != 0) {
    auto const& values = gradients.ConstHostVector();
    auto n_drawn = n_rows - n_deleted;
    *rng = start;
    DrawBernoulli(subsample, n_drawn, rng, included_.data());
    for (auto row = n_rows; row-- != 0;) {  // backwards, as draws move to higher rows only
      included_[row] = IsDeleted(values[row]) ? 0 : included_[--n_drawn];
    }
  }
  rng->discard(kWordsADraw * n_after);
  return included_.data();
}
}  // namespace gpu_exact
