/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements category_sets.cuh.
 */
#include <algorithm>

#include "device/histogram/category_sets.cuh"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
// one block a set; from: nullptr where another worker has it
__global__ void GatherSetsKernel(GatheredSet const* sets, std::uint32_t* words) {
  WaitForPreviousKernel();
  GatheredSet const set = sets[blockIdx.x];
  for (std::uint32_t w = threadIdx.x; w < set.n_words; w += blockDim.x) {
    words[set.to + w] = set.from == nullptr ? 0 : set.from[w];
  }
}
}  // namespace

CategorySets::CategorySets(std::vector<CategoricalFeature> const& features)
    : features_{features}, stride_{0} {
  for (CategoricalFeature const& f : features_) {
    stride_ = std::max(stride_, f.NumWords());
  }
}

void CategorySets::Share(SplitExchange const& exchange) {
  ColumnPartition const& partition = exchange.Columns();
  if (NumCategorical(partition.Whole()) == 0) {
    return;
  }
  std::vector<std::uint64_t> n_categories(partition.Whole().n_features, 0);
  for (CategoricalFeature const& f : features_) {
    n_categories[partition.FeatureOf(ColumnIdx{f.feature})] = f.n_categories;
  }
  partition.Workers()->OfHost()->AllReduce(n_categories.data(), n_categories.size());
  features_.clear();
  for (FeatureIdx f = 0; f < n_categories.size(); ++f) {
    if (n_categories[f] != 0) {
      features_.push_back({f, static_cast<std::uint32_t>(n_categories[f])});
    }
  }
}

LevelSetsRef CategorySets::BeginLevel(Level const& level) {
  if (!this->Any()) {
    return {nullptr, 0};
  }
  auto const depth = static_cast<std::size_t>(level.depth);
  firsts_.resize(depth);
  firsts_.push_back(level.nodes.first);
  if (depth == levels_.size()) {
    levels_.emplace_back("sets of categories of a level");
  }
  return {levels_[depth].Reserve(std::size_t{level.nodes.n} * stride_), stride_};
}

void CategorySets::Gather(std::vector<NodeSplit>* tree, SplitExchange* exchange) {
  gathered_.clear();
  std::uint64_t n_words{0};
  for (std::size_t nidx = 0; nidx < tree->size(); ++nidx) {
    NodeSplit& split = (*tree)[nidx];
    CategoricalFeature const* const f = FindCategorical(features_, split.feature);
    if (split.left == kNoNode || f == nullptr) {
      continue;
    }
    auto const node = static_cast<NodeIdx>(nidx);
    std::uint32_t const* from{nullptr};
    if (ColumnOf(split, exchange) != kRemoteColumn) {
      auto const first = std::upper_bound(firsts_.cbegin(), firsts_.cend(), node) - 1;
      from = levels_[first - firsts_.cbegin()].Data() + std::uint64_t{stride_} * (node - *first);
    }
    gathered_.push_back({from, n_words, f->NumWords(), node});
    split.by_categories = true;
    split.first_set_word = n_words;
    n_words += f->NumWords();
  }
  if (gathered_.empty()) {  // of no worker
    return;
  }
  constexpr unsigned kThreads = 128;
  words_.Reserve(n_words);
  Launch("GatherSets", GatherSetsKernel, gathered_.size(), kThreads, d_gathered_.Upload(gathered_),
         exchange == nullptr ? words_.Data() : exchange->OwnWords(n_words));
  if (exchange != nullptr) {
    exchange->JoinWords(n_words, words_.Data());
  }
  CopyPinned(host_words_.Reserve(n_words), words_.Data(), n_words);
}

std::vector<std::uint32_t> CategorySets::Of(NodeIdx nidx) const {
  auto const part = std::lower_bound(gathered_.cbegin(), gathered_.cend(), nidx,
                                     [](GatheredSet const& a, NodeIdx b) { return a.node < b; });
  if (part == gathered_.cend() || part->node != nidx) {
    return {};
  }
  std::uint32_t const* const words = host_words_.Data() + part->to;
  return {words, words + part->n_words};
}
}  // namespace gpu_exact
