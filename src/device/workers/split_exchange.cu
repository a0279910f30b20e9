/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements split_exchange.cuh.
 */
#include <algorithm>

#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Lays out what workers tell of a level, one worker after the other. */
struct SplitMessages {
  static constexpr std::size_t kSplitWords = sizeof(Split) / sizeof(std::uint32_t);

  std::uint32_t* words;
  std::uint64_t n_splits;  // words of splits, which come first in a message
  std::uint64_t n_bits;    // words of bits
  std::uint32_t n_workers;

  [[nodiscard]] GPU_EXACT_HD std::uint64_t Stride() const { return n_splits + n_bits; }
  [[nodiscard]] GPU_EXACT_HD Split* Splits(std::uint32_t worker) const {
    return reinterpret_cast<Split*>(words + worker * this->Stride());
  }
  [[nodiscard]] std::uint32_t* Bits(std::uint32_t worker) const {
    return words + worker * this->Stride() + n_splits;
  }
};

namespace {

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

// one thread a node
__global__ void PackKernel(LevelResult const* results, LevelNode n_nodes, Split* out) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes) {
    out[b] = results[b].split;
  }
}

// one thread a node
__global__ void PickKernel(SplitMessages messages, LevelNode n_nodes, LevelResult* results,
                           std::uint32_t* winners) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b >= n_nodes) {
    return;
  }
  Split best = messages.Splits(0)[b];
  std::uint32_t winner{0};
  for (std::uint32_t w = 1; w < messages.n_workers; ++w) {
    Split const split = messages.Splits(w)[b];
    if (split.loss_change > best.loss_change ||
        (split.loss_change == best.loss_change && split.feature < best.feature)) {
      best = split;
      winner = w;
    }
  }
  results[b].split = best;
  winners[b] = best.loss_change > 0.0f ? winner : SplitExchange::kNobody;
}

// one thread a word
__global__ void JoinKernel(std::uint32_t const* words, std::uint32_t n_workers,
                           std::uint64_t n_words, std::uint32_t* out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_words) {
    std::uint32_t bits{0};
    for (std::uint32_t w = 0; w < n_workers; ++w) {
      bits |= words[w * n_words + i];
    }
    out[i] = bits;
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
  static_cast<void>(
      this->OwnWords(std::uint64_t{partition.Whole().n_rows} / 32 + 1 +
                     kFewNodes * SplitMessages::kSplitWords));  // grows for levels of more nodes
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

SplitMessages SplitExchange::Messages(LevelNode n_nodes, bool with_rows) {
  std::uint64_t const n_bits = with_rows ? partition_.Whole().n_rows / 32 + std::uint64_t{1} : 0;
  SplitMessages messages{nullptr, n_nodes * SplitMessages::kSplitWords, n_bits,
                         static_cast<std::uint32_t>(partition_.Workers()->Size())};
  messages.words = words_.Reserve(messages.Stride() * messages.n_workers);
  return messages;
}

std::uint32_t* SplitExchange::LeftRows(LevelNode n_nodes) {
  SplitMessages const messages = this->Messages(n_nodes, true);
  std::uint32_t* const bits =
      messages.Bits(static_cast<std::uint32_t>(partition_.Workers()->Rank()));
  ZeroAsync(bits, messages.n_bits);
  return bits;
}

LeftRowsRef SplitExchange::ShareBest(LevelResult* results, LevelNode n_nodes, bool with_rows) {
  DeviceCommunicator* const workers = partition_.Workers();
  SplitMessages const messages = this->Messages(n_nodes, with_rows);
  LaunchN("Pack", PackKernel, n_nodes, results, n_nodes,
          messages.Splits(static_cast<std::uint32_t>(workers->Rank())));
  workers->AllGatherWords(messages.words, this->Equal(messages.Stride(), sizeof(std::uint32_t)));
  LaunchN("Pick", PickKernel, n_nodes, messages, n_nodes, results, winners_.Reserve(n_nodes));
  return {with_rows ? messages.Bits(0) : nullptr, messages.Stride(), winners_.Data()};
}

std::uint32_t* SplitExchange::OwnWords(std::uint64_t n_words) {
  return words_.Reserve(n_words * partition_.Workers()->Size()) +
         n_words * partition_.Workers()->Rank();
}

void SplitExchange::JoinWords(std::uint64_t n_words, std::uint32_t* out) {
  partition_.Workers()->AllGatherWords(words_.Data(), this->Equal(n_words, sizeof(std::uint32_t)));
  LaunchN("Join", JoinKernel, n_words, words_.Data(),
          static_cast<std::uint32_t>(partition_.Workers()->Size()), n_words, out);
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
