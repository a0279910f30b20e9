/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief A block searches a categorical column of one node: its categories in the order of their
 *        weights, and the gain of cuts of this order, from either end.
 *
 *     code      0     1    2     3    4     5      of the whole table
 *     sum       s0    -    s2    s3   -     s5     -: no row of the node has it, or its sum is zero
 *     weight    .2    0   -.1    .2   0     0
 *     order     2  |  1  4  5  |  0  3             those without a sum are among the zeros, by code
 *     rank      0           1     2  3             of those with a sum, which alone are sorted
 *     position  0           3     4  5
 *
 * Forward, the first ones go right and missing values left; backward, the last ones go left and missing
 * values right. A cut behind a category without a sum has the sums of the one before, which is met first
 * and so is the better one: only cuts beside categories with a sum are tried.
 */
#pragma once

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

#include "device/histogram/category_sets.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/fixed_sum.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
/** @tparam kMost The most categories with a sum. */
template <int kThreads, int kMost>
class CategorySearchAgent {
  static constexpr int kItems = kMost / kThreads;
  static_assert(kMost % kThreads == 0 && kMost <= 1 << 16, "codes and numbers have 16 bits");
  static_assert(kMost / 32 <= kThreads, "a thread counts a word");
  template <int kOfThread>
  using Sort = cub::BlockRadixSort<std::uint32_t, kThreads, kOfThread, std::uint32_t>;
  using CountScan = cub::BlockScan<std::uint32_t, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  using SumScan = cub::BlockScan<FixedSum, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct Storage {
    union {
      std::uint32_t keys[kMost];   // RadixKey() of weights, by number
      std::uint16_t order[kMost];  // then numbers by rank
      typename Sort<kItems>::TempStorage sort;
    };
    std::uint16_t codes[kMost];      // by number: of categories with a sum, ascending
    std::uint32_t words[kMost / 32];  // which categories have a sum, then which ones go right
    std::uint32_t before[kMost / 32];  // categories with a sum in the words before
    union {
      typename CountScan::TempStorage count;
      typename SumScan::TempStorage sum;
    } scan;
    unsigned long long best;     // key of the best candidate
    std::uint32_t cut;           // its rank, or its code where it is one of all
    std::uint32_t n_present;     // categories with a sum
    std::uint32_t n_negative;    // of these, of a weight below zero
    std::uint32_t n_zero;        // likewise of zero
    std::uint32_t first_absent;  // the lowest code without a sum
    bool is_best;                // of the node so far
  };

  /** @param storage Shared memory. */
  __device__ CategorySearchAgent(Storage* storage, LevelRef const& level,
                                 CategoricalFeature const& column, LevelNode level_node)
      : temp_{*storage},
        level_{level},
        column_{column},
        rule_{level.rules[column.feature]},
        level_node_{level_node},
        node_{level.nodes[level_node]},
        first_{2 * std::uint64_t{level.columns.value_offsets[column.feature]}} {}

  /**
   * @brief Gather the categories that have a sum. All threads of the block; ends with a barrier.
   * @param load load(code): the node's sum of a category. Called once for each, at most kMost.
   */
  template <typename LoadFn>
  __device__ void Gather(LoadFn&& load) {
    std::uint32_t const n = column_.n_categories;
    this->Clear();
    std::uint32_t n_negative{0}, n_zero{0};  // of the warp
    for (std::uint32_t base = 0; base < n; base += kThreads) {
      std::uint32_t const code = base + threadIdx.x;
      FixedSum const sum = code < n ? load(code) : FixedSum{0, 0};
      std::uint32_t const key = this->WeightKey(sum);
      temp_.keys[code] = key;
      std::uint32_t const bits = __ballot_sync(kAllLanes, key != kNone);
      n_negative += __popc(__ballot_sync(kAllLanes, key < kZero));
      n_zero += __popc(__ballot_sync(kAllLanes, key == kZero));
      if (threadIdx.x % 32 == 0) {
        temp_.words[code / 32] = bits;
      }
    }
    this->CountSigns(n_negative, n_zero);
    __syncthreads();
    this->Compact();
  }

  /**
   * @brief Offer the best split of the categories with a sum. All threads of the block; ends with a
   *        barrier.
   * @param load load(number, code): the node's sum of one of them.
   * @return Whether it is the best of the node so far, if there is one: WriteSet() may follow.
   */
  template <typename LoadFn>
  __device__ bool Offer(std::uint32_t max_threshold, LoadFn&& load) {
    if (rule_.one_hot) {
      this->OneAgainstOthers(load);
    } else {
      this->SortByWeight();
      this->TwoSets(min(max_threshold, column_.n_categories), load);
    }
    if (threadIdx.x == 0) {
      level_.Offer(level_node_, temp_.best);
      // Others may offer a better one now or later: then what is written is of no meaning.
      temp_.is_best = temp_.best != 0 && temp_.best >= __ldcg(level_.best + level_node_);
    }
    __syncthreads();
    return temp_.is_best;
  }

