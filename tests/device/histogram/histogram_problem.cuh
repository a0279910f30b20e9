/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A binned table and the levels of random trees over it, as the parts of
 * the histogram strategy see them; and every candidate tried one by one.
 */
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/histogram_finder.cuh"
#include "device/histogram/ranges/range_refiner.cuh"
#include "device/histogram/rows/threshold_finder.cuh"
#include "tests/device/histogram/quantile_cuts_problem.cuh"
#include "tests/device/level_problem.cuh"

namespace gpu_exact {
/** @brief What candidates lie between: bins, or single values; by feature,
 * ascending. */
struct Pieces {
  std::vector<FeatureIdx> feature;
  std::vector<float> lowest;
  std::vector<std::uint32_t> bin;       // of the resolution
  std::vector<std::uint64_t> offsets;   // shape: (n_features + 1)
  std::vector<std::uint64_t> of_entry;  // of the table's entries

  [[nodiscard]] std::uint64_t Size() const { return bin.size(); }

  static Pieces OfBins(Table const& table, HostBins const& bins) {
    Pieces p;
    p.offsets = bins.offsets;
    p.lowest = bins.lowest;
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      for (auto i = bins.offsets[f]; i < bins.offsets[f + 1]; ++i) {
        p.feature.push_back(f);
        p.bin.push_back(static_cast<std::uint32_t>(i));
      }
    }
    for (CsrEntry const& e : table.entries) {
      p.of_entry.push_back(bins.offsets[e.feature] + bins.BinOf(e.feature, e.value));
    }
    return p;
  }
  static Pieces OfValues(Table const& table, HostBins const& bins) {
    Pieces p;
    p.offsets.push_back(0);
    auto const distinct = FindDistinct(table);
    std::vector<std::map<float, std::uint64_t>> places(table.n_features);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      for (float value : distinct[f]) {
        places[f][value] = p.Size();
        p.feature.push_back(f);
        p.lowest.push_back(value);
        p.bin.push_back(static_cast<std::uint32_t>(bins.offsets[f] + bins.BinOf(f, value)));
      }
      p.offsets.push_back(p.Size());
    }
    for (CsrEntry const& e : table.entries) {
      p.of_entry.push_back(places[e.feature].at(e.value));
    }
    return p;
  }
};

/** @brief One resolution of a table. */
struct TestResolution {
  TestResolution(Table const& table, Resolution const& r)
      : resolution{r},
        matrix{*r.matrix},
        bins{r.bins, table.n_features},
        of_bins{Pieces::OfBins(table, bins)},
        of_values{Pieces::OfValues(table, bins)} {}

  Resolution const& resolution;
  BinMatrix const& matrix;
  HostBins bins;
  Pieces of_bins;
  Pieces of_values;

  /** @brief A pool with room for so many histograms, one at least. */
  [[nodiscard]] HistogramPool MakePool(std::uint64_t n_histograms) const {
    std::uint64_t const n_bins = matrix.Ref().n_bins;
    std::uint64_t const n_bytes = n_histograms * n_bins * HistogramPool::kBinBytes;
    return {n_bytes, n_bytes, n_bins};
  }
};

/** @brief A table, and its resolutions, the finest first. */
class HistogramProblem {
 public:
  HistogramProblem(Table const& table, std::vector<std::uint32_t> const& max_bins,
                   std::uint32_t max_group_bins = 0, bool sorts_columns = false)
      : table_{table}, binned_{table.View(), max_bins, Kept(table, sorts_columns), max_group_bins} {
    for (auto const& r : binned_.Resolutions()) {
      resolutions_.push_back(std::make_unique<TestResolution>(table, *r));
    }
  }

  [[nodiscard]] Table const& Rows() const { return table_; }
  [[nodiscard]] BinnedTableRef Ref() const { return binned_.Ref(); }
  [[nodiscard]] BinnedTable const& Binned() const { return binned_; }
  [[nodiscard]] TestResolution const& At(std::size_t i) const { return *resolutions_.at(i); }

 private:
  /** @brief Of every third table coarser bins are only read where a shift tells most of them. */
  static HistogramMemory Kept(Table const& table, bool sorts_columns) {
    HistogramMemory memory{sorts_columns};
    memory.reads_finest = table.n_rows % 3 != 0;
    return memory;
  }

