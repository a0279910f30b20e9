/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements split_exchange.cuh.
 */
#include <algorithm>

#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kJoinedSlots = 8;  // per thread: they look up few nodes
constexpr std::size_t kSplitWords = sizeof(Split) / sizeof(std::uint32_t);

// one thread a node
__global__ void PackGainsKernel(std::uint64_t const* best, LevelNode n_nodes, float* out) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes) {
    out[b] = CandidateKey::LossChange(best[b]);
  }
}

// one thread a node
__global__ void RaiseGainsToBeatKernel(float const* gains_to_beat, std::uint32_t n_workers,
                                       LevelNode n_nodes, std::uint64_t* best) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes) {
    float to_beat{0.0f};
    for (std::uint32_t w = 0; w < n_workers; ++w) {
      to_beat = fmaxf(to_beat, gains_to_beat[std::uint64_t{w} * n_nodes + b]);
    }
    best[b] = max(best[b], CandidateKey::GainToBeat(to_beat));
  }
}

/** @brief Holds the best split of a node, and whose it is. */
struct Winner {
  Split best;
  std::uint32_t rank;

  /** @param splits Of a node, by worker, with `stride` bytes from one to the next. */
  __device__ Winner(Split const* splits, std::uint64_t stride, std::uint32_t n_workers)
      : best{splits[0]}, rank{0} {
    for (std::uint32_t w = 1; w < n_workers; ++w) {
      Split const split =
          *reinterpret_cast<Split const*>(reinterpret_cast<char const*>(splits) + w * stride);
      if (split.loss_change > best.loss_change ||
          (split.loss_change == best.loss_change && split.feature < best.feature)) {
        best = split;
        rank = w;
      }
    }
  }
  [[nodiscard]] __device__ bool Exists() const { return best.loss_change > 0.0f; }
};

// one thread a node
__global__ void PackKernel(LevelResult const* results, LevelNode n_nodes, Split* out) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes) {
    out[b] = results[b].split;
  }
}

// one thread a node
__global__ void PickKernel(Split const* splits, std::uint32_t n_workers, std::uint32_t rank,
                           LevelNode n_nodes, LevelResult* results, std::uint8_t* is_own) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b >= n_nodes) {
    return;
  }
  Winner const winner{splits + b, n_nodes * sizeof(Split), n_workers};
  is_own[b] = winner.Exists() && winner.rank == rank ? 1 : 0;
  results[b].split = winner.best;
}

/** @brief Lays out what workers tell of a level by ShareSplits(), one worker after the other. */
struct SplitMessages {
  std::uint32_t* words;
  std::uint64_t n_splits;  // words of splits, which come first in a message
  std::uint64_t n_bits;    // words of bits
  std::uint32_t n_workers;

  [[nodiscard]] GPU_EXACT_HD std::uint64_t Stride() const { return n_splits + n_bits; }
  [[nodiscard]] __device__ Split* Splits(std::uint32_t worker) const {
    return reinterpret_cast<Split*>(words + worker * this->Stride());
  }
  [[nodiscard]] __device__ std::uint32_t* Bits(std::uint32_t worker) const {
    return words + worker * this->Stride() + n_splits;
  }
};

// one thread a node or a word of bits, whichever are more
__global__ void PackSplitsKernel(LevelResult const* results, LevelNode n_nodes,
                                 RankBitVectorRef goes_left, std::uint32_t rank,
                                 SplitMessages messages) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_nodes) {
    messages.Splits(rank)[i] = results[i].split;
  }
  if (i < messages.n_bits) {
    messages.Bits(rank)[i] = goes_left.words[i].bits;
  }
}

