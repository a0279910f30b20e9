/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements category_sets.cuh.
 */
#include <algorithm>

#include "device/histogram/category_sets.cuh"

namespace gpu_exact {
namespace {
// one block a set
__global__ void GatherSetsKernel(GatheredSet const* sets, std::uint32_t* words) {
  WaitForPreviousKernel();
  GatheredSet const set = sets[blockIdx.x];
  for (std::uint32_t w = threadIdx.x; w < set.n_words; w += blockDim.x) {
    words[set.to + w] = set.from[w];
  }
}
}  // namespace

CategorySets::CategorySets(std::vector<CategoricalFeature> const& features)
    : features_{features}, stride_{0} {
  for (CategoricalFeature const& f : features_) {
    stride_ = std::max(stride_, f.NumWords());
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

void CategorySets::Gather(std::vector<NodeSplit>* tree, SplitExchange const* exchange) {
  gathered_.clear();
  std::uint64_t n_words{0};
  for (std::size_t nidx = 0; nidx < tree->size(); ++nidx) {
    NodeSplit& split = (*tree)[nidx];
    FeatureIdx const column = InOwnTable(ColumnOf(split, exchange));
    auto const f = std::lower_bound(
        features_.cbegin(), features_.cend(), column,
        [](CategoricalFeature const& a, FeatureIdx b) { return a.feature < b; });
    if (split.left == kNoNode || f == features_.cend() || f->feature != column) {
      continue;
    }
    auto const node = static_cast<NodeIdx>(nidx);
    auto const level = std::upper_bound(firsts_.cbegin(), firsts_.cend(), node) - 1;
    gathered_.push_back({levels_[level - firsts_.cbegin()].Data() +
                          static_cast<std::uint64_t>(node - *level) * stride_,
                      n_words, f->NumWords(), node});
    split.by_categories = true;
    split.first_right = n_words;
    n_words += f->NumWords();
  }
  constexpr unsigned kThreads = 128;
  Launch("GatherSets", GatherSetsKernel, gathered_.size(), kThreads, d_gathered_.Upload(gathered_),
         words_.Reserve(n_words));
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

std::uint64_t CategorySets::Bytes() const {
  std::uint64_t bytes = d_gathered_.Bytes() + words_.Bytes();
  for (auto const& level : levels_) {
    bytes += level.Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