  Table const& table_;
  BinnedTable binned_;
  std::vector<std::unique_ptr<TestResolution>> resolutions_;
};

/** @brief ScanValue::Make on the host; the two zeros are one. */
inline std::uint32_t ScanValueOf(ScanDirection d, float value) {
  float const scanned = value == 0.0f ? 0.0f : value;
  std::uint32_t bits;
  std::memcpy(&bits, &scanned, sizeof(bits));
  bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return d == ScanDirection::kForward ? bits : ~bits;
}

/** @brief Rows of the nodes of a level. */
using LevelRows = std::vector<std::vector<RowIdx>>;

inline LevelRows MakeRoot(RowIdx n_rows, double left_out, Random* random) {
  LevelRows nodes(1);
  for (RowIdx r = 0; r < n_rows; ++r) {
    if (!random->Chance(left_out)) {
      nodes[0].push_back(r);
    }
  }
  return nodes;
}

/** @brief Most nodes are split, at random. @param out_parents Buckets of those
 * that are. */
inline LevelRows SplitAtRandom(LevelRows const& nodes, std::vector<LevelNode>* out_parents,
                               Random* random) {
  LevelRows children;
  out_parents->clear();
  for (LevelNode b = 0; b < nodes.size(); ++b) {
    if (b != 0 && random->Chance(0.2)) {
      continue;
    }
    double const to_left = random->Pick({0.5, 0.9, 0.02, 1.0});
    out_parents->push_back(b);
    std::vector<RowIdx> left, right;
    for (RowIdx r : nodes[b]) {
      (random->Chance(to_left) ? left : right).push_back(r);
    }
    children.push_back(std::move(left));
    children.push_back(std::move(right));
  }
  return children;
}

/** @brief Multiples of 1/16, many of them without weight. */
inline std::vector<GradientPair> MakeWeights(RowIdx n_rows, double without, Random* random) {
  auto gpair = MakeGradients(n_rows, 0.1, 0.0, random);
  for (auto& g : gpair) {
    if (random->Chance(without)) {
      g = {0.0f, 0.0f};
    }
  }
  return gpair;
}

/** @brief A level in one resolution, with all that it borrows. */
class HistogramLevel {
 public:
  HistogramLevel(TestResolution const& resolution, GrowParam const& param,
                 std::vector<GradientPair> const& gpair, LevelRows const& nodes)
      : problem_{resolution.resolution.candidates, param, static_cast<LevelNode>(nodes.size())},
        lv{problem_.lv} {
    std::vector<NodeState> states;
    std::vector<RowIdx> rows;
    auto const bounds =
        param.monotone_constraints.empty() ? WeightBounds::None() : WeightBounds{-0.5f, 0.75f};
    for (auto const& node : nodes) {
      FixedSum sum{0, 0};
      auto const begin = static_cast<RowIdx>(rows.size());
      for (RowIdx r : node) {
        sum = sum + lv.quantiser.Fixed(gpair[r]);
        rows.push_back(r);
      }
      ranges.push_back({begin, static_cast<RowIdx>(rows.size())});
      auto const real = lv.quantiser.Real(sum);
      float const weight = CalcWeight(lv.gain, real, bounds);
      states.push_back({sum, weight, CalcGain(lv.gain, real, weight), bounds});
    }
    std::vector<GradientUnits> of_rows, placed;
    for (GradientPair const& g : gpair) {
      of_rows.push_back(lv.quantiser.Units(g));
    }
    for (RowIdx r : rows) {
      placed.push_back(gpair.empty() ? GradientUnits{0.0f, 0.0f} : of_rows[r]);
    }
    n_slots = static_cast<RowIdx>(rows.size());
    problem_.SetNodes(states);
    rows_ = ToDevice(rows);
    units_ = ToDevice(placed);
    d_ranges_ = ToDevice(ranges);
    units_of_row_ = ToDevice(of_rows);
    are_all_ = nodes.size() == 1 && nodes[0].size() == gpair.size();
    std::vector<ShortLevelNode> node_of(gpair.size(), kNowhere);
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      for (RowIdx r : nodes[b]) {
        if (r < node_of.size()) {
          node_of[r] = static_cast<ShortLevelNode>(b);
        }
      }
    }
    node_of_ = ToDevice(node_of);
    std::vector<LevelNode> numbers(nodes.size());
    std::iota(numbers.begin(), numbers.end(), 0u);
    numbers_ = ToDevice(numbers);
    best_ = ToDevice(std::vector<std::uint64_t>(nodes.size(), 0));
    lv.best = best_.Data();
  }

  /** @brief Bar some features. */
  void Mask(FeatureIdx n_features, unsigned seed) {
    FeatureMask mask;
    RandomFeatures policy{n_features, seed};
    std::vector<LiveNode> open;
    for (auto b = kRoot; b < static_cast<NodeIdx>(lv.n_nodes); ++b) {
      open.push_back(
          {b, b - 1});  // as if each were the child of the one before: no way is another's
    }
    if (policy.Select(0, open, &mask)) {
      mask_ = ToDevice(mask.bits);
      lv.mask = mask_.Data();
      lv.mask_words = mask.n_words;
      lv.mask_per_node = mask.bits.size() == lv.n_nodes * mask.n_words;
    }
  }
  [[nodiscard]] RowsRef Rows() const {
    return {rows_.Data(),    units_.Data(),        d_ranges_.Data(), node_of_.Data(),
            numbers_.Data(), units_of_row_.Data(), are_all_};
  }
  [[nodiscard]] std::vector<std::uint64_t> Best() const { return ToHost(lv.best, lv.n_nodes); }
  void SetBest(std::vector<std::uint64_t> const& best) {
    best_ = ToDevice(best);
    lv.best = best_.Data();
  }

 private:
  LevelProblem problem_;
  DeviceBuffer<ShortLevelNode> node_of_{"nodes of rows"};
  DeviceBuffer<LevelNode> numbers_{"numbers of nodes"};
  DeviceBuffer<GradientUnits> units_of_row_{"gradients by row"};
  DeviceBuffer<RowIdx> rows_{"rows"};
  DeviceBuffer<GradientUnits> units_{"gradients"};
  bool are_all_{false};
  DeviceBuffer<RowRange> d_ranges_{"nodes"};
  DeviceBuffer<std::uint64_t> best_{"best candidates"};
  DeviceBuffer<std::uint32_t> mask_{"mask"};

 public:
  LevelRef& lv;
  std::vector<RowRange> ranges;
  RowIdx n_slots{0};
};

