/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * Every live node keeps its rows and, for each feature, its entries in the order of values; to
 * split it is to hand both out to its children. O(entries) work and memory a level.
 *
 * Workers of a group share the features out. Each one knows the gradients and nodes of all rows, and
 * grows the whole tree; a level's best splits, and where rows go, are told by those who own the
 * features.
 */
#include "tests/support/reference_builder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/quantise.h"
#include "gpu_exact/device.h"
#include "tests/support/gather.h"
#include "tests/support/reference_split.h"

namespace gpu_exact {
namespace reference {
class Builder : public TreeBuilder {
 public:
  Builder(CsrView const& rows, Communicator* comm);

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override;
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override;
  [[nodiscard]] bool AnyDeletedRow(GradientPair const*) override {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return 0; }

 private:
  [[nodiscard]] bool Owns(FeatureIdx fidx) const;
  void ChooseRows(GradientView gradients, std::uint8_t const* row_included);
  void CheckRange(GrowParam const& param) const;
  [[nodiscard]] Node MakeRoot() const;
  void Measure(GrowParam const& param, Bounds const& bounds, Node* node, TreeNode* out) const;
  [[nodiscard]] Split FindSplit(GrowParam const& param, Node const& node,
                                std::uint32_t const* open) const;
  [[nodiscard]] std::vector<Split> FindSplits(GrowParam const& param,
                                              std::vector<Node> const& level,
                                              FeatureMask const* mask) const;
  [[nodiscard]] std::vector<std::uint64_t> RowsGoingLeft(std::vector<Node> const& level,
                                                         GrownTree const& tree) const;
  [[nodiscard]] std::vector<Split> Search(GrowParam const& param, std::int32_t depth,
                                          FeaturePolicy* features, std::vector<Node> const& nodes,
                                          GrownTree const& tree) const;
  std::vector<Node> DivideSplit(GrowParam const& param, std::vector<Node>* nodes, GrownTree* tree);
  void GrowByDepth(GrowParam const& param, FeaturePolicy* features, Node root, GrownTree* tree);
  void GrowByLoss(GrowParam const& param, FeaturePolicy* features, Node root, GrownTree* tree);
  std::pair<Node, Node> Divide(GrowParam const& param, Node node,
                               std::vector<std::uint64_t> const& goes_left, GrownTree* tree) const;

  Communicator* comm_;  // nullptr: this worker is alone
  RowIdx n_own_rows_;
  RowIdx n_rows_{0};  // of all workers, as everything below
  RowIdx first_own_row_{0};
  FeatureIdx n_features_;
  std::vector<Column> columns_;  // those not owned are empty
  std::vector<float> density_;
  std::vector<bool> constant_;  // all present values are equal
  std::vector<bool> categorical_;

