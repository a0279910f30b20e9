/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches a categorical column of one node by a block: its categories in the order of their
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
#include <cuda/std/functional>

#include "device/histogram/bins/categories.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/fixed_sum.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
/** @brief Counts the categories of a node that have a sum, which are numbered in the order of their codes. */
struct CategoryCounts {
  std::uint32_t n_present;
  std::uint32_t n_negative;    // of these, of a weight below zero
  std::uint32_t n_zero;        // and of zero
  std::uint32_t first_absent;  // the lowest code without a sum; kNone: there is none
};

/** @brief Makes what categories are sorted by. */
struct CategoryWeight {
  static constexpr std::uint32_t kNone = 0xffffffffu;  // of no weight
  static constexpr std::uint32_t kZero = 0x80000000u;  // RadixKey(0.0f)

  [[nodiscard]] __device__ static std::uint32_t Key(LevelRef const& lv, FixedSum const& sum) {
    return RadixKey(CalcWeight(lv.gain, lv.quantiser.Real(sum), WeightBounds::None()));
  }
};

/**
 * @brief Tries the cuts of a node's categories that are sorted.
 * @tparam ListT Tells Number(rank) by weight, of two sets alone, and Code(number).
 */
template <int kThreads, typename ListT>
class CategoryCutAgent {
  using SumScan = cub::BlockScan<FixedSum, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct Storage {
    typename SumScan::TempStorage scan;
    unsigned long long best;  // of the candidates, as a key by their place in the order of `hist`
    std::uint32_t cut;        // its rank, or its code where it is one of all
    bool missing_left;        // whether it sends them left
    bool is_best;             // of the node so far
  };

  /** @param storage Shared memory. */
  __device__ CategoryCutAgent(Storage* storage, LevelRef const& lv,
                              CategoricalFeature const& column, LevelNode level_node,
                              ListT const& list, CategoryCounts const& counts)
      : temp_{*storage},
        lv_{lv},
        column_{column},
        rule_{lv.rules[column.feature]},
        level_node_{level_node},
        node_{lv.nodes[level_node]},
        list_{list},
        counts_{counts} {}

  /**
   * @brief Offer the best split. All threads of the block; ends with a barrier.
   * @param load load(number, code): the node's sum of a category.
   * @return Whether it is the best of the node so far, if there is one: WriteBits() or WriteSet() may follow.
   */
  template <typename LoadFn>
  __device__ bool Offer(LoadFn&& load) {
    if (threadIdx.x == 0) {
      temp_.best = 0;
    }
    __syncthreads();
    if (rule_.one_hot) {
      this->OneAgainstOthers(load);
    } else {
      this->TwoSets(load);
    }
    if (threadIdx.x == 0) {
      std::uint64_t const key =
          temp_.best == 0
              ? 0
              : CandidateKey::Make(CandidateKey::LossChange(temp_.best),
                                   lv_.CategoryRank(column_.feature, temp_.missing_left));
      lv_.Offer(level_node_, key);
      // Others may offer a better one now or later: then what is written is of no meaning.
      temp_.is_best = key != 0 && key >= __ldcg(lv_.best + level_node_);
    }
    __syncthreads();
    return temp_.is_best;
  }

  /**
   * @brief Write which categories go right. All threads of the block, after Offer().
   * @param out A bit for each; shape: (CategoricalFeature::NumWords())
   */
  __device__ void WriteBits(std::uint32_t* out) const {
    std::uint32_t const cut = temp_.cut;
    std::uint32_t const right_below = this->RightBelow();
    for (std::uint32_t w = threadIdx.x; w < column_.NumWords(); w += kThreads) {
      std::uint32_t const n = right_below > 32 * w ? right_below - 32 * w : 0;
      std::uint32_t const one = rule_.one_hot && cut / 32 == w ? 1u << cut % 32 : 0;
      out[w] = n >= 32 ? ~0u : ((1u << n) - 1) | one;
    }
    __syncthreads();
    if (rule_.one_hot) {
      return;
    }
    std::uint32_t const n_right = temp_.missing_left ? cut + 1 : cut;
    for (std::uint32_t rank = threadIdx.x; rank < counts_.n_present; rank += kThreads) {
      std::uint32_t const code = list_.Code(list_.Number(rank));
      bool const is_set = code < right_below;
      if (rank < n_right && !is_set) {
        atomicOr(out + code / 32, 1u << code % 32);
      } else if (rank >= n_right && is_set) {
        atomicAnd(out + code / 32, ~(1u << code % 32));
      }
    }
  }
  /**
   * @brief Write a CategorySet: bits or a list. All threads of the block, after Offer().
   * @param codes Shared memory for a list, shape: (CategorySet::kMaxListed)
   */
  __device__ void WriteSet(std::uint32_t* codes, std::uint32_t* out) const {
    if (!CategorySet::IsListed(column_, lv_.max_cat_threshold)) {
      if (threadIdx.x == 0) {
        out[0] = CategorySet::kBits;
      }
      this->WriteBits(out + 1);
      return;
    }
    bool const right =
        rule_.one_hot || temp_.missing_left;  // whether the side that goes right is listed
    std::uint32_t const n = this->ListSide(right, codes);
    __syncthreads();
    if (threadIdx.x == 0) {
      out[0] = n | (right ? CategorySet::kRight : CategorySet::kLeft);
    }
    for (std::uint32_t i = threadIdx.x; i < n; i += kThreads) {
      std::uint32_t at{0};
      for (std::uint32_t k = 0; k < n; ++k) {
        at += codes[k] < codes[i] ? 1 : 0;
      }
      out[1 + at] = codes[i];
    }
  }

