/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Times the builder alone, without XGBoost: a tree, and each of its kernels.
 *
 * One JSON line a measurement on standard output; --help says how.
 */
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/device_table.cuh"
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
    "  --rounds N                       trees boosted before those that are measured (default 0)\n"
    "  --strategy auto|sort|histogram   of the builder (default auto)\n"
    "  --memory-limit BYTES             as gpu_exact_memory_limit; up to 1: part of what is free\n"
    "  --repeats N                      trees that are measured (default 5)\n";

struct Options {
  Shape shape{FindShape("higgs")};
  TableOptions table{Strategy::kAuto};
  std::uint32_t n_rounds{0};
  std::uint32_t n_repeats{5};
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

Options Parse(std::vector<std::string> words) {
  Options options;
  if (!words.empty() && words[0].front() != '-') {
    options.shape = FindShape(words[0]);
    words.erase(words.begin());
  }
  Shape& shape = options.shape;
  auto whole = [](auto* out) {
    return [=](std::string const& text) {
      *out = static_cast<std::decay_t<decltype(*out)>>(std::stoul(text));
    };
  };
  std::map<std::string, std::function<void(std::string const&)>> const readers{
      {"--rows", whole(&shape.n_rows)},
      {"--columns", whole(&shape.n_features)},
      {"--depth", whole(&shape.max_depth)},
      {"--distinct", whole(&shape.distinct)},
      {"--rounds", whole(&options.n_rounds)},
      {"--repeats", whole(&options.n_repeats)},
      {"--missing", [&](std::string const& text) { shape.missing = std::stof(text); }},
      {"--signal", [&](std::string const& text) { shape.signal = std::stof(text); }},
      {"--strategy", [&](std::string const& text) { options.table.strategy = FindStrategy(text); }},
      {"--memory-limit",
       [&](std::string const& text) { options.table.memory_limit = std::stod(text); }}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    auto found = readers.find(words[i]);
    if (found == readers.cend() || i + 1 == words.size()) {
      throw std::invalid_argument{"`" + words[i] + "` is no option with its value; see --help."};
    }
    found->second(words[i + 1]);
  }
  options.n_repeats = std::max(1u, options.n_repeats);
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

/** @brief Writes one line: numbers, and texts in quotes. */
class JsonLine {
 public:
  template <typename T>
  JsonLine& Add(char const* key, T const& value) {
    line_ << (line_.tellp() == 0 ? "{" : ", ") << '"' << key << "\": " << value;
    return *this;
  }
  JsonLine& Add(char const* key, std::string const& value) {
    return this->Add<std::string>(key, '"' + value + '"');
  }
  void Write() const { std::cout << line_.str() << '}' << std::endl; }

 private:
  std::ostringstream line_;
};

std::string DeviceName() {
  cudaDeviceProp prop{};
  EXACT_CUDA(cudaGetDeviceProperties(&prop, 0));
  return prop.name;
}

std::size_t FreeBytes() {
  std::size_t free{0}, total{0};
  EXACT_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

void Run(Options const& options) {
  Shape const& shape = options.shape;
  DeviceTable table{shape};
  std::size_t const before = FreeBytes();
  std::unique_ptr<TreeBuilder> builder;
  double const setup_ms = TimeMs([&] {
    builder = MakeDeviceBuilder(-1, table.View(), options.table);
    Synchronize();
  });
  GrowParam param;
  param.max_depth = shape.max_depth;
  auto build = [&] { return builder->Build(param, table.Gradients(), nullptr, nullptr); };
  build();  // allocates what a tree needs
  std::size_t const held = before - FreeBytes();
  table.ReleaseEntries();
  for (std::uint32_t i = 0; i < options.n_rounds; ++i) {
    table.Boost(builder.get(), build());
  }

  std::size_t n_nodes{0};
  std::vector<double> ms;
  auto measure = [&] {
    for (std::uint32_t i = 0; i < options.n_repeats; ++i) {
      ms.push_back(TimeMs([&] { n_nodes = build().size(); }));
    }
  };
  measure();
  std::sort(ms.begin(), ms.end());
  auto const entries = static_cast<double>(table.NumEntries());
  JsonLine{}
      .Add("shape", shape.name)
      .Add("rows", shape.n_rows)
      .Add("columns", shape.n_features)
      .Add("entries", table.NumEntries())
      .Add("max_depth", shape.max_depth)
      .Add("rounds", options.n_rounds)
      .Add("nodes", n_nodes)
      .Add("ms_a_tree", ms[ms.size() / 2])
      .Add("ms_fastest", ms.front())
      .Add("ms_slowest", ms.back())
      .Add("setup_ms", setup_ms)
      .Add("device_bytes_an_entry", static_cast<double>(held) / entries)
      .Add("device", DeviceName())
      .Add("source_hash", std::string{SourceHash()})
      .Write();

  std::string const problem = StartKernelTimes();
  if (!problem.empty()) {
    throw std::runtime_error{"No times of kernels: " + problem + "."};
  }
  measure();
  for (KernelTime const& kernel : StopKernelTimes()) {
    JsonLine{}
        .Add("kernel", kernel.name)
        .Add("calls_a_tree", static_cast<double>(kernel.calls) / options.n_repeats)
        .Add("ms_a_tree", kernel.ms / options.n_repeats)
        .Write();
  }
}
}  // namespace
}  // namespace gpu_exact::bench

int main(int argc, char** argv) {
  std::vector<std::string> const words(argv + 1, argv + argc);
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