  /**
   * @brief Write which categories go right. All threads of the block, after Offer(); ends with a
   *        barrier.
   * @param out shape: (CategoricalFeature::NumWords())
   */
  __device__ void WriteSet(std::uint32_t* out) const {
    std::uint32_t const n_words = column_.NumWords();
    std::uint32_t const n_present = temp_.n_present;
    std::uint32_t const cut = temp_.cut;
    bool const missing_left = level_.SendsMissingLeft(column_.feature, temp_.best);
    // Of categories without a sum, those below this code.
    std::uint32_t right_below{0};
    if (!rule_.one_hot) {
      right_below = cut < temp_.n_negative                   ? 0
                    : cut < temp_.n_negative + temp_.n_zero ? temp_.codes[temp_.order[cut]]
                                                             : column_.n_categories;
    }
    for (std::uint32_t w = threadIdx.x; w < n_words; w += kThreads) {
      std::uint32_t const n = right_below > 32 * w ? right_below - 32 * w : 0;
      temp_.words[w] = n >= 32 ? ~0u : (1u << n) - 1;
    }
    __syncthreads();
    if (rule_.one_hot) {
      if (threadIdx.x == 0) {
        temp_.words[cut / 32] = 1u << cut % 32;
      }
    } else {
      std::uint32_t const n_right = missing_left ? cut + 1 : cut;
      for (std::uint32_t rank = threadIdx.x; rank < n_present; rank += kThreads) {
        std::uint32_t const code = temp_.codes[temp_.order[rank]];
        if (rank < n_right) {
          atomicOr(temp_.words + code / 32, 1u << code % 32);
        } else {
          atomicAnd(temp_.words + code / 32, ~(1u << code % 32));
        }
      }
    }
    __syncthreads();
    for (std::uint32_t w = threadIdx.x; w < n_words; w += kThreads) {
      out[w] = temp_.words[w];
    }
    __syncthreads();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr std::uint32_t kZero = 0x80000000u;  // RadixKey(0.0f)

  struct Add {
    __device__ FixedSum operator()(FixedSum const& a, FixedSum const& b) const { return a + b; }
  };

  /** @brief Make what categories are sorted by; kNone without a sum. */
  [[nodiscard]] __device__ std::uint32_t WeightKey(FixedSum const& sum) const {
    if (sum == FixedSum{0, 0}) {
      return kNone;
    }
    return RadixKey(CalcWeight(level_.gain, level_.quantiser.Real(sum), WeightBounds::None()));
  }
  __device__ void Clear() {
    if (threadIdx.x == 0) {
      temp_.best = 0;
      temp_.n_negative = temp_.n_zero = 0;
      temp_.first_absent = kNone;
    }
    __syncthreads();
  }
  __device__ void CountSigns(std::uint32_t n_negative, std::uint32_t n_zero) {
    if (threadIdx.x % 32 == 0 && n_negative != 0) {
      atomicAdd(&temp_.n_negative, n_negative);
    }
    if (threadIdx.x % 32 == 0 && n_zero != 0) {
      atomicAdd(&temp_.n_zero, n_zero);
    }
  }
  /** @brief Move keys by code to keys by number. */
  __device__ void Compact() {
    std::uint32_t const n = column_.n_categories;
    std::uint32_t const w = threadIdx.x;
    std::uint32_t const word = w < column_.NumWords() ? temp_.words[w] : 0;
    std::uint32_t before, n_present;
    CountScan{temp_.scan.count}.ExclusiveSum(__popc(word), before, n_present);
    if (w < column_.NumWords()) {
      temp_.before[w] = before;
      std::uint32_t const absent = ~word & (n - 32 * w < 32 ? (1u << (n - 32 * w)) - 1 : ~0u);
      if (absent != 0) {
        atomicMin(&temp_.first_absent, 32 * w + __ffs(static_cast<int>(absent)) - 1);
      }
    }
    if (threadIdx.x == 0) {
      temp_.n_present = n_present;
    }
    std::uint32_t keys[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      keys[k] = temp_.keys[k * kThreads + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      std::uint32_t const code = k * kThreads + threadIdx.x;
      if (code < n && keys[k] != kNone) {
        std::uint32_t const number =
            temp_.before[code / 32] + __popc(temp_.words[code / 32] & LaneMaskLt());
        temp_.keys[number] = keys[k];
        temp_.codes[number] = static_cast<std::uint16_t>(code);
      }
    }
    __syncthreads();
  }

  /** @brief Sort numbers by weight, alike ones by code. */
  __device__ void SortByWeight() {
    std::uint32_t const n = temp_.n_present;
    if (n <= kThreads) {
      this->SortItems<1>();
    } else if (n <= 2 * kThreads) {
      this->SortItems<kItems < 2 ? kItems : 2>();
    } else if (n <= 4 * kThreads) {
      this->SortItems<kItems < 4 ? kItems : 4>();
    } else {
      this->SortItems<kItems>();
    }
  }
  template <int kOfThread>
  __device__ void SortItems() {
    static_assert(sizeof(typename Sort<kOfThread>::TempStorage) <=
                  sizeof(typename Sort<kItems>::TempStorage));
    std::uint32_t keys[kOfThread];
    std::uint32_t numbers[kOfThread];
#pragma unroll
    for (int k = 0; k < kOfThread; ++k) {
      numbers[k] = threadIdx.x * kOfThread + k;
      keys[k] = numbers[k] < temp_.n_present ? temp_.keys[numbers[k]] : kNone;
    }
    __syncthreads();
    Sort<kOfThread>{*reinterpret_cast<typename Sort<kOfThread>::TempStorage*>(&temp_.sort)}.Sort(
        keys, numbers);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kOfThread; ++k) {
      temp_.order[threadIdx.x * kOfThread + k] = static_cast<std::uint16_t>(numbers[k]);
    }
    __syncthreads();
  }

  /** @brief Find the position among all categories. */
  [[nodiscard]] __device__ std::uint32_t PositionOf(std::uint32_t rank, std::uint32_t number) const {
    std::uint32_t const n_absent = column_.n_categories - temp_.n_present;
    return rank + (rank < temp_.n_negative                  ? 0
                   : rank < temp_.n_negative + temp_.n_zero ? temp_.codes[number] - number
                                                            : n_absent);
  }

  template <typename LoadFn>
  __device__ void TwoSets(std::uint32_t n_tried, LoadFn&& load) {
    std::uint32_t const n_steps = min(temp_.n_present, n_tried - 1);
    std::uint64_t best{0};
    std::uint32_t cut{0};
#pragma unroll 1
    for (bool const forward : {true, false}) {
      FixedSum before{0, 0};
#pragma unroll 1
      for (std::uint32_t base = 0; base < n_steps; base += kThreads) {
        if (!(forward ? rule_.missing_left : rule_.missing_right)) {
          break;
        }
        std::uint32_t const step = base + threadIdx.x;
        bool const has = step < n_steps;
        std::uint32_t const rank = forward ? step : temp_.n_present - 1 - step;
        std::uint32_t const number = has ? temp_.order[rank] : 0;
        FixedSum seen = has ? load(number, temp_.codes[number]) : FixedSum{0, 0};
        FixedSum of_block;
        SumScan{temp_.scan.sum}.InclusiveScan(seen, seen, Add{}, of_block);
        __syncthreads();
        seen = before + seen;
        before = before + of_block;
        if (!has) {
          continue;
        }
        std::uint32_t const position = this->PositionOf(rank, number);
        std::uint32_t const n_before = forward ? position : column_.n_categories - 1 - position;
        if (n_before + 2 <= n_tried) {
          FixedSum const rest = node_.sum - seen;
          std::uint64_t const key =
              this->Key(forward ? rest : seen, forward ? seen : rest,
                        forward ? n_before : column_.n_categories + n_before);
          cut = key > best ? rank : cut;
          best = max(best, key);
        }
      }
    }
    this->KeepBest(best, cut);
  }

  template <typename LoadFn>
  __device__ void OneAgainstOthers(LoadFn&& load) {
    FixedSum own{0, 0};
    for (std::uint32_t i = threadIdx.x; i < temp_.n_present; i += kThreads) {
      own = own + load(i, temp_.codes[i]);
    }
    FixedSum up_to, present;
    SumScan{temp_.scan.sum}.InclusiveScan(own, up_to, Add{}, present);
    FixedSum const missing = node_.sum - present;
    std::uint64_t best{0};
    std::uint32_t cut{0};
    auto const offer = [&](FixedSum const& sum, std::uint32_t code) {
      std::uint64_t key{0};
      if (rule_.missing_left) {
        key = this->Key(node_.sum - sum, sum, 2 * code);
      }
      if (rule_.missing_right) {
        FixedSum const right = sum + missing;
        key = max(key, this->Key(node_.sum - right, right, 2 * code + 1));
      }
      cut = key > best ? code : cut;
      best = max(best, key);
    };
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i <= temp_.n_present; i += kThreads) {
      if (i < temp_.n_present) {
        offer(load(i, temp_.codes[i]), temp_.codes[i]);
      } else if (temp_.first_absent != kNone) {  // missing values against all present ones
        offer({0, 0}, temp_.first_absent);
      }
    }
    this->KeepBest(best, cut);
  }

  [[nodiscard]] __device__ std::uint64_t Key(FixedSum const& left, FixedSum const& right,
                                             std::uint32_t place) const {
    return CandidateKey::Make(level_.LossChange(node_, rule_.monotone, left, right),
                              first_ + place);
  }
  /** @brief Keep the best of all threads. */
  __device__ void KeepBest(std::uint64_t best, std::uint32_t cut) {
    std::uint64_t const of_warp = WarpMax(best);
    if (threadIdx.x % 32 == 0 && of_warp != 0) {
      atomicMax(&temp_.best, static_cast<unsigned long long>(of_warp));
    }
    __syncthreads();
    if (best != 0 && best == temp_.best) {  // keys of a column differ
      temp_.cut = cut;
    }
    __syncthreads();
  }

  Storage& temp_;
  LevelRef const& level_;
  CategoricalFeature const& column_;
  FeatureRule rule_;
  LevelNode level_node_;
  NodeState const& node_;
  std::uint64_t first_;  // rank of the column's first candidate
};
}  // namespace gpu_exact