 private:
  /** @brief Find the code below which categories without a sum go right. */
  [[nodiscard]] __device__ std::uint32_t RightBelow() const {
    std::uint32_t const cut = temp_.cut;
    return rule_.one_hot || cut < counts_.n_negative   ? 0
           : cut < counts_.n_negative + counts_.n_zero ? list_.Code(list_.Number(cut))
                                                       : column_.n_categories;
  }
  /** @brief List the categories of the side that has fewer than max_cat_threshold. Returns their number. */
  [[nodiscard]] __device__ std::uint32_t ListSide(bool right, std::uint32_t* codes) const {
    std::uint32_t const cut = temp_.cut;
    if (rule_.one_hot) {
      if (threadIdx.x == 0) {
        codes[0] = cut;
      }
      return 1;
    }
    std::uint32_t const first = right ? 0 : cut;  // rank
    std::uint32_t const n = (right ? cut + 1 : counts_.n_present) - first;
    for (std::uint32_t k = threadIdx.x; k < n; k += kThreads) {
      codes[k] = list_.Code(list_.Number(first + k));
    }
    // Categories without a sum lie between the others: number i has code - i of them below it.
    std::uint32_t const below = this->RightBelow();
    std::uint32_t const n_absent = column_.n_categories - counts_.n_present;
    std::uint32_t const n_below = below == 0                      ? 0
                                  : below == column_.n_categories ? n_absent
                                                                  : below - list_.Number(cut);
    std::uint32_t const n_listed = right ? n_below : n_absent - n_below;
    if (n_listed == 0) {
      return n;
    }
    for (std::uint32_t i = threadIdx.x; i <= counts_.n_present; i += kThreads) {
      std::uint32_t const begin = i == 0 ? 0 : list_.Code(i - 1) + 1;
      std::uint32_t const end = i == counts_.n_present ? column_.n_categories : list_.Code(i);
      for (std::uint32_t c = right ? begin : max(begin, below); c < (right ? min(end, below) : end);
           ++c) {
        codes[n + c - i - (right ? 0 : n_below)] = c;
      }
    }
    return n + n_listed;
  }

  /** @brief Find the position among all categories. */
  [[nodiscard]] __device__ std::uint32_t PositionOf(std::uint32_t rank,
                                                    std::uint32_t number) const {
    return rank + (rank < counts_.n_negative ? 0
                   : rank < counts_.n_negative + counts_.n_zero
                       ? list_.Code(number) - number
                       : column_.n_categories - counts_.n_present);
  }