  std::vector<GradientPair> gpair_;
  std::vector<std::uint8_t> trained_;
  std::vector<NodeIdx> leaf_;
};

/** @brief Whether a bit is set. */
template <typename Word>
bool Bit(Word const* words, std::size_t i) {
  constexpr std::size_t kBits = 8 * sizeof(Word);
  return (words[i / kBits] >> (i % kBits) & 1u) != 0;
}

Builder::Builder(CsrView const& rows, Communicator* comm)
    : comm_{comm && comm->Size() > 1 ? comm : nullptr},
      n_own_rows_{rows.n_rows},
      n_features_{rows.n_features},
      columns_(rows.n_features),
      categorical_(rows.n_features) {
  if (rows.memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  for (FeatureIdx fidx = 0; rows.feature_types != nullptr && fidx < n_features_; ++fidx) {
    categorical_[fidx] = rows.feature_types[fidx] == FeatureType::kCategorical;
  }
  std::vector<EntryIdx> own_sizes;
  for (RowIdx row = 0; row < n_own_rows_; ++row) {
    own_sizes.push_back(rows.offsets[row + 1] - rows.offsets[row]);
  }
  std::size_t first_own_row{0};
  auto const sizes = Gather(comm_, own_sizes.data(), n_own_rows_, &first_own_row);
  auto const entries = Gather(comm_, rows.entries, rows.n_entries);
  n_rows_ = static_cast<RowIdx>(sizes.size());
  first_own_row_ = static_cast<RowIdx>(first_own_row);
  auto entry = entries.cbegin();
  for (RowIdx row = 0; row < n_rows_; ++row) {
    for (EntryIdx i = 0; i < sizes[row]; ++i, ++entry) {
      if (entry->feature >= n_features_) {
        throw std::invalid_argument{"Row " + std::to_string(row) + " has a value of feature " +
                                    std::to_string(entry->feature) + ", but the table has " +
                                    std::to_string(n_features_) + " columns."};
      }
      if (categorical_[entry->feature] && InvalidCategory::Is(entry->value)) {
        throw InvalidCategory{entry->feature, entry->value};
      }
      if (this->Owns(entry->feature)) {
        columns_[entry->feature].push_back({row, entry->value});
      }
    }
  }
  for (auto& column : columns_) {
    std::stable_sort(column.begin(), column.end(),
                     [](auto const& lhs, auto const& rhs) { return lhs.value < rhs.value; });
    auto const n_missing = n_rows_ - column.size();
    density_.push_back(1.0f - static_cast<float>(n_missing) / static_cast<float>(n_rows_));
    constant_.push_back(!column.empty() && column.front().value == column.back().value);
  }
}

bool Builder::Owns(FeatureIdx fidx) const {
  return !comm_ || static_cast<std::int32_t>(fidx % comm_->Size()) == comm_->Rank();
}

void Builder::ChooseRows(GradientView gradients, std::uint8_t const* row_included) {
  if (gradients.memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  std::vector<std::uint8_t> own_trained;
  for (RowIdx row = 0; row < n_own_rows_; ++row) {
    bool const included = !row_included || row_included[row] != 0;
    own_trained.push_back(included && !(gradients.data[row].hess < 0.0f) ? 1 : 0);
  }
  gpair_ = Gather(comm_, gradients.data, n_own_rows_);
  trained_ = Gather(comm_, own_trained.data(), n_own_rows_);
  for (RowIdx row = 0; row < n_rows_; ++row) {
    if (trained_[row] && !(std::isfinite(gpair_[row].grad) && std::isfinite(gpair_[row].hess))) {
      throw NonFiniteGradient{
          "A gradient is NaN or infinite; check labels, weights and objective."};
    }
  }
}

/** @brief Refuse what the kernels refuse, by their own rule: see src/core/quantise.h. */
void Builder::CheckRange(GrowParam const& param) const {
  float max_grad{0.0f};
  float max_hess{0.0f};
  auto const for_each_trained = [&](auto const& fn) {
    for (RowIdx row = 0; row < n_rows_; ++row) {
      if (trained_[row]) {
        fn(gpair_[row]);
      }
    }
  };
  for_each_trained([&](GradientPair const& g) {
    max_grad = std::max(max_grad, std::fabs(g.grad));
    max_hess = std::max(max_hess, g.hess);
  });
  auto quantiser = Quantiser::Make(max_grad, max_hess, n_rows_);
  FixedSum magnitudes{0, 0};
  for_each_trained([&](GradientPair const& g) {
    magnitudes = magnitudes + quantiser.Fixed({std::fabs(g.grad), g.hess});
  });
  quantiser = quantiser.Refined(magnitudes, n_rows_);
  Rounding rounding{};
  for_each_trained([&](GradientPair const& g) { rounding = rounding + quantiser.Rounded(g); });
  if (quantiser.MayChangeSplits(rounding, GainParam{param})) {
    throw GradientRange{"The gradients or hessians of " + std::to_string(rounding.n_few_bits) +
                        " rows are too small beside the largest; check labels and weights for "
                        "outliers."};
  }
}

Node Builder::MakeRoot() const {
  Node root;
  root.columns.resize(n_features_);
  for (RowIdx row = 0; row < n_rows_; ++row) {
    root.rows.push_back(row);
  }
  for (FeatureIdx fidx = 0; fidx < n_features_; ++fidx) {
    std::copy_if(columns_[fidx].cbegin(), columns_[fidx].cend(),
                 std::back_inserter(root.columns[fidx]),
                 [&](auto const& entry) { return trained_[entry.row]; });
  }
  return root;
}

/** @param bounds Those of the parent, as XGBoost has it; the node's own hold for its children. */
void Builder::Measure(GrowParam const& param, Bounds const& bounds, Node* node,
                      TreeNode* out) const {
  for (auto row : node->rows) {
    if (trained_[row]) {
      node->total.Add(gpair_[row]);
    }
  }
  out->weight = Weight(param, node->total, bounds);
  out->sum_grad = node->total.grad;
  out->sum_hess = node->total.hess;
  node->root_gain = Gain(param, node->total, out->weight);
}

Split Builder::FindSplit(GrowParam const& param, Node const& node,
                         std::uint32_t const* open) const {
  auto const direction = param.default_direction;
  Split best;
  for (FeatureIdx fidx = 0; fidx < n_features_; ++fidx) {
    if (!this->Owns(fidx) || (open && !Bit(open, fidx))) {
      continue;
    }
    if (categorical_[fidx]) {
      auto const& all = columns_[fidx];
      auto const n_categories = all.empty() ? 0 : CategoryOf(all.back().value) + 1;
      CategorySearch{param, node, fidx, n_categories, gpair_, &best}.Run();
      continue;
    }
    auto const& column = node.columns[fidx];
    bool const learn_right = direction == DefaultDirection::kLearn &&
                             density_[fidx] < param.opt_dense_col && !constant_[fidx];
    if (direction == DefaultDirection::kRight || learn_right) {
      Scan scan{param, node, fidx, true, &best};
      std::for_each(column.cbegin(), column.cend(),
                    [&](auto const& entry) { scan.Visit(entry.value, gpair_[entry.row]); });
      scan.Finish();
    }
    if (direction != DefaultDirection::kRight) {
      Scan scan{param, node, fidx, false, &best};
      std::for_each(column.crbegin(), column.crend(),
                    [&](auto const& entry) { scan.Visit(entry.value, gpair_[entry.row]); });
      scan.Finish();
    }
  }
  return best;
}

/**
 * @brief The best split of each node, among the features of all workers.
 * @param mask nullptr opens every feature.
 */
std::vector<Split> Builder::FindSplits(GrowParam const& param, std::vector<Node> const& level,
                                       FeatureMask const* mask) const {
  struct Told {  // of a split
    float loss_change;
    FeatureIdx feature;
    float threshold;
    bool default_left;
    std::size_t n_words;  // of its categories
  };
  std::vector<Told> own;
  std::vector<std::uint32_t> own_words;
  for (std::size_t i = 0; i < level.size(); ++i) {
    bool const shared = mask && mask->bits.size() == mask->n_words;
    auto const* open = mask ? mask->bits.data() + (shared ? 0 : i * mask->n_words) : nullptr;
    auto const split = this->FindSplit(param, level[i], open);
    auto const& words = split.categories;
    own.push_back(
        {split.loss_change, split.feature, split.threshold, split.default_left, words.size()});
    own_words.insert(own_words.end(), words.cbegin(), words.cend());
  }
  auto const all = Gather(comm_, own.data(), own.size());
  auto const all_words = Gather(comm_, own_words.data(), own_words.size());
  auto words = all_words.cbegin();
  std::vector<Split> best(level.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& told = all[i];
    best[i % level.size()].Update({told.loss_change,
                                   told.feature,
                                   told.threshold,
                                   told.default_left,
                                   {words, words + told.n_words}});
    words += told.n_words;
  }
  return best;
}

/** @brief A bit a row: whether it goes to the left child of its node, if that was split. */
std::vector<std::uint64_t> Builder::RowsGoingLeft(std::vector<Node> const& level,
                                                  GrownTree const& tree) const {
  std::vector<bool> goes_left(n_rows_);
  for (auto const& node : level) {
    auto const& split = tree[node.nidx];
    if (split.IsLeaf() || !this->Owns(split.feature)) {
      continue;
    }
    for (auto row : node.rows) {
      goes_left[row] = split.default_left;
    }
    for (auto const& entry : columns_[split.feature]) {
      if (leaf_[entry.row] == node.nidx) {
        goes_left[entry.row] = split.categories.empty()
                                   ? entry.value < split.threshold
                                   : !Bit(split.categories.data(), CategoryOf(entry.value));
      }
    }
  }
  std::vector<std::uint64_t> words((n_rows_ + 63) / 64);
  for (RowIdx row = 0; row < n_rows_; ++row) {
    words[row / 64] |= std::uint64_t{goes_left[row]} << (row % 64);
  }
  if (comm_) {  // a row's bit is set by one worker at most: nothing is carried
    comm_->AllReduce(words.data(), words.size());
  }
  return words;
}

std::pair<Node, Node> Builder::Divide(GrowParam const& param, Node node,
                                      std::vector<std::uint64_t> const& goes_left,
                                      GrownTree* tree) const {
  auto const& split = (*tree)[node.nidx];
  Node left;
  Node right;
  left.nidx = split.left;
  right.nidx = split.right;
  left.columns.resize(n_features_);
  right.columns.resize(n_features_);

  for (auto row : node.rows) {
    (Bit(goes_left.data(), row) ? left : right).rows.push_back(row);
  }
  for (FeatureIdx fidx = 0; fidx < n_features_; ++fidx) {
    for (auto const& entry : node.columns[fidx]) {
      auto& child = Bit(goes_left.data(), entry.row) ? left : right;
      child.columns[fidx].push_back(entry);
    }
  }
  this->Measure(param, node.bounds, &left, &(*tree)[left.nidx]);
  this->Measure(param, node.bounds, &right, &(*tree)[right.nidx]);

  left.bounds = right.bounds = node.bounds;
  auto const& monotone = param.monotone_constraints;
  auto const sign = split.feature < monotone.size() ? monotone[split.feature] : 0;
  float const middle = ((*tree)[left.nidx].weight + (*tree)[right.nidx].weight) / 2.0f;
  if (sign != 0) {
    (sign < 0 ? left : right).bounds.lower = middle;
    (sign < 0 ? right : left).bounds.upper = middle;
  }
  return {std::move(left), std::move(right)};
}

/** @brief Whether the tree may have another leaf; one of n nodes has (n + 1) / 2. */
bool HasRoom(GrowParam const& param, GrownTree const& tree) {
  return param.max_leaves == 0 ||
         (tree.size() + 1) / 2 < static_cast<std::size_t>(param.max_leaves);
}

/** @brief Whether a split gains enough, and the node has not all rows of its parent, as with a threshold
 *         that was rounded: without a limit of depth it would be split so again and again. */
bool IsWorthIt(GrowParam const& param, Split const& split, NodeIdx nidx, GrownTree const& tree) {
  if (!(split.loss_change > kEps) || split.loss_change < param.min_split_loss) {
    return false;
  }
  auto const parent = tree[nidx].parent;
  return param.max_depth != 0 || parent == kNoNode ||
         (tree[tree[parent].left].sum_hess > 0.0 && tree[tree[parent].right].sum_hess > 0.0);
}

bool MayBeDeeper(GrowParam const& param, std::int32_t depth) {
  return param.max_depth == 0 || depth < param.max_depth;
}

/** @brief The children are the next two nodes. */
void MakeSplit(Split const& split, NodeIdx nidx, GrownTree* tree) {
  auto const left = static_cast<NodeIdx>(tree->size());
  tree->resize(tree->size() + 2);
  (*tree)[left].parent = (*tree)[left + 1].parent = nidx;
  auto& node = (*tree)[nidx];
  node.feature = split.feature;
  node.threshold = split.threshold;
  node.default_left = split.default_left;
  node.categories = split.categories;
  node.left = left;
  node.right = left + 1;
}

/** @brief The best splits of nodes of one depth. */
std::vector<Split> Builder::Search(GrowParam const& param, std::int32_t depth,
                                   FeaturePolicy* features, std::vector<Node> const& nodes,
                                   GrownTree const& tree) const {
  std::vector<LiveNode> open;
  for (auto const& node : nodes) {
    auto const parent = tree[node.nidx].parent;
    open.push_back({node.nidx, parent, parent == kNoNode ? 0 : tree[parent].feature});
  }
  FeatureMask mask;
  bool const masked = features && features->Select(depth, open, &mask);
  return this->FindSplits(param, nodes, masked ? &mask : nullptr);
}

/** @return The children of those nodes that are split, with their rows. */
std::vector<Node> Builder::DivideSplit(GrowParam const& param, std::vector<Node>* nodes,
                                       GrownTree* tree) {
  auto const goes_left = this->RowsGoingLeft(*nodes, *tree);
  std::vector<Node> children;
  for (auto& node : *nodes) {
    if ((*tree)[node.nidx].IsLeaf()) {
      continue;
    }
    auto pair = this->Divide(param, std::move(node), goes_left, tree);
    children.push_back(std::move(pair.first));
    children.push_back(std::move(pair.second));
  }
  for (auto const& child : children) {
    for (auto row : child.rows) {
      leaf_[row] = child.nidx;
    }
  }
  return children;
}

void Builder::GrowByDepth(GrowParam const& param, FeaturePolicy* features, Node root,
                          GrownTree* tree) {
  std::vector<Node> level;
  level.push_back(std::move(root));
  for (std::int32_t depth = 0; !level.empty() && MayBeDeeper(param, depth) && HasRoom(param, *tree);
       ++depth) {
    auto const best = this->Search(param, depth, features, level, *tree);
    for (std::size_t i = 0; i < level.size(); ++i) {
      auto const nidx = level[i].nidx;
      (*tree)[nidx].loss_change = best[i].loss_change;
      if (IsWorthIt(param, best[i], nidx, *tree) && HasRoom(param, *tree)) {
        MakeSplit(best[i], nidx, tree);
      }
    }
    level = this->DivideSplit(param, &level, tree);
  }
}

/** @brief One split after the other, as XGBoost's `hist` makes them. */
void Builder::GrowByLoss(GrowParam const& param, FeaturePolicy* features, Node root,
                         GrownTree* tree) {
  struct Leaf {
    Node node;
    Split best;
    std::int32_t depth;
  };
  std::vector<Leaf> leaves;  // ascending by id
  std::vector<Node> nodes;   // to be searched
  nodes.push_back(std::move(root));
  for (std::int32_t depth = 0;;) {
    if (MayBeDeeper(param, depth) && HasRoom(param, *tree)) {
      auto const best = this->Search(param, depth, features, nodes, *tree);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (IsWorthIt(param, best[i], nodes[i].nidx, *tree)) {
          leaves.push_back({std::move(nodes[i]), best[i], depth});
        }
      }
    }
    if (leaves.empty() || !HasRoom(param, *tree)) {
      return;
    }
    auto const next = std::max_element(  // the first of equals
        leaves.begin(), leaves.end(), [](auto const& lhs, auto const& rhs) {
          return lhs.best.loss_change < rhs.best.loss_change;
        });
    auto const nidx = next->node.nidx;
    (*tree)[nidx].loss_change = next->best.loss_change;
    MakeSplit(next->best, nidx, tree);
    depth = next->depth + 1;
    nodes.clear();
    nodes.push_back(std::move(next->node));
    leaves.erase(next);
    nodes = this->DivideSplit(param, &nodes, tree);
  }
}

GrownTree Builder::Build(GrowParam const& param, GradientView gradients,
                         std::uint8_t const* row_included, FeaturePolicy* features) {
  this->ChooseRows(gradients, row_included);
  this->CheckRange(param);
  GrownTree tree(1);
  auto root = this->MakeRoot();
  root.bounds = Bounds::OfRoot(param);
  // By the old rules the root's own weight knows no bounds.
  bool const old = param.gain_rules == GainRules::kOld;
  this->Measure(param, old ? Bounds{} : root.bounds, &root, &tree.front());
  leaf_.assign(n_rows_, kRoot);
  if (param.grow_policy == GrowPolicy::kLossGuide) {
    this->GrowByLoss(param, features, std::move(root), &tree);
  } else {
    this->GrowByDepth(param, features, std::move(root), &tree);
  }
  return tree;
}

void Builder::WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                             NodeIdx* out_positions) {
  if (memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder writes host memory only."};
  }
  for (RowIdx i = 0; i < n_own_rows_; ++i) {
    auto const row = first_own_row_ + i;
    auto const leaf = remap.empty() ? leaf_[row] : remap[leaf_[row]];
    out_positions[i] = EncodePosition(leaf, trained_[row] != 0);
  }
}
}  // namespace reference

std::unique_ptr<TreeBuilder> MakeReferenceBuilder(CsrView const& rows, Communicator* comm) {
  return std::make_unique<reference::Builder>(rows, comm);
}
}  // namespace gpu_exact
