/**
 * Copyright 2026, the gpu_exact contributors
 *
 * Every open node keeps its rows and, for each feature, its entries in the order of values; to
 * split it is to hand both out to its children. O(entries) work and memory a level.
 */
#include "tests/support/reference_builder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gpu_exact/device.h"
#include "tests/support/reference_split.h"

namespace gpu_exact {
namespace reference {
class Builder : public TreeBuilder {
 public:
  explicit Builder(CsrView const& table);

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override;
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override;
  [[nodiscard]] bool AnyDeletedRow(GradientPair const*) override {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return 0; }

 private:
  void ChooseRows(GradientView gradients, std::uint8_t const* row_included);
  void CheckRange() const;
  [[nodiscard]] Node MakeRoot() const;
  void Measure(GrowParam const& param, Bounds const& bounds, Node* node, TreeNode* out) const;
  [[nodiscard]] Split FindSplit(GrowParam const& param, Node const& node,
                                std::uint32_t const* open) const;
  std::vector<Node> SplitLevel(GrowParam const& param, std::int32_t depth, FeaturePolicy* features,
                               std::vector<Node>* level, GrownTree* tree);
  std::pair<Node, Node> Divide(GrowParam const& param, Node node, GrownTree* tree);

  RowIdx n_rows_;
  FeatureIdx n_features_;
  std::vector<Column> columns_;  // of the whole table
  std::vector<float> density_;
  std::vector<bool> constant_;  // all present values are equal

  GradientPair const* gpair_{nullptr};
  std::vector<bool> trained_;
  std::vector<NodeIdx> leaf_;
};

Builder::Builder(CsrView const& table)
    : n_rows_{table.n_rows}, n_features_{table.n_features}, columns_(table.n_features) {
  if (table.memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  for (RowIdx row = 0; row < n_rows_; ++row) {
    for (auto i = table.offsets[row]; i < table.offsets[row + 1]; ++i) {
      columns_.at(table.entries[i].feature).push_back({row, table.entries[i].value});
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

void Builder::ChooseRows(GradientView gradients, std::uint8_t const* row_included) {
  if (gradients.memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder reads host memory only."};
  }
  gpair_ = gradients.data;
  trained_.assign(n_rows_, false);
  for (RowIdx row = 0; row < n_rows_; ++row) {
    trained_[row] = (!row_included || row_included[row] != 0) && !(gpair_[row].hess < 0.0f);
    if (trained_[row] && !(std::isfinite(gpair_[row].grad) && std::isfinite(gpair_[row].hess))) {
      throw NonFiniteGradient{
          "A gradient is NaN or infinite; check labels, weights and objective."};
    }
  }
  this->CheckRange();
}

/** @brief Refuses what 61 bits for the sum of magnitudes leave less than 10 bits of. */
void Builder::CheckRange() const {
  double sum{0.0};
  for (RowIdx row = 0; row < n_rows_; ++row) {
    sum += trained_[row] ? std::fabs(gpair_[row].grad) : 0.0;
  }
  RowIdx n_small{0};
  for (RowIdx row = 0; row < n_rows_; ++row) {
    double const grad = std::fabs(gpair_[row].grad);
    n_small += trained_[row] && grad != 0.0 && grad < std::ldexp(sum, -51) ? 1 : 0;
  }
  if (sum > std::ldexp(1.0, 27) && n_small > n_rows_ / 16) {
    throw GradientRange{"Gradients are too far apart; check labels and weights for outliers."};
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
    if (open && (open[fidx / 32] >> (fidx % 32) & 1u) == 0) {
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

std::pair<Node, Node> Builder::Divide(GrowParam const& param, Node node, GrownTree* tree) {
  auto const& split = (*tree)[node.nidx];
  Node left;
  Node right;
  left.nidx = split.left;
  right.nidx = split.right;
  left.columns.resize(n_features_);
  right.columns.resize(n_features_);

  std::vector<bool> goes_left(n_rows_, split.default_left);
  for (auto const& entry : columns_[split.feature]) {
    goes_left[entry.row] = entry.value < split.threshold;
  }
  for (auto row : node.rows) {
    (goes_left[row] ? left : right).rows.push_back(row);
  }
  for (FeatureIdx fidx = 0; fidx < n_features_; ++fidx) {
    for (auto const& entry : node.columns[fidx]) {
      (goes_left[entry.row] ? left : right).columns[fidx].push_back(entry);
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

/** @return The next level. */
std::vector<Node> Builder::SplitLevel(GrowParam const& param, std::int32_t depth,
                                      FeaturePolicy* features, std::vector<Node>* level,
                                      GrownTree* tree) {
  std::vector<OpenNode> open;
  for (auto const& node : *level) {
    auto const parent = (*tree)[node.nidx].parent;
    open.push_back({node.nidx, parent, parent == kNoNode ? 0 : (*tree)[parent].feature});
  }
  FeatureMask mask;
  bool const masked = features && features->Select(depth, open, &mask);
  bool const shared = mask.bits.size() == mask.n_words;

  std::vector<Node> next;
  for (std::size_t i = 0; i < level->size(); ++i) {
    auto& node = (*level)[i];
    auto const* bits = masked ? mask.bits.data() + (shared ? 0 : i * mask.n_words) : nullptr;
    auto const best = this->FindSplit(param, node, bits);
    auto const nidx = node.nidx;
    (*tree)[nidx].loss_change = best.loss_change;
    if (!(best.loss_change > kEps) || !HasRoom(param, *tree)) {
      continue;
    }
    (*tree)[nidx].feature = best.feature;
    (*tree)[nidx].threshold = best.threshold;
    (*tree)[nidx].default_left = best.default_left;
    (*tree)[nidx].left = static_cast<NodeIdx>(tree->size());
    (*tree)[nidx].right = static_cast<NodeIdx>(tree->size() + 1);
    tree->resize(tree->size() + 2);
    (*tree)[(*tree)[nidx].left].parent = (*tree)[(*tree)[nidx].right].parent = nidx;
    auto children = this->Divide(param, std::move(node), tree);
    next.push_back(std::move(children.first));
    next.push_back(std::move(children.second));
  }
  return next;
}

GrownTree Builder::Build(GrowParam const& param, GradientView gradients,
                         std::uint8_t const* row_included, FeaturePolicy* features) {
  this->ChooseRows(gradients, row_included);
  GrownTree tree(1);
  std::vector<Node> level;
  level.push_back(this->MakeRoot());
  this->Measure(param, {}, &level.front(), &tree.front());

  leaf_.assign(n_rows_, kRoot);
  for (std::int32_t depth = 0; !level.empty(); ++depth) {
    for (auto const& node : level) {
      for (auto row : node.rows) {
        leaf_[row] = node.nidx;
      }
    }
    if ((param.max_depth != 0 && depth == param.max_depth) || !HasRoom(param, tree)) {
      break;
    }
    level = this->SplitLevel(param, depth, features, &level, &tree);
  }
  return tree;
}

void Builder::WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                             NodeIdx* out_positions) {
  if (memory != Memory::kHost) {
    throw std::invalid_argument{"The reference builder writes host memory only."};
  }
  for (RowIdx row = 0; row < n_rows_; ++row) {
    auto const leaf = remap.empty() ? leaf_[row] : remap[leaf_[row]];
    out_positions[row] = EncodePosition(leaf, trained_[row]);
  }
}
}  // namespace reference

std::unique_ptr<TreeBuilder> MakeReferenceBuilder(CsrView const& table) {
  return std::make_unique<reference::Builder>(table);
}
}  // namespace gpu_exact
