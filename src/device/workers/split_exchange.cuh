/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Exchanges what workers with some of the columns each find on a level: how much a split
 *        must gain, the best splits of its nodes, which rows go left.
 *
 * What comes is right if DeviceCommunicator::Check() says so once the stream has been waited for.
 *
 * All know all rows, so that every worker moves all of them. Only the worker of a node's split
 * feature can say which rows go left. Where each has bits for its own best split anyway, these come
 * with it, and of each node those of the best one count; else who has it sets them a call later, and
 * the others set none. Bits are in the order of the table: workers may have a node's rows in different ones.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/level/level_ref.cuh"
#include "device/workers/column_partition.cuh"

namespace gpu_exact {
/** @brief Lends to kernels which rows go left, as the workers have told it. */
struct LeftRowsRef {
  std::uint32_t const* words{nullptr};    // of the first worker, one bit a row; nullptr: not told
  std::uint64_t stride{0};                // from one worker's words to the next one's
  std::uint32_t const* winners{nullptr};  // SplitExchange::Winners()

  /** @brief Give the bits of the rows of a node that some worker splits. */
  [[nodiscard]] __device__ std::uint32_t const* Of(LevelNode b) const {
    return words + winners[b] * stride;
  }
};

struct SplitMessages;

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

  /** @brief Give room for one bit a row, all of them 0, to tell by ShareBest() which rows the own splits
   *         send left. */
  [[nodiscard]] std::uint32_t* LeftRows(LevelNode n_nodes);
  /**
   * @brief Turn the best splits of the own columns into the best of all: the greatest loss change,
   *        among equals the lowest feature. Collective.
   * @param results   shape: (n_nodes)
   * @param with_rows Tell LeftRows() in the same call.
   * @return Which rows go left, until the next call, if they were told.
   */
  LeftRowsRef ShareBest(LevelResult* results, LevelNode n_nodes, bool with_rows = false);
  /** @brief Tell by node, of the last ShareBest(), which worker has the split's feature; kNobody: there is no
   *         split. */
  [[nodiscard]] std::uint32_t const* Winners() const { return winners_.Data(); }
  static constexpr std::uint32_t kNobody = 0xffffffffu;

  /** @brief Give room for the own bits, to be written: shape (n_words). */
  [[nodiscard]] std::uint32_t* OwnWords(std::uint64_t n_words);
  /** @brief Join all workers' bits, of which at most one worker sets each. Collective. */
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
  /** @brief Lay out what workers tell of a level: each its splits, then its bits. */
  [[nodiscard]] SplitMessages Messages(LevelNode n_nodes, bool with_rows);

  ColumnPartition const& partition_;
  DeviceBuffer<float> gains_to_beat_{"loss changes of workers"};  // shape: (n_workers, n_nodes)
  DeviceBuffer<std::uint32_t> winners_{"workers with the best splits"};
  DeviceBuffer<std::uint32_t> words_{"rows that go left, of workers"};  // shape: (n_workers, n)
};

/**
 * @brief Find the column that a node is split on; kRemoteColumn where another worker has it, or where
 *        the node is a leaf.
 * @param exchange nullptr: all columns are here.
 */
[[nodiscard]] ColumnIdx ColumnOf(NodeSplit const& split, SplitExchange const* exchange);
}  // namespace gpu_exact
