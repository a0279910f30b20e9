/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief One block searches one tile of entries for splits: a segmented scan of gradients, then the
 *        gain before every entry. Shallow and deep levels differ only in how a tile is loaded and
 *        in what is carried into it.
 *
 * A segment is a run of entries of one node and one feature, ascending by value.
 */
#pragma once

#include <cub/block/block_scan.cuh>

#include "src/device/level_ref.cuh"

namespace gpu_exact {
inline constexpr int kTileThreads = 256;
inline constexpr Bucket kNoBucket = 0xffffffffu;

/**
 * @brief A tile in shared memory, segment after segment; every 32nd word is skipped.
 * @tparam kItems Entries a thread.
 */
template <int kItems>
struct TileEntries {
  static constexpr int kSize = kTileThreads * kItems;
  static constexpr int kPadded = kSize + kSize / 32;

  ValueId value[kPadded];
  GradientPair gpair[kPadded];
  Bucket bucket[kPadded];

  /** @brief Where item i lies: blocked reads of 4 or 8 items a thread meet no bank conflict. */
  __device__ static int At(int i) { return i + i / 32; }

  __device__ void Put(int i, Entry const& e, Bucket b) {
    value[At(i)] = e.value;
    gpair[At(i)] = e.gpair;
    bucket[At(i)] = b;
  }
};

/** @brief The feature of a value id, remembered while ids of one thread go up. */
class FeatureCursor {
 public:
  __device__ explicit FeatureCursor(ColumnsRef const& columns) : columns_{columns} {}

  __device__ void MoveTo(std::uint64_t value) {
    if (value < range_.first || value >= range_.last) {
      feature_ = columns_.FeatureOf(value);
      range_ = columns_.Values(feature_);
    }
  }
  [[nodiscard]] __device__ FeatureIdx Feature() const { return feature_; }
  [[nodiscard]] __device__ ValueRange Range() const { return range_; }

 private:
  ColumnsRef const& columns_;
  FeatureIdx feature_{0};
  ValueRange range_{0, 0};
};

/** @brief Sum since the last segment head, and how many heads there were. Associative. */
struct SegmentSum {
  FixedSum sum;
  std::uint32_t heads;
};
struct SegmentSumOp {
  __device__ SegmentSum operator()(SegmentSum const& a, SegmentSum const& b) const {
    return {b.heads != 0 ? b.sum : a.sum + b.sum, a.heads + b.heads};
  }
};

/** @brief A segment's part outside the tile. */
struct SegmentCarry {
  FixedSum before;     // of its entries in earlier tiles
  FixedSum present;    // of all its entries
  ValueId last_value;  // of its last entry in an earlier tile
  bool continues;      // it has entries in earlier tiles
  bool ends;           // its last entry lies in this tile
};

/**
 * @tparam kItems       Entries a thread.
 * @tparam kMaxSegments Segments that a tile can hold.
 */
template <int kItems, int kMaxSegments = kTileThreads* kItems>
class SplitAgent {
  using Tile = TileEntries<kItems>;
  using BlockScan = cub::BlockScan<SegmentSum, kTileThreads>;

 public:
  struct TempStorage {
    typename BlockScan::TempStorage scan;
    FixedSum segment_sum[kMaxSegments];  // of the entries of a segment that lie in this tile
    std::uint32_t n_segments;
  };

  __device__ SplitAgent(TempStorage* temp, LevelRef const& level, Tile const& tile, int n)
      : temp_{*temp}, level_{level}, tile_{tile}, n_{n} {}