// grid: slots and one more; result: the best splits, and the bits of those who have them
template <int kSlots>
__global__ __launch_bounds__(kThreads) void JoinSplitsKernel(RowsRef rows, LevelNode n_nodes,
                                                             RowIdx n_slots, SplitMessages messages,
                                                             LevelResult* results,
                                                             RankBitVectorRef goes_left) {
  WaitForPreviousKernel();
  auto const winner_of = [&](std::uint64_t b) {
    return Winner{messages.Splits(0) + b, messages.Stride() * sizeof(std::uint32_t),
                  messages.n_workers};
  };
  for (auto b = GlobalIdx(); b < n_nodes; b += std::uint64_t{gridDim.x} * kThreads) {
    results[b].split = winner_of(b).best;
  }
  LevelNode node{n_nodes};
  std::uint32_t const* bits{nullptr};  // of the worker that has the node's split; nullptr: nobody
  ForEachSlot<kThreads, kSlots>(rows, n_nodes, n_slots, [&](int, std::uint64_t slot, LevelNode b) {
    if (slot / 32 > n_slots / 32) {
      return;
    }
    if (b != node && b != n_nodes) {
      Winner const winner = winner_of(b);
      bits = winner.Exists() ? messages.Bits(winner.rank) : nullptr;
      node = b;
    }
    bool const left = b != n_nodes && bits != nullptr && (bits[slot / 32] >> slot % 32 & 1u) != 0;
    goes_left.WriteWord(slot, left);
  });
}

/** @brief Write a word of bits. */
__device__ void WriteBits(RankBitVectorRef const& out, std::uint64_t i, std::uint32_t bits) {
  out.words[i] = {bits, 0};
}
__device__ void WriteBits(std::uint32_t* out, std::uint64_t i, std::uint32_t bits) {
  out[i] = bits;
}

// one thread a word
template <typename OutT>
__global__ void JoinKernel(std::uint32_t const* words, std::uint32_t n_workers,
                           std::uint64_t n_words, OutT out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_words) {
    std::uint32_t bits{0};
    for (std::uint32_t w = 0; w < n_workers; ++w) {
      bits |= words[w * n_words + i];
    }
    WriteBits(out, i, bits);
  }
}

// one thread a word of the own columns
__global__ void SelectOwnKernel(std::uint32_t const* masks, std::size_t n_words,
                                ColumnFeatures features, FeatureIdx n_columns, std::uint64_t n_out,
                                std::uint32_t* out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_out) {
    return;
  }
  auto const of_mask = SplitExchange::MaskWords(n_columns);
  auto const* mask = masks + i / of_mask * n_words;
  auto const first = static_cast<FeatureIdx>(i % of_mask * 32);
  std::uint32_t word{0};
  for (FeatureIdx c = first; c < min(first + 32, n_columns); ++c) {
    FeatureIdx const f = features.Of(ColumnIdx{c});
    word |= (mask[f / 32] >> f % 32 & 1u) << c % 32;
  }
  out[i] = word;
}
}  // namespace

SplitExchange::SplitExchange(ColumnPartition const& partition) : partition_{partition} {
  constexpr std::uint64_t kFewNodes = 4096;
  static_cast<void>(this->OwnWords(std::uint64_t{partition.Whole().n_rows} / 32 + 1 +
                                   kFewNodes * kSplitWords));  // grows for levels of more nodes
}

Parts SplitExchange::Equal(std::uint64_t n, std::size_t unit) const {
  Parts parts{{}, unit};
  for (std::int32_t rank = 0; rank <= partition_.Workers()->Size(); ++rank) {
    parts.begins.push_back(rank * n);
  }
  return parts;
}

void SplitExchange::ShareBestGains(std::uint64_t* best, LevelNode n_nodes) {
  DeviceCommunicator* const workers = partition_.Workers();
  auto const n_workers = static_cast<std::uint32_t>(workers->Size());
  float* const gains_to_beat = gains_to_beat_.Reserve(std::size_t{n_workers} * n_nodes);
  LaunchN("PackGains", PackGainsKernel, n_nodes, best, n_nodes,
          gains_to_beat + std::size_t{1} * workers->Rank() * n_nodes);
  workers->AllGatherWords(reinterpret_cast<std::uint32_t*>(gains_to_beat),
                          this->Equal(n_nodes, sizeof(float)));
  LaunchN("RaiseGainsToBeat", RaiseGainsToBeatKernel, n_nodes, gains_to_beat, n_workers, n_nodes,
          best);
}

