/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Times the builder alone, without XGBoost: by interleaved levels, by depth, by kernel.
 *
 * One JSON line a measurement on standard output; --help says how.
 */
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/device_table.cuh"
#include "benchmarks/json_line.h"
#include "benchmarks/kernel_times.h"
#include "device/level/split_strategy.cuh"
#include "gpu_exact/source_hash.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact::bench {
namespace {
constexpr char const* kHelp =
    "bench_builder [SHAPE] [options]\n"
    "  SHAPE    higgs (default), bosch, yltr, news20, epsilon, year, airline, tall, gisette, "
    "small\n"
    "  --rows N --columns N --depth N   instead of the shape's own\n"
    "  --distinct N --missing PART      likewise; 0 distinct values: continuous\n"
    "  --signal S                       of the gradients; 0: at random (default 2)\n"
    "  --squared                        errors, as in regression, instead of the logistic loss\n"
    "  --rounds N                       trees boosted before those that are measured (default 0)\n"
    "  --levels FIRST LAST              interleaved levels to compare (default 0 7)\n"
    "  --strategy auto|sort|histogram   of the builder (default auto)\n"
    "  --memory-limit BYTES             as gpu_exact_memory_limit; up to 1: part of what is free\n"
    "  --repeats N                      trees that count in each measurement (default 5)\n"
    "  --only levels|depths|kernels     one kind of measurement\n";

struct Options {
  Shape shape{FindShape("higgs")};
  std::int32_t first_levels{0};
  std::int32_t last_levels{kMaxInterleavedLevels};
  std::string strategy_name{"auto"};
  TableOptions table{Strategy::kAuto};
  std::uint32_t n_rounds{0};
  std::uint32_t n_repeats{5};
  std::string only;
};

Strategy FindStrategy(std::string const& name) {
  static std::map<std::string, Strategy> const strategies{
      {"auto", Strategy::kAuto}, {"sort", Strategy::kSort}, {"histogram", Strategy::kHistogram}};
  auto found = strategies.find(name);
  if (found == strategies.cend()) {
    throw std::invalid_argument{"There is no strategy `" + name + "`; see --help."};
  }
  return found->second;
}

Options Parse(std::vector<std::string> const& words) {
  Options options;
  std::size_t i{0};
  auto next = [&] {
    if (i + 1 >= words.size()) {
      throw std::invalid_argument{"`" + words[i] + "` wants a value; see --help."};
    }
    return words[++i];
  };
  for (; i < words.size(); ++i) {
    std::string const& word = words[i];
    if (word == "--rows") {
      options.shape.n_rows = static_cast<RowIdx>(std::stoul(next()));
    } else if (word == "--columns") {
      options.shape.n_features = static_cast<FeatureIdx>(std::stoul(next()));
    } else if (word == "--depth") {
      options.shape.max_depth = std::stoi(next());
    } else if (word == "--distinct") {
      options.shape.distinct = static_cast<std::uint32_t>(std::stoul(next()));
    } else if (word == "--missing") {
      options.shape.missing = std::stof(next());
    } else if (word == "--signal") {
      options.shape.signal = std::stof(next());
    } else if (word == "--squared") {
      options.shape.squared = true;
    } else if (word == "--rounds") {
      options.n_rounds = static_cast<std::uint32_t>(std::stoul(next()));
    } else if (word == "--levels") {
      options.first_levels = std::stoi(next());
      options.last_levels = std::stoi(next());
    } else if (word == "--strategy") {
      options.strategy_name = next();
      options.table.strategy = FindStrategy(options.strategy_name);
    } else if (word == "--memory-limit") {
      options.table.memory_limit = std::stod(next());
    } else if (word == "--repeats") {
      options.n_repeats = static_cast<std::uint32_t>(std::max(1, std::stoi(next())));
    } else if (word == "--only") {
      options.only = next();
      if (options.only != "levels" && options.only != "depths" && options.only != "kernels") {
        throw std::invalid_argument{"There is nothing called `" + options.only + "`; see --help."};
      }
    } else if (i == 0) {
      options.shape = FindShape(word);
    } else {
      throw std::invalid_argument{"There is no option `" + word + "`; see --help."};
    }
  }
  return options;
}

/** @brief Milliseconds of a call; the call waits for the device. */
template <typename FnT>
double TimeMs(FnT&& fn) {
  auto begin = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double, std::milli>{std::chrono::steady_clock::now() - begin}
      .count();
}

class Bench {
 public:
  explicit Bench(Options const& options) : options_{options} {
    cudaDeviceProp prop{};
    EXACT_CUDA(cudaGetDeviceProperties(&prop, 0));
    device_ = prop.name;
    table_ = std::make_unique<DeviceTable>(options.shape);
    std::size_t before{0}, after{0}, total{0};
    EXACT_CUDA(cudaMemGetInfo(&before, &total));
    setup_ms_ = TimeMs([&] {
      builder_ = MakeDeviceBuilder(-1, table_->View(), options.table);
      Synchronize();
    });
    this->Build(-1, options.shape.max_depth);  // allocates what a tree needs
    EXACT_CUDA(cudaMemGetInfo(&after, &total));
    device_bytes_ = before - after;
    table_->ReleaseEntries();
    for (std::uint32_t i = 0; i < options.n_rounds; ++i) {
      table_->Boost(builder_.get(), this->Build(-1, options.shape.max_depth));
    }
  }

