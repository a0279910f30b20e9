/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Exchanges what workers with some of the columns each find on a level: how much a split
 *        must gain, the best splits of its nodes, which rows go left.
 *
 * What comes is right if DeviceCommunicator::Check() says so once the stream has been waited for.
 *
 * All know all rows, so that every worker moves all of them. Only the worker of a node's split
 * feature can say which rows go left. Where each has bits for its own best split anyway, these come
 * with it, and of each node those of the best one count; else who has it sets them a call later, and
 * the others set none.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/level/level_ref.cuh"
#include "device/level/rank_bit_vector.cuh"
#include "device/level/rows_ref.cuh"
#include "device/workers/column_partition.cuh"

namespace gpu_exact {
class SplitExchange {
 public:
  /** @param partition Outlives this. */
  explicit SplitExchange(ColumnPartition const& partition);

  /**
   * @brief Raise the gain that a candidate must reach to the best that any worker has found.
   *        Collective.
   * @param best CandidateKey, shape: (n_nodes). Nodes that another worker has a better candidate
   *             of get its CandidateKey::GainToBeat().
   */
  void ShareBestGains(std::uint64_t* best, LevelNode n_nodes);

  /**
   * @brief Turn the best splits of the own columns into the best of all: the greatest loss change,
   *        among equals the lowest feature. Collective.
   * @param results shape: (n_nodes)
   */
  void ShareBest(LevelResult* results, LevelNode n_nodes);
  /** @brief Tell by node, of the last ShareBest(): 1 where the split's feature is own. */
  [[nodiscard]] std::uint8_t const* IsOwn() const { return is_own_.Data(); }

  /**
   * @brief ShareBest(), and tell which rows go left in the same call. Collective.
   * @param results   shape: (n_nodes)
   * @param goes_left One bit a slot and one slot more: by the own splits before, by the best of all
   *                  afterwards, none of nodes without one.
   */
  void ShareSplits(RowsRef const& rows, RowIdx n_slots, LevelResult* results, LevelNode n_nodes,
                   RankBitVectorRef goes_left);

  /** @brief Give room for the own bits, to be written: shape (n_words). */
  [[nodiscard]] std::uint32_t* OwnWords(std::uint64_t n_words);
  /** @brief Join all workers' bits, of which at most one worker sets each. Collective. */
  void JoinWords(std::uint64_t n_words, RankBitVectorRef out);
  /** @brief Join them to words without counts. Collective. */
  void JoinWords(std::uint64_t n_words, std::uint32_t* out);

  /** @brief Turn masks of all features into masks of the own columns. Does not wait. */
  void SelectOwn(std::uint32_t const* masks, std::size_t n_words, std::uint64_t n_masks,
                 std::uint32_t* out);
  [[nodiscard]] GPU_EXACT_HD static std::size_t MaskWords(FeatureIdx n_columns) {
    return (std::size_t{n_columns} + 31) / 32;
  }

  [[nodiscard]] ColumnPartition const& Columns() const { return partition_; }

 private:
  /** @brief Divide into parts of n units each. */
  [[nodiscard]] Parts Equal(std::uint64_t n, std::size_t unit) const;
  /** @brief Bring all workers' OwnWords() here. */
  void GatherWords(std::uint64_t n_words);

  ColumnPartition const& partition_;
  DeviceBuffer<Split> splits_{"best splits of workers"};          // shape: (n_workers, n_nodes)
  DeviceBuffer<float> gains_to_beat_{"loss changes of workers"};  // the same
  DeviceBuffer<std::uint8_t> is_own_{"nodes split on own columns"};
  // shape: (n_workers, n); of ShareSplits() each begins with the splits
  DeviceBuffer<std::uint32_t> words_{"rows that go left, of workers"};
};

/**
 * @brief Find the column that a node is split on; kRemoteColumn where another worker has it, or where
 *        the node is a leaf.
 * @param exchange nullptr: all columns are here.
 */
[[nodiscard]] ColumnIdx ColumnOf(NodeSplit const& split, SplitExchange const* exchange);
}  // namespace gpu_exact
