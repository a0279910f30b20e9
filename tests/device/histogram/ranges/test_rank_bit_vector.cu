/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief How many bits are set before each against a count on the host.
 */
#include "device/histogram/ranges/rank_bit_vector.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
// one thread a bit, in whole warps and one bit more
__global__ void WriteBitsKernel(std::uint8_t const* is_set, std::uint64_t n,
                                RankBitVectorRef bits) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  bool const set = i < n && is_set[i] != 0;
  std::uint32_t const word = __ballot_sync(kAllLanes, set);
  if (i % 32 == 0 && i / 32 <= n / 32) {
    bits.words[i / 32] = {word, 0};
  }
}

// one thread a bit, and one for their end
__global__ void ReadRanksKernel(RankBitVectorRef bits, std::uint64_t n, std::uint32_t* ranks,
                                std::uint8_t* is_set) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i <= n) {
    ranks[i] = bits.Rank(i);
    is_set[i] = bits.words[i / 32].Has(static_cast<std::uint32_t>(i % 32)) ? 1 : 0;
  }
}

class RankBitVectorTest : public DeviceTest {
 protected:
  /** @brief Bits that are used again and again, never smaller. */
  void Check(std::vector<std::uint8_t> const& is_set) {
    std::uint64_t const n = is_set.size();
    bits_.Reserve(n);
    auto const d_is_set = ToDevice(is_set);
    LaunchN("WriteBits", WriteBitsKernel, n + 32, d_is_set.Data(), n, bits_.Ref());
    bits_.Count(n);
    DeviceBuffer<std::uint32_t> d_ranks{"ranks"};
    DeviceBuffer<std::uint8_t> d_read{"bits"};
    LaunchN("ReadRanks", ReadRanksKernel, n + 1, bits_.Ref(), n, d_ranks.Reserve(n + 1),
            d_read.Reserve(n + 1));
    auto const ranks = ToHost(d_ranks.Data(), n + 1);
    auto const read = ToHost(d_read.Data(), n + 1);
    std::uint32_t want{0};
    for (std::uint64_t i = 0; i <= n; ++i) {
      ASSERT_EQ(ranks[i], want) << "bit " << i << " of " << n;
      if (i < n) {
        ASSERT_EQ(read[i], is_set[i]) << "bit " << i << " of " << n;
        want += is_set[i];
      }
    }
  }

  RankBitVector bits_{"bits"};
};

TEST_F(RankBitVectorTest, RanksAndBits) {
  Random random{1};
  // A block counts 131,072 bits at a time, a cluster eight times as many, and twice that in two turns.
  for (std::size_t n : {0u, 1u, 31u, 32u, 33u, 63u, 64u, 1000u, 100000u, 131071u, 131072u, 300000u,
                        1048576u, 2097151u, 2097152u, 33u, 0u}) {
    for (double share : {0.0, 0.02, 0.5, 1.0}) {
      if (LeftOut(n > 1000, share == 0.02)) {
        continue;
      }
      std::vector<std::uint8_t> is_set(n);
      for (auto& bit : is_set) {
        bit = random.Chance(share) ? 1 : 0;
      }
      this->Check(is_set);
      ASSERT_FALSE(this->HasFailure()) << "share " << share;
    }
  }
}

TEST_F(RankBitVectorTest, ClearedBits) {
  for (std::uint64_t n : {0u, 1u, 32u, 1000u}) {
    this->Check(std::vector<std::uint8_t>(n, 1));
    bits_.ClearAsync(n);
    bits_.Count(n);
    for (RankWord const& word : ToHost(bits_.Ref().words, n / 32 + 1)) {
      EXPECT_EQ(word.bits, 0u);
      EXPECT_EQ(word.n_before, 0u);
    }
  }
}
}  // namespace
}  // namespace gpu_exact
