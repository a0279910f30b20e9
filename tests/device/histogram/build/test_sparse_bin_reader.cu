/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The elements of a warp's rows, one after another, whatever the lengths of the rows.
 */
#include <vector>

#include "device/histogram/build/sparse_bin_reader.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
struct Element {
  int source;  // the lane whose row it is of
  std::uint32_t bin;
};

// one warp
__global__ void ReadKernel(GroupBin const* elements, RowElements const* rows, Element* out,
                           std::uint32_t* out_n) {
  WaitForPreviousKernel();
  SparseBinReader reader{elements, rows[threadIdx.x]};
  out_n[threadIdx.x] = reader.Size();
  SparseBinReader::Windows windows;
  for (std::uint32_t first = 0; first < reader.Size(); first += 32 * SparseBinReader::kWindows) {
    reader.LoadNext(&windows);
    for (int u = 0; u < SparseBinReader::kWindows; ++u) {
      std::uint32_t const at = first + 32 * u + threadIdx.x;
      if (at < reader.Size()) {
        out[at] = {windows.source[u], windows.bin[u]};
      }
    }
  }
}

class SparseBinReaderTest : public DeviceTest {
 protected:
  /** @param lengths Of the first lanes' rows; further lanes have none. */
  static void Check(std::vector<std::uint32_t> const& lengths, Random* random) {
    std::vector<RowElements> rows(32, {0, 0});
    std::vector<GroupBin> elements;
    std::vector<Element> want;
    auto const skip = [&] {  // rows lie apart
      elements.resize(elements.size() + random->Int(0, 40), GroupBin{0xffff});
    };
    for (std::size_t lane = 0; lane < lengths.size(); ++lane) {
      skip();
      rows[lane].begin = static_cast<std::uint32_t>(elements.size());
      for (std::uint32_t i = 0; i < lengths[lane]; ++i) {
        elements.push_back(static_cast<GroupBin>(random->Int(0, 60000)));
        want.push_back({static_cast<int>(lane), elements.back()});
      }
      rows[lane].end = static_cast<std::uint32_t>(elements.size());
    }
    elements.resize(elements.size() + kElementsBeyond, 0);
    auto const d_elements = ToDevice(elements);
    auto const d_rows = ToDevice(rows);
    DeviceBuffer<Element> out{"elements"};
    DeviceBuffer<std::uint32_t> n{"their number"};
    Launch("Read", ReadKernel, 1, 32, d_elements.Data(), d_rows.Data(),
           out.Reserve(want.size() + 1), n.Reserve(32));
    ASSERT_EQ(ToHost(n.Data(), 32),
              std::vector<std::uint32_t>(32, static_cast<std::uint32_t>(want.size())));
    auto const got = ToHost(out.Data(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].source, want[i].source) << "element " << i << " of " << want.size();
      ASSERT_EQ(got[i].bin, want[i].bin) << "element " << i << " of " << want.size();
    }
  }
};

TEST_F(SparseBinReaderTest, OneRow) {
  Random random{1};
  for (std::uint32_t length : {1, 31, 32, 33, 64, 65, 500}) {
    Check({length}, &random);
    ASSERT_FALSE(HasFailure()) << length;
  }
  Check({}, &random);
}

/** @brief Rows that begin at the edges of windows, several in one, none for many windows. */
TEST_F(SparseBinReaderTest, ManyRows) {
  Random random{2};
  Check(std::vector<std::uint32_t>(32, 1), &random);
  Check({31, 1, 32, 1, 31, 33, 200, 1, 1, 1}, &random);
  for (int seed = 0; seed < NumSeeds(50); ++seed) {
    std::vector<std::uint32_t> lengths(random.Int(1, 32));
    for (auto& length : lengths) {
      length = static_cast<std::uint32_t>(random.Pick({1, random.Int(1, 5), random.Int(1, 100)}));
    }
    Check(lengths, &random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}
}  // namespace
}  // namespace gpu_exact