  void Levels() {
    for (std::int32_t k = options_.first_levels; k <= options_.last_levels; ++k) {
      Quartiles ms = this->Time(k, options_.shape.max_depth);
      JsonLine line = this->Line("levels", options_.shape.max_depth, ms);
      std::cout << line.Add("interleaved_levels", k).Text() << std::endl;
    }
  }

  void Depths() {
    double shallower{0.0};
    for (std::int32_t depth = 1; depth <= options_.shape.max_depth; ++depth) {
      Quartiles ms = this->Time(-1, depth);
      JsonLine line = this->Line("depths", depth, ms);
      line.Add("ms_level", ms.median - shallower)
          .Add("ns_an_entry_level", this->NsAnEntry(ms.median - shallower));
      std::cout << line.Text() << std::endl;
      shallower = ms.median;
    }
  }

  void Kernels() {
    std::string problem = StartKernelTimes();
    if (!problem.empty()) {
      throw std::runtime_error{"No times of kernels: " + problem + "."};
    }
    std::vector<double> ms;
    for (std::uint32_t i = 0; i < options_.n_repeats; ++i) {
      ms.push_back(TimeMs([&] { nodes_ = this->Build(-1, options_.shape.max_depth).size(); }));
    }
    for (KernelTime const& kernel : StopKernelTimes()) {
      this->KernelLine(kernel, Quartiles{ms});
    }
  }

 private:
  GrownTree Build(std::int32_t levels, std::int32_t depth) {
    GrowParam param;
    param.max_depth = depth;
    param.interleaved_levels = levels;
    return builder_->Build(param, table_->Gradients(), nullptr, nullptr);
  }

  Quartiles Time(std::int32_t levels, std::int32_t depth) {
    this->Build(levels, depth);
    std::vector<double> ms;
    for (std::uint32_t i = 0; i < options_.n_repeats; ++i) {
      ms.push_back(TimeMs([&] { nodes_ = this->Build(levels, depth).size(); }));
    }
    return Quartiles{ms};
  }

  [[nodiscard]] double NsAnEntry(double ms) const {
    return ms * 1e6 / static_cast<double>(table_->NumEntries());
  }

  JsonLine Line(std::string const& kind, std::int32_t depth, Quartiles const& ms) const {
    Shape const& shape = options_.shape;
    JsonLine line;
    line.Add("bench", kind)
        .Add("strategy", options_.strategy_name)
        .Add("memory_limit", options_.table.memory_limit)
        .Add("shape", shape.name)
        .Add("rows", shape.n_rows)
        .Add("columns", shape.n_features)
        .Add("entries", table_->NumEntries())
        .Add("max_depth", depth)
        .Add("rounds", options_.n_rounds)
        .Add("nodes", nodes_)
        .Add("ms_per_tree", ms.median)
        .Add("ms_per_tree_quartiles", ms)
        .Add("ns_an_entry", this->NsAnEntry(ms.median))
        .Add("setup_ms", setup_ms_)
        .Add("device_bytes_an_entry",
             static_cast<double>(device_bytes_) / static_cast<double>(table_->NumEntries()))
        .Add("device", device_)
        .Add("source_hash", std::string{SourceHash()});
    return line;
  }

  /** @brief Writes a kernel's time of a tree. */
  void KernelLine(KernelTime const& kernel, Quartiles const& tree) const {
    double ms = kernel.ms / options_.n_repeats;
    JsonLine line = this->Line("kernels", options_.shape.max_depth, tree);
    line.Add("kernel", kernel.name)
        .Add("calls_a_tree", static_cast<double>(kernel.calls) / options_.n_repeats)
        .Add("kernel_ms_a_tree", ms)
        .Add("share_of_tree", ms / tree.median);
    std::cout << line.Text() << std::endl;
  }

  Options options_;
  std::string device_;
  double setup_ms_{0.0};
  std::size_t device_bytes_{0};  // held by the builder after a tree
  std::size_t nodes_{0};
  std::unique_ptr<DeviceTable> table_;
  std::unique_ptr<TreeBuilder> builder_;
};

void Run(Options const& options) {
  Bench bench{options};
  auto wanted = [&](char const* kind) { return options.only.empty() || options.only == kind; };
  if (wanted("levels")) {
    bench.Levels();
  }
  if (wanted("depths")) {
    bench.Depths();
  }
  if (wanted("kernels")) {
    bench.Kernels();
  }
}
}  // namespace
}  // namespace gpu_exact::bench

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--help") {
    std::cout << gpu_exact::bench::kHelp;
    return 0;
  }
  try {
    gpu_exact::bench::Run(gpu_exact::bench::Parse(words));
  } catch (std::exception const& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