  /**
   * @brief Offer the tile's candidates. All threads of the block; the tile is written and synced.
   * @param carry carry(segment, bucket, segment_sum) -> SegmentCarry; segments count from 0.
   */
  template <typename CarryFn>
  __device__ void Search(CarryFn&& carry) {
    SegmentSum prefix = this->ScanSegments();
    __syncthreads();  // segment sums are written
    std::uint32_t segment = prefix.heads - 1;
    FixedSum before = prefix.sum;
    FixedSum total{0, 0};
    FixedSum present{0, 0};
    FeatureCursor cursor{level_.columns};
    Bucket bucket{kNoBucket};
    ValueId last{0};
    bool has_last{false};
    bool allowed{false};
    float bar{0.0f};
    std::uint64_t best{0};
    auto keep = [&](std::uint64_t key) {
      if (key > best) {
        best = key;
        bar =
            fmaxf(bar, level_.bound.Bar(CandidateKey::LossChange(key), level_.nodes[bucket].gain));
      }
    };
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= n_mine_) {
        break;
      }
      int i = begin_ + k;
      bool head = (heads_ >> k & 1u) != 0;
      if (head || k == 0) {
        cursor.MoveTo(value_[k]);
        if (head) {
          ++segment;
          before = {0, 0};
        }
        Bucket b = tile_.bucket[Tile::At(i)];
        if (b != bucket) {
          this->Flush(bucket, &best);
          bucket = b;
          total = level_.nodes[b].sum;
          bar = level_.Bar(b);
        }
        SegmentCarry outside = carry(segment, b, temp_.segment_sum[segment]);
        before = before + outside.before;
        present = outside.present;
        allowed = level_.Allowed(b, cursor.Feature());
        has_last = !head || outside.continues;
        last = head ? outside.last_value : tile_.value[Tile::At(i - 1)];
        if (head && outside.ends && allowed && !(present == total)) {
          keep(level_.PresentKey(level_.nodes[b], cursor.Feature(), cursor.Range(), present));
        }
      }
      if (has_last && last != value_[k] && allowed &&
          level_.MayReach(bar, total, before, present)) {
        keep(level_.BoundaryKey(level_.nodes[bucket], cursor.Feature(), cursor.Range(), value_[k],
                                before, present));
      }
      before = before + level_.quantiser.Fixed(gpair_[k]);
      last = value_[k];
      has_last = true;
    }
    this->Flush(bucket, &best);
  }

  /** @brief Number of segments in the tile; for carry functions. */
  [[nodiscard]] __device__ std::uint32_t NumSegments() const { return temp_.n_segments; }

 private:
  /** @brief Reads the thread's items, writes segment sums; the sum and head count before them. */
  __device__ SegmentSum ScanSegments() {
    begin_ = static_cast<int>(threadIdx.x) * kItems;
    n_mine_ = min(kItems, n_ - begin_);
    heads_ = 0;
    SegmentSum local{{0, 0}, 0};
    FeatureCursor cursor{level_.columns};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= n_mine_) {
        break;
      }
      int at = Tile::At(begin_ + k);
      value_[k] = tile_.value[at];
      gpair_[k] = tile_.gpair[at];
      cursor.MoveTo(value_[k]);
      bool head{true};
      if (begin_ + k != 0) {
        int before = Tile::At(begin_ + k - 1);
        head =
            tile_.bucket[before] != tile_.bucket[at] || tile_.value[before] < cursor.Range().first;
      }
      heads_ |= static_cast<std::uint32_t>(head) << k;
      FixedSum g = level_.quantiser.Fixed(gpair_[k]);
      local = {head ? g : local.sum + g, local.heads + head};
    }
    SegmentSum prefix, total;
    BlockScan{temp_.scan}.ExclusiveScan(local, prefix, SegmentSum{{0, 0}, 0}, SegmentSumOp{},
                                        total);
    if (heads_ != 0) {
      this->WriteClosedSegments(prefix);
    }
    if (threadIdx.x == 0) {
      temp_.n_segments = total.heads;
      if (total.heads != 0) {
        temp_.segment_sum[total.heads - 1] = total.sum;
      }
    }
    return prefix;
  }

  /** @brief Writes the sum of every segment that ends before one of the thread's heads. */
  __device__ void WriteClosedSegments(SegmentSum running) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < n_mine_) {
        if ((heads_ >> k & 1u) != 0) {
          if (running.heads != 0) {
            temp_.segment_sum[running.heads - 1] = running.sum;
          }
          running = {{0, 0}, running.heads + 1};
        }
        running.sum = running.sum + level_.quantiser.Fixed(gpair_[k]);
      }
    }
  }

  __device__ void Flush(Bucket bucket, std::uint64_t* key) const {
    if (*key != 0) {
      level_.Offer(bucket, *key);
      *key = 0;
    }
  }

  TempStorage& temp_;
  LevelRef const& level_;
  Tile const& tile_;
  int n_;
  // The thread's items.
  int begin_;
  int n_mine_;
  std::uint32_t heads_;  // bit k: item k begins a segment within this tile
  ValueId value_[kItems];
  GradientPair gpair_[kItems];
};
}  // namespace gpu_exact