/** @brief The families of a level; those of some parents are of another
 * resolution. */
inline std::vector<Family> MakeFamilies(std::vector<LevelNode> const& parents, double elsewhere,
                                        Random* random) {
  if (parents.empty()) {
    return {{0, 1, 0}};
  }
  std::vector<Family> families;
  for (LevelNode i = 0; i < parents.size(); ++i) {
    if (!random->Chance(elsewhere)) {
      families.push_back({2 * i, 2, parents[i]});
    }
  }
  return families;
}

/** @brief Sums of nodes beside pieces. Shapes: (n_nodes, n_pieces), (n_nodes,
 * n_features). */
struct PieceSums {
  std::vector<FixedSum> before;
  std::vector<FixedSum> through;
  std::vector<FixedSum> present;

  PieceSums(Table const& table, Pieces const& pieces, std::vector<GradientPair> const& gpair,
            LevelRows const& nodes, Quantiser const& quantiser)
      : before(nodes.size() * pieces.Size(), {0, 0}),
        through(before),
        present(nodes.size() * table.n_features, {0, 0}) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      FixedSum* sums = through.data() + n * pieces.Size();
      for (RowIdx r : nodes[n]) {
        FixedSum const g = quantiser.Fixed(gpair[r]);
        for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
          sums[pieces.of_entry[i]] = sums[pieces.of_entry[i]] + g;
        }
      }
      for (FeatureIdx f = 0; f < table.n_features; ++f) {
        FixedSum sum{0, 0};
        for (auto p = pieces.offsets[f]; p < pieces.offsets[f + 1]; ++p) {
          before[n * pieces.Size() + p] = sum;
          sum = sum + sums[p];
          sums[p] = sum;
        }
        present[n * table.n_features + f] = sum;
      }
    }
  }
};

