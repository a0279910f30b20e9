/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements category_sets.cuh.
 */
#include <algorithm>
#include <string>

#include "device/histogram/category_sets.cuh"
#include "gpu_exact/device.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
// one block a set; from: nullptr where another worker has it
__global__ void GatherSetsKernel(GatheredSet const* sets, std::uint32_t* words) {
  WaitForPreviousKernel();
  GatheredSet const set = sets[blockIdx.x];
  std::uint32_t const n = set.from == nullptr ? 0 : CategorySet{set.from}.NumWritten(set.n_words);
  for (std::uint32_t w = threadIdx.x; w < set.n_words; w += blockDim.x) {
    words[set.to + w] = w < n ? set.from[w] : 0;
  }
}
}  // namespace

CategorySets::CategorySets(std::vector<CategoricalFeature> const& features)
    : own_{features}, features_{features} {}

void CategorySets::AddRemoteFeatures(SplitExchange const& exchange) {
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

void CategorySets::BeginTree(GrowParam const& param, RowIdx n_rows, std::uint64_t spare) {
  max_cat_threshold_ = static_cast<std::uint32_t>(param.max_cat_threshold);
  stride_ = 0;
  std::uint32_t longest{0};  // of sets that the plan does not know
  for (CategoricalFeature const& f : own_) {
    std::uint32_t const n_words = CategorySet::NumWords(f, max_cat_threshold_);
    stride_ = std::max(stride_, n_words);
    longest = std::max(longest, f.n_categories > kMaxGroupBins ? n_words : 0);
  }
  // Words of a node in its level, and in the tree.
  std::uint64_t nodes = n_rows;
  if (param.max_depth > 0 && param.max_depth < 32) {
    nodes = std::min(nodes, std::uint64_t{1} << param.max_depth);
  }
  std::uint64_t const bytes = 2 * sizeof(std::uint32_t) * longest * nodes;
  if (max_cat_threshold_ > CategorySet::kMaxListed + 1 && bytes > spare) {
    throw OutOfDeviceMemory{
        "max_cat_threshold=" + std::to_string(max_cat_threshold_) +
        ": sets of categories take up to " + std::to_string(bytes) + " bytes in a tree of " +
        std::to_string(nodes) + " nodes, and beside the table " + std::to_string(spare) +
        " may be taken. Set it to at most " + std::to_string(CategorySet::kMaxListed + 1) +
        ", or max_depth to less."};
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
    std::uint32_t const n_set = CategorySet::NumWords(*f, max_cat_threshold_);
    gathered_.push_back({from, n_words, n_set, node, *f});
    split.by_categories = true;
    split.first_set_word = n_words;
    n_words += n_set;
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
  if (words[0] == CategorySet::kBits) {
    return {words + 1, words + part->n_words};
  }
  CategoricalFeature const& column = part->column;
  bool const right = (words[0] & CategorySet::kRight) != 0;
  std::vector<std::uint32_t> bits(column.NumWords(), right ? 0 : ~0u);
  if (!right && column.n_categories % 32 != 0) {
    bits.back() = (1u << column.n_categories % 32) - 1;
  }
  for (std::uint32_t k = 1; k < CategorySet{words}.NumWritten(0); ++k) {
    bits[words[k] / 32] ^= 1u << words[k] % 32;
  }
  return bits;
}
}  // namespace gpu_exact