void SplitExchange::ShareBest(LevelResult* results, LevelNode n_nodes) {
  DeviceCommunicator* const workers = partition_.Workers();
  auto const n_workers = static_cast<std::uint32_t>(workers->Size());
  auto const rank = static_cast<std::uint32_t>(workers->Rank());
  Split* const splits = splits_.Reserve(std::size_t{n_workers} * n_nodes);
  is_own_.Reserve(n_nodes);
  LaunchN("Pack", PackKernel, n_nodes, results, n_nodes, splits + std::size_t{rank} * n_nodes);
  workers->AllGatherWords(reinterpret_cast<std::uint32_t*>(splits),
                          this->Equal(n_nodes, sizeof(Split)));
  LaunchN("Pick", PickKernel, n_nodes, splits, n_workers, rank, n_nodes, results, is_own_.Data());
}

void SplitExchange::ShareSplits(RowsRef const& rows, RowIdx n_slots, LevelResult* results,
                                LevelNode n_nodes, RankBitVectorRef goes_left) {
  DeviceCommunicator* const workers = partition_.Workers();
  auto const n_workers = static_cast<std::uint32_t>(workers->Size());
  SplitMessages messages{nullptr, n_nodes * kSplitWords, n_slots / 32 + std::uint64_t{1},
                         n_workers};
  messages.words = words_.Reserve(messages.Stride() * n_workers);
  LaunchN("PackSplits", PackSplitsKernel, std::max<std::uint64_t>(n_nodes, messages.n_bits),
          results, n_nodes, goes_left, static_cast<std::uint32_t>(workers->Rank()), messages);
  workers->AllGatherWords(messages.words, this->Equal(messages.Stride(), sizeof(std::uint32_t)));
  WithSlots<kJoinedSlots>(n_slots, [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    Launch("JoinSplits", JoinSplitsKernel<kSlots>,
           SlotTurns::Grid(std::uint64_t{n_slots} + 1, kThreads * kSlots, n_nodes), kThreads, rows,
           n_nodes, n_slots, messages, results, goes_left);
  });
}

std::uint32_t* SplitExchange::OwnWords(std::uint64_t n_words) {
  return words_.Reserve(n_words * partition_.Workers()->Size()) +
         n_words * partition_.Workers()->Rank();
}

void SplitExchange::JoinWords(std::uint64_t n_words, RankBitVectorRef out) {
  this->GatherWords(n_words);
  LaunchN("Join", JoinKernel<RankBitVectorRef>, n_words, words_.Data(),
          static_cast<std::uint32_t>(partition_.Workers()->Size()), n_words, out);
}

void SplitExchange::JoinWords(std::uint64_t n_words, std::uint32_t* out) {
  this->GatherWords(n_words);
  LaunchN("Join", JoinKernel<std::uint32_t*>, n_words, words_.Data(),
          static_cast<std::uint32_t>(partition_.Workers()->Size()), n_words, out);
}

void SplitExchange::GatherWords(std::uint64_t n_words) {
  partition_.Workers()->AllGatherWords(words_.Data(), this->Equal(n_words, sizeof(std::uint32_t)));
}

void SplitExchange::SelectOwn(std::uint32_t const* masks, std::size_t n_words,
                              std::uint64_t n_masks, std::uint32_t* out) {
  FeatureIdx const n_columns = partition_.OwnTable().n_features;
  std::uint64_t const n_out = n_masks * MaskWords(n_columns);
  LaunchN("SelectOwn", SelectOwnKernel, n_out, masks, n_words, partition_.Features(), n_columns,
          n_out, out);
}

ColumnIdx ColumnOf(NodeSplit const& split, SplitExchange const* exchange) {
  if (split.left == kNoNode) {
    return kRemoteColumn;
  }
  return exchange == nullptr ? ColumnIdx{split.feature}
                             : exchange->Columns().ColumnOf(split.feature);
}
}  // namespace gpu_exact