// one thread a node and piece; a template, so that several files may include it
template <typename KeyT>
__global__ void TryAllKernel(LevelRef lv, FeatureIdx const* features, std::uint32_t const* bins,
                             std::uint64_t n_pieces, FixedSum const* before,
                             FixedSum const* through, FixedSum const* present, KeyT* forward,
                             KeyT* backward) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= lv.n_nodes * n_pieces) {
    return;
  }
  auto const level_node = static_cast<LevelNode>(i / n_pieces);
  FeatureIdx const f = features[i % n_pieces];
  std::uint64_t const bin = bins[i % n_pieces];
  NodeState const& node = lv.nodes[level_node];
  FixedSum const all = present[level_node * std::uint64_t{lv.columns.n_features} + f];
  bool const allowed = lv.Allowed(level_node, f);
  forward[i] =
      allowed ? lv.ScanBoundaryKey(node, f, ScanDirection::kForward, bin + 1, through[i], all) : 0;
  backward[i] =
      allowed ? lv.ScanBoundaryKey(node, f, ScanDirection::kBackward, bin, before[i], all) : 0;
}

/** @brief Every candidate of a level: after each piece forward, before each
 * backward. */
struct AllCandidates {
  PieceSums sums;
  std::uint64_t n_pieces;
  std::vector<std::uint64_t> forward;  // CandidateKey, shape: (n_nodes, n_pieces)
  std::vector<std::uint64_t> backward;

  AllCandidates(Table const& table, Pieces const& pieces, std::vector<GradientPair> const& gpair,
                LevelRows const& nodes, LevelRef const& lv)
      : sums{table, pieces, gpair, nodes, lv.quantiser}, n_pieces{pieces.Size()} {
    std::size_t const n = nodes.size() * pieces.Size();
    auto const features = ToDevice(pieces.feature);
    auto const bins = ToDevice(pieces.bin);
    auto const before = ToDevice(sums.before);
    auto const through = ToDevice(sums.through);
    auto const present = ToDevice(sums.present);
    DeviceBuffer<std::uint64_t> d_forward{"forward"}, d_backward{"backward"};
    d_forward.Reserve(n);
    d_backward.Reserve(n);
    LaunchN("TryAll", TryAllKernel<std::uint64_t>, n, lv, features.Data(), bins.Data(), n_pieces,
            before.Data(), through.Data(), present.Data(), d_forward.Data(), d_backward.Data());
    forward = ToHost(d_forward.Data(), n);
    backward = ToHost(d_backward.Data(), n);
  }

  [[nodiscard]] std::uint64_t Key(std::size_t node, std::uint64_t piece) const {
    return std::max(forward[node * n_pieces + piece], backward[node * n_pieces + piece]);
  }
  /** @brief The best one of a node; 0: there is none. */
  [[nodiscard]] std::uint64_t Best(std::size_t node) const {
    std::uint64_t best{0};
    for (std::uint64_t p = 0; p < n_pieces; ++p) {
      best = std::max(best, this->Key(node, p));
    }
    return best;
  }
};

// How the parts are called, here alone.

/** @brief The nodes that a finder has searched, in its order. */
inline std::vector<SearchedNode> ReadNodes(HistogramFinder const& finder) {
  // Before a finder has searched any it has no memory for them.
  return finder.NumNodes() == 0 ? std::vector<SearchedNode>{}
                                : ToHost(finder.Nodes(), finder.NumNodes());
}
/** @brief Search the ranges that a finder has listed. */
inline RangeRefiner::Refined RefineOnce(RangeRefiner* refiner, HistogramProblem const& problem,
                                        TestResolution const& r, HistogramLevel const& level,
                                        HistogramFinder* finder) {
  return refiner->Refine(level.lv, problem.Ref(), level.Rows(), finder,
                         ShapeOf(r.matrix.Layout(), r.resolution.scans), 0);
}
/** @brief RangeRefiner::Found(), by node of the finder. */
inline std::vector<FoundCandidate> ReadFound(RangeRefiner const& refiner, std::size_t n_nodes) {
  return ToHost(refiner.Found(), n_nodes);
}
/** @brief Some nodes of a level have the best candidates of one resolution. */
inline void ReadCandidates(ThresholdFinder* resolver, HistogramLevel const& level,
                           TestResolution const& r, SearchedNode const* nodes, LevelNode n_nodes,
                           FoundCandidate const* refined, LevelResult* out) {
  LevelRef of_resolution = level.lv;
  of_resolution.columns = r.resolution.candidates;
  resolver->Read(of_resolution, r.matrix.Ref(), nodes, n_nodes,
                 {r.matrix.HasRanges() ? refined : nullptr, 0}, out);
}
}  // namespace gpu_exact
