/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A level over a table as split finders see it.
 */
#pragma once

#include <vector>

#include "device/level/node_states.cuh"
#include "tests/device/device_arrays.cuh"

namespace gpu_exact {
/** @brief Owns what it lends to a level; the test adds nodes, best candidates and a mask. */
struct LevelProblem {
  LevelRef lv{};

  /** @brief For gradients of MakeGradients(). */
  LevelProblem(ColumnsRef const& columns, GrowParam const& param, LevelNode n_nodes)
      : monotone_{ToDevice(param.monotone_constraints)} {
    lv.columns = columns;
    lv.gain = GainParam{param};
    lv.quantiser = Quantiser::Make(4.0f, 2.0f, columns.n_rows);
    lv.bound = GainBound::Make(lv.gain, lv.quantiser);
    lv.n_nodes = n_nodes;
    lv.max_cat_threshold = static_cast<std::uint32_t>(param.max_cat_threshold);
    lv.rules = rules_.Reserve(columns.n_features);
    Level root;
    root.ref = lv;
    root.ref.best = root.best.Reserve(1);
    ZeroAsync(root.states.Reserve(1), 1);
    CompleteRoot(param, param.monotone_constraints.empty() ? nullptr : monotone_.Data(), 0,
                 rules_.Data(), &root);
  }

  void SetNodes(std::vector<NodeState> const& nodes) {
    nodes_ = ToDevice(nodes);
    lv.nodes = nodes_.Data();
  }

 private:
  DeviceBuffer<std::int32_t> monotone_;
  DeviceBuffer<FeatureRule> rules_{"rules"};
  DeviceBuffer<NodeState> nodes_{"nodes"};
};
}  // namespace gpu_exact