  template <typename LoadFn>
  __device__ void TwoSets(LoadFn&& load) {
    std::uint32_t const n_tried = min(lv_.max_cat_threshold, column_.n_categories);
    std::uint32_t const n_steps = min(counts_.n_present, n_tried - 1);
    std::uint64_t best{0};
    std::uint32_t cut{0};
#pragma unroll 1
    for (bool const forward : {true, false}) {
      if (!(forward ? rule_.missing_left : rule_.missing_right)) {
        continue;
      }
      FixedSum before{0, 0};
#pragma unroll 1
      for (std::uint32_t base = 0; base < n_steps; base += kThreads) {
        std::uint32_t const step = base + threadIdx.x;
        bool const has = step < n_steps;
        std::uint32_t const rank = forward ? step : counts_.n_present - 1 - step;
        std::uint32_t const number = has ? list_.Number(rank) : 0;
        FixedSum seen = has ? load(number, list_.Code(number)) : FixedSum{0, 0};
        FixedSum of_block;
        SumScan{temp_.scan}.InclusiveScan(seen, seen, cuda::std::plus<>{}, of_block);
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
          std::uint64_t const key = this->Key(forward ? rest : seen, forward ? seen : rest,
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
    for (std::uint32_t i = threadIdx.x; i < counts_.n_present; i += kThreads) {
      own = own + load(i, list_.Code(i));
    }
    FixedSum up_to, present;
    SumScan{temp_.scan}.InclusiveScan(own, up_to, cuda::std::plus<>{}, present);
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
    for (std::uint32_t i = threadIdx.x; i <= counts_.n_present; i += kThreads) {
      if (i < counts_.n_present) {
        offer(load(i, list_.Code(i)), list_.Code(i));
      } else if (counts_.first_absent != CategoryWeight::kNone) {
        offer({0, 0}, counts_.first_absent);  // missing values against all present ones
      }
    }
    this->KeepBest(best, cut);
  }

  [[nodiscard]] __device__ std::uint64_t Key(FixedSum const& left, FixedSum const& right,
                                             std::uint32_t place) const {
    return CandidateKey::Make(lv_.LossChange(node_, rule_.monotone, left, right), place);
  }
  /** @brief Keep the best of all threads. */
  __device__ void KeepBest(std::uint64_t best, std::uint32_t cut) {
    std::uint64_t const of_warp = WarpMax(best);
    if (threadIdx.x % 32 == 0 && of_warp != 0) {
      atomicMax(&temp_.best, static_cast<unsigned long long>(of_warp));
    }
    __syncthreads();
    if (best != 0 && best == temp_.best) {  // keys differ
      std::uint64_t const place = CandidateKey::RankOf(best);
      temp_.cut = cut;
      temp_.missing_left = rule_.one_hot ? place % 2 == 0 : place < column_.n_categories;
    }
    __syncthreads();
  }

  Storage& temp_;
  LevelRef const& lv_;
  CategoricalFeature const& column_;
  FeatureRule rule_;
  LevelNode level_node_;
  NodeState const& node_;
  ListT list_;
  CategoryCounts counts_;
};

/** @brief Searches a column of a node whose categories fit a block: lists, sorts and cuts them.
 *  @tparam kMost The most categories. */
template <int kThreads, int kMost>
class CategorySearchAgent {
  static constexpr int kItems = kMost / kThreads;
  static_assert(kMost % kThreads == 0 && kMost <= 1 << 16, "codes and numbers have 16 bits");
  static_assert(kMost / 32 <= kThreads, "a thread counts a word");
  template <int kOfThread>
  using Sort = cub::BlockRadixSort<std::uint32_t, kThreads, kOfThread, std::uint32_t>;
  using CountScan = cub::BlockScan<std::uint32_t, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct Storage;

 private:
  /** @brief Reads the lists in shared memory. */
  struct List {
    Storage const& temp;

    [[nodiscard]] __device__ std::uint32_t Number(std::uint32_t rank) const {
      return temp.order[rank];
    }
    [[nodiscard]] __device__ std::uint32_t Code(std::uint32_t number) const {
      return temp.codes[number];
    }
  };
  using CutAgent = CategoryCutAgent<kThreads, List>;

 public:
  struct Storage {
    union {
      std::uint32_t keys[kMost];   // CategoryWeight by code, then by number
      std::uint16_t order[kMost];  // numbers by rank
      typename Sort<kItems>::TempStorage sort;
    };
    std::uint16_t codes[kMost];        // by number
    std::uint32_t words[kMost / 32];   // which categories have a sum
    std::uint32_t before[kMost / 32];  // how many of the words before have
    typename CountScan::TempStorage scan;
    CategoryCounts counts;
    typename CutAgent::Storage cut;
  };

  /** @param storage Shared memory. */
  __device__ CategorySearchAgent(Storage* storage, LevelRef const& lv,
                                 CategoricalFeature const& column, LevelNode level_node)
      : temp_{*storage}, lv_{lv}, column_{column}, level_node_{level_node} {}

  /**
   * @brief List the categories that have a sum. All threads of the block; ends with a barrier.
   * @param load load(code): the node's sum of a category. Called once for each, at most kMost.
   */
  template <typename LoadFn>
  __device__ void Gather(LoadFn&& load) {
    std::uint32_t const n = column_.n_categories;
    this->Begin();
    for (std::uint32_t base = 0; base < n; base += kThreads) {
      std::uint32_t const code = base + threadIdx.x;
      FixedSum const sum = code < n ? load(code) : FixedSum{0, 0};
      std::uint32_t const key = sum == FixedSum{0, 0} ? kNone : CategoryWeight::Key(lv_, sum);
      temp_.keys[code] = key;
      std::uint32_t const bits = __ballot_sync(kAllLanes, key != kNone);
      this->CountSigns(key);
      if (threadIdx.x % 32 == 0) {
        temp_.words[code / 32] = bits;
      }
    }
    __syncthreads();
    this->Compact(n);
  }

  /**
   * @brief List categories that are numbered already, of which some may have a sum of zero. All threads of
   *        the block; ends with a barrier.
   * @param n_present How many there are, at most kMost.
   * @param code      code(number), ascending.
   * @param load      load(number): the node's sum.
   */
  template <typename CodeFn, typename LoadFn>
  __device__ void Take(std::uint32_t n_present, CodeFn&& code, LoadFn&& load) {
    this->Begin();
    for (std::uint32_t base = 0; base < n_present; base += kThreads) {
      std::uint32_t const number = base + threadIdx.x;
      std::uint32_t key{kNone};
      if (number < n_present) {
        key = CategoryWeight::Key(lv_, load(number));
        temp_.keys[number] = key;
        temp_.codes[number] = static_cast<std::uint16_t>(code(number));
        if (code(number) != number) {
          atomicMin(&temp_.counts.first_absent, number);
        }
      }
      this->CountSigns(key);
    }
    if (threadIdx.x == 0) {
      temp_.counts.n_present = n_present;
      if (n_present < column_.n_categories) {
        atomicMin(&temp_.counts.first_absent, n_present);
      }
    }
    __syncthreads();
  }

  /**
   * @brief Offer the best split of the listed categories, and write its set if it is the best of the node
   *        so far. All threads of the block.
   * @param load load(number, code): the node's sum of one of them.
   */
  template <typename LoadFn>
  __device__ void Search(LoadFn&& load, std::uint32_t* out_set) {
    if (!lv_.Allowed(level_node_, column_.feature)) {
      return;
    }
    if (!lv_.rules[column_.feature].one_hot) {
      this->SortByWeight();
    }
    CutAgent cuts{&temp_.cut, lv_, column_, level_node_, List{temp_}, temp_.counts};
    if (cuts.Offer(load)) {
      cuts.WriteBits(out_set);
    }
  }

 private:
  static constexpr std::uint32_t kNone = CategoryWeight::kNone;

  /** @brief Sort numbers by weight, alike ones by code. All threads of the block; ends with a barrier. */
  __device__ void SortByWeight() {
    std::uint32_t const n = temp_.counts.n_present;
    if (n <= kThreads) {
      this->SortItems<1>();
    } else if (n <= 2 * kThreads) {
      this->SortItems < kItems<2 ? kItems : 2>();
    } else if (n <= 4 * kThreads) {
      this->SortItems < kItems<4 ? kItems : 4>();
    } else {
      this->SortItems<kItems>();
    }
  }
  __device__ void Begin() {
    if (threadIdx.x == 0) {
      temp_.counts = {0, 0, 0, kNone};
    }
    __syncthreads();
  }
  /** @brief Count signs of weights. All lanes of a warp. */
  __device__ void CountSigns(std::uint32_t key) {
    int const n_negative = __popc(__ballot_sync(kAllLanes, key < CategoryWeight::kZero));
    int const n_zero = __popc(__ballot_sync(kAllLanes, key == CategoryWeight::kZero));
    if (threadIdx.x % 32 == 0 && n_negative + n_zero != 0) {
      atomicAdd(&temp_.counts.n_negative, n_negative);
      atomicAdd(&temp_.counts.n_zero, n_zero);
    }
  }
  /** @brief Move keys by code to keys by number. */
  __device__ void Compact(std::uint32_t n) {
    std::uint32_t const w = threadIdx.x;
    bool const has = w < (n + 31) / 32;
    std::uint32_t const word = has ? temp_.words[w] : 0;
    std::uint32_t before, n_present;
    CountScan{temp_.scan}.ExclusiveSum(__popc(word), before, n_present);
    if (has) {
      temp_.before[w] = before;
      std::uint32_t const absent = ~word & (n - 32 * w < 32 ? (1u << (n - 32 * w)) - 1 : ~0u);
      if (absent != 0) {
        atomicMin(&temp_.counts.first_absent, 32 * w + __ffs(static_cast<int>(absent)) - 1);
      }
    }
    if (threadIdx.x == 0) {
      temp_.counts.n_present = n_present;
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

  template <int kOfThread>
  __device__ void SortItems() {
    using OfItems = Sort<kOfThread>;
    static_assert(sizeof(typename OfItems::TempStorage) <=
                  sizeof(typename Sort<kItems>::TempStorage));
    std::uint32_t keys[kOfThread];
    std::uint32_t numbers[kOfThread];
#pragma unroll
    for (int k = 0; k < kOfThread; ++k) {
      numbers[k] = threadIdx.x * kOfThread + k;
      keys[k] = numbers[k] < temp_.counts.n_present ? temp_.keys[numbers[k]] : kNone;
    }
    __syncthreads();
    OfItems{reinterpret_cast<typename OfItems::TempStorage&>(temp_.sort)}.Sort(keys, numbers);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kOfThread; ++k) {
      temp_.order[threadIdx.x * kOfThread + k] = static_cast<std::uint16_t>(numbers[k]);
    }
    __syncthreads();
  }

  Storage& temp_;
  LevelRef const& lv_;
  CategoricalFeature const& column_;
  LevelNode level_node_;
};
}  // namespace gpu_exact
