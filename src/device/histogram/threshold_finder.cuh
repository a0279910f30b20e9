/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Turns the best candidate of each node into its split: the values beside it, the threshold.
 *
 * A candidate lies beside a value with weight: right after it in a forward scan, right before it in
 * a backward scan. That value is the bin's, or, of a bin that is a range, the one that the refiner
 * has found. The value on the other side is the nearest one that any row of the node has.
 *
 * Which side a row is on its bin tells, but for rows in the candidate's own. Where values are the
 * host's, only those rows' values are read, and those of the node's next bin.
 *
 * A split by categories has a set and no threshold: nothing is to be found, rows go by the set.
 */
#pragma once

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/histogram/category_sets.cuh"
#include "device/level/level_ref.cuh"
#include "device/level/rank_bit_vector.cuh"
#include "device/runtime/stream_event.cuh"

namespace gpu_exact {
/** @brief Lends candidates inside of ranges to kernels. */
struct RefinedCandidates {
  FoundCandidate const* found;  // shape: (n_nodes, n_columns); nullptr: no bin is a range
  std::uint32_t n_columns;      // of the resolution; 0: one for all, shape (n_nodes)
};

/** @brief Tells where a node's best split lies. */
struct alignas(16) NodeThreshold {
  FeatureIdx feature;       // kNoFeature: there is no candidate
  ScanDirection direction;  // backward: missing values go left
  bool by_categories;       // rows go by the node's set: scanned and threshold are of no meaning
  bool reroutes;            // the threshold says otherwise than the candidate: rows go by it
  bool padding;             // written, so that a word can be read whole
  std::uint32_t scanned;    // ScanValue that the candidate lies beside
  std::uint32_t next;       // the next one of the node, or kNone
  float threshold;          // where it reroutes; NaN past a last value that is infinite
  // Where values are the host's, in the order of the scan:
  std::uint32_t bin;       // of the finest resolution, that has the value scanned last
  std::uint32_t next_bin;  // the node's next one, or kNone
  std::uint32_t beyond;    // the first value in the next bin, or kNone

  /** @brief Number a bin of the feature in the order of the scan. */
  [[nodiscard]] __device__ std::uint32_t InOrder(int of_column) const {
    auto const b = static_cast<std::uint32_t>(of_column);
    return direction == ScanDirection::kForward ? b : ScanValue::kNone - 1 - b;
  }
};

class ThresholdFinder {
 public:
  /**
   * @brief Read the best candidates of some nodes of a level: in any order, each once. Does not wait.
   * @param level      Its columns are those of the nodes' resolution.
   * @param refined    The best candidate of a node, if it is inside of a range; others are of no
   *                   meaning.
   */
  void Read(LevelRef const& level, BinMatrixRef const& binned, SearchedNode const* nodes,
            LevelNode n_nodes, RefinedCandidates const& refined);
  /**
   * @brief Write the level's results. Does not wait.
   * @param out Device memory or page-locked memory.
   * @param out_goes_left Which rows go left, as if every node with a candidate were split.
   * @param sets Of the nodes.
   */
  void Resolve(LevelRef const& level, BinnedTableRef const& table, RowsRef const& rows,
               RowIdx n_slots, RankBitVectorRef const& out_goes_left, LevelResult* out,
               LevelSetsRef const& sets = {});
  /**
   * @brief Write them in the order of the rows, of at most kMostByRow nodes: neighbouring rows have
   *        values and positions side by side, whatever their nodes.
   * @param out_left_of_row A bit for each row of the table.
   */
  void ResolveByRow(LevelRef const& level, BinnedTableRef const& table, RowsRef const& rows,
                    std::uint32_t* out_left_of_row, LevelResult* out,
                    LevelSetsRef const& sets = {});
  /** @brief Waits for the last results, not for the rows that go left. */
  void Await() const { resolved_.Await(); }

 private:
  DeviceBuffer<NodeThreshold> points_{"best splits to resolve"};
  DeviceBuffer<std::uint32_t> n_rerouted_{"splits that reroute"};
  StreamEvent resolved_;
};
}  // namespace gpu_exact
