/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of split_exchange.cuh.
 */
#include "src/device/split_exchange.cuh"

namespace gpu_exact {
namespace {
// one thread a node
__global__ void PackBarsKernel(std::uint64_t const* best, Bucket n_nodes, float* out) {
  auto b = GlobalIdx();
  if (b < n_nodes) {
    out[b] = CandidateKey::LossChange(best[b]);
  }
}

// one thread a node
__global__ void RaiseBarsKernel(float const* bars, std::uint32_t n_workers, Bucket n_nodes,
                                std::uint64_t* best) {
  auto b = GlobalIdx();
  if (b < n_nodes) {
    float bar{0.0f};
    for (std::uint32_t w = 0; w < n_workers; ++w) {
      bar = fmaxf(bar, bars[std::uint64_t{w} * n_nodes + b]);
    }
    best[b] = max(best[b], CandidateKey::Elsewhere(bar));
  }
}

// one thread a node
__global__ void PackKernel(LevelResult const* results, FeatureIdx const* features, Bucket n_nodes,
                           SplitRecord* out) {
  auto b = GlobalIdx();
  if (b < n_nodes) {
    Split const& s = results[b].split;
    out[b] = {s.loss_change, features[s.feature], s.threshold, s.default_left};
  }
}

// one thread a node
__global__ void PickKernel(SplitRecord const* records, std::uint32_t n_workers, std::uint32_t rank,
                           Bucket n_nodes, LevelResult* results, std::uint8_t* is_own) {
  auto b = GlobalIdx();
  if (b >= n_nodes) {
    return;
  }
  std::uint32_t winner{0};
  SplitRecord best = records[b];
  for (std::uint32_t w = 1; w < n_workers; ++w) {
    SplitRecord const r = records[std::uint64_t{w} * n_nodes + b];
    if (r.loss_change > best.loss_change ||
        (r.loss_change == best.loss_change && r.feature < best.feature)) {
      winner = w;
      best = r;
    }
  }
  is_own[b] = winner == rank && best.loss_change > 0.0f ? 1 : 0;
  LevelResult* result = results + b;
  result->split = {best.loss_change, best.feature, best.threshold, best.default_left,
                   result->split.first_right};
  if (is_own[b] == 0) {
    result->winner = {0, 0};
  }
}

// one thread a word
__global__ void JoinKernel(std::uint32_t const* words, std::uint32_t n_workers,
                           std::uint64_t n_words, RankBitsRef out) {
  auto i = GlobalIdx();
  if (i < n_words) {
    std::uint32_t bits{0};
    for (std::uint32_t w = 0; w < n_workers; ++w) {
      bits |= words[w * n_words + i];
    }
    out.words[i] = {bits, 0};
  }
}

// one thread a word of the own columns
__global__ void SelectOwnKernel(std::uint32_t const* masks, std::size_t n_words,
                                FeatureIdx const* features, FeatureIdx n_columns,
                                std::uint64_t n_out, std::uint32_t* out) {
  auto i = GlobalIdx();
  if (i >= n_out) {
    return;
  }
  auto const of_mask = SplitExchange::MaskWords(n_columns);
  auto const* mask = masks + i / of_mask * n_words;
  auto const first = static_cast<FeatureIdx>(i % of_mask * 32);
  std::uint32_t word{0};
  for (FeatureIdx c = first; c < min(first + 32, n_columns); ++c) {
    FeatureIdx const f = features[c];
    word |= (mask[f / 32] >> f % 32 & 1u) << c % 32;
  }
  out[i] = word;
}
}  // namespace

SplitExchange::SplitExchange(TableShare const& share) : share_{share} {
  static_cast<void>(this->OwnWords(std::uint64_t{share.Whole().n_rows} / 32 + 1));  // at most
}

Parts SplitExchange::Equal(std::uint64_t n, std::size_t unit) const {
  Parts parts{{}, unit};
  for (std::int32_t rank = 0; rank <= share_.Workers()->Size(); ++rank) {
    parts.begins.push_back(rank * n);
  }
  return parts;
}

void SplitExchange::ShareBars(std::uint64_t* best, Bucket n_nodes) {
  DevicePeers* const workers = share_.Workers();
  auto const n_workers = static_cast<std::uint32_t>(workers->Size());
  float* const bars = bars_.Reserve(std::size_t{n_workers} * n_nodes);
  LaunchN("PackBars", PackBarsKernel, n_nodes, best, n_nodes,
          bars + std::size_t{1} * workers->Rank() * n_nodes);
  workers->Tell(reinterpret_cast<std::uint32_t*>(bars), this->Equal(n_nodes, sizeof(float)));
  LaunchN("RaiseBars", RaiseBarsKernel, n_nodes, bars, n_workers, n_nodes, best);
}

void SplitExchange::ShareBest(LevelResult* results, Bucket n_nodes) {
  DevicePeers* const workers = share_.Workers();
  auto const n_workers = static_cast<std::uint32_t>(workers->Size());
  auto const rank = static_cast<std::uint32_t>(workers->Rank());
  SplitRecord* const records = records_.Reserve(std::size_t{n_workers} * n_nodes);
  is_own_.Reserve(n_nodes);
  LaunchN("Pack", PackKernel, n_nodes, results, share_.Features(), n_nodes,
          records + std::size_t{rank} * n_nodes);
  workers->Tell(reinterpret_cast<std::uint32_t*>(records),
                this->Equal(n_nodes, sizeof(SplitRecord)));
  LaunchN("Pick", PickKernel, n_nodes, records, n_workers, rank, n_nodes, results, is_own_.Data());
}

std::uint32_t* SplitExchange::OwnWords(std::uint64_t n_words) {
  return words_.Reserve(n_words * share_.Workers()->Size()) + n_words * share_.Workers()->Rank();
}

void SplitExchange::JoinWords(std::uint64_t n_words, RankBitsRef out) {
  DevicePeers* const workers = share_.Workers();
  workers->Tell(words_.Data(), this->Equal(n_words, sizeof(std::uint32_t)));
  LaunchN("Join", JoinKernel, n_words, words_.Data(), static_cast<std::uint32_t>(workers->Size()),
          n_words, out);
}

void SplitExchange::SelectOwn(std::uint32_t const* masks, std::size_t n_words,
                              std::uint64_t n_masks, std::uint32_t* out) {
  FeatureIdx const n_columns = share_.Slice().n_features;
  std::uint64_t const n_out = n_masks * MaskWords(n_columns);
  LaunchN("SelectOwn", SelectOwnKernel, n_out, masks, n_words, share_.Features(), n_columns, n_out,
          out);
}

std::vector<SplitOrder> OfOwnColumns(std::vector<SplitOrder> orders,
                                     SplitExchange const* exchange) {
  if (exchange != nullptr) {
    for (SplitOrder& order : orders) {
      order.feature =
          order.left == kNoNode ? TableShare::kNotOwn : exchange->Share().ColumnOf(order.feature);
    }
  }
  return orders;
}
}  // namespace gpu_exact
