/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements binding.h.
 */
#include "load/binding.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "load/elf_symbols.h"
#include "versions.h"

namespace gpu_exact {
namespace {
struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};

/** @brief Holds a libxgboost of this process, and keeps it from being unloaded. */
struct Library {
  std::unique_ptr<void, CloseLibrary> handle;
  std::string path;
  link_map const* map{nullptr};  // its l_addr is what the addresses in its file are relative to
  void* version_fn{nullptr};     // its XGBoostVersion
};

/** @brief Names the library in which R's package `xgboost` has its copy of XGBoost. */
bool IsOfR(std::string const& path) { return path.substr(path.rfind('/') + 1) == "xgboost.so"; }

std::string Remedy(std::string const& path) {
  if (IsOfR(path)) {
    return "Install R's package xgboost from source, which is not stripped: "
           "install.packages(\"xgboost\", type = \"source\"); or its release's binary for GPUs.";
  }
  std::string release{kNewestRelease};
  return "Install a stock build: pip install xgboost==" + release + " or xgboost-cpu==" + release +
         ".";
}

std::vector<std::string> LoadedObjects() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

Library FindLibrary() {
  Library found;
  for (auto const& name : LoadedObjects()) {
    // The main program is listed under an empty name and opened by nullptr.
    void* opened = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    std::unique_ptr<void, CloseLibrary> handle{opened};
    void* version_fn = handle ? dlsym(handle.get(), "XGBoostVersion") : nullptr;
    // dlsym also searches what the object depends on: the same library is met more than once.
    if (!version_fn || version_fn == found.version_fn) {
      continue;
    }
    Dl_info info{};
    link_map* map{nullptr};
    dladdr1(version_fn, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
    std::string path = map->l_name[0] == '\0' ? "/proc/self/exe" : map->l_name;
    if (found.version_fn) {
      throw std::runtime_error{"Two XGBoost libraries are loaded, " + found.path + " and " + path +
                               ": load only one."};
    }
    found = {std::move(handle), path, map, version_fn};
  }
  if (!found.version_fn) {
    throw std::runtime_error{
        std::string{"No XGBoost library is loaded in this process: load XGBoost "} + kReleasesText +
        " first (in Python: import xgboost; in R: library(xgboost))."};
  }
  return found;
}

Adapter const& ChooseAdapter(Library const& library) {
  int major{0}, minor{0}, patch{0};
  reinterpret_cast<void (*)(int*, int*, int*)>(library.version_fn)(&major, &minor, &patch);
  auto release = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  auto const* adapter = AdapterTo(release);
  if (adapter == nullptr) {
    throw std::runtime_error{library.path + " is XGBoost " + release +
                             ", but this build of gpu_exact works with " + kReleasesText +
                             " only, until `python tests/release_check.py " + release +
                             "` in its sources says more. " + Remedy(library.path)};
  }
  return *adapter;
}

std::string Demangle(std::string const& name) {
  std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), &std::free};
  return text ? text.get() : name;
}

/** @brief Resolve names that the library does not export from its symbol table. */
std::vector<ImportTarget> ResolveHidden(Library const& library,
                                        std::vector<std::string> const& names) {
  std::vector<std::uintptr_t> addresses;
  bool is_same{false};
  try {
    ElfFile file{library.path};
    is_same = file.IsThatOf(library.handle.get(), *library.map);
    if (is_same) {
      addresses = file.FunctionAddresses(names);
    }
  } catch (std::runtime_error const& error) {
    throw std::runtime_error{std::string{"XGBoost's C++ functions are out of reach: "} +
                             error.what() + " " + Remedy(library.path)};
  }
  if (!is_same) {
    throw std::runtime_error{library.path +
                             " is no longer the file that this process loaded: restart it."};
  }
  auto missing = std::find(addresses.cbegin(), addresses.cend(), 0);
  if (missing != addresses.cend()) {
    throw std::runtime_error{
        library.path + " lacks " + Demangle(names[missing - addresses.cbegin()]) +
        ", which gpu_exact calls: it is not a stock build. " + Remedy(library.path)};
  }
  std::vector<ImportTarget> targets;
  for (auto address : addresses) {
    targets.push_back(reinterpret_cast<ImportTarget>(library.map->l_addr + address));
  }
  return targets;
}

std::vector<ImportTarget> Resolve(Library const& library, ImportTable const& imports) {
  std::vector<ImportTarget> targets(imports.n);
  std::vector<std::string> hidden;
  for (std::size_t i = 0; i < imports.n; ++i) {
    targets[i] = reinterpret_cast<ImportTarget>(dlsym(library.handle.get(), imports.names[i]));
    if (!targets[i]) {
      hidden.emplace_back(imports.names[i]);
    }
  }
  if (!hidden.empty()) {
    auto rest = ResolveHidden(library, hidden);
    auto next = rest.cbegin();
    for (auto& target : targets) {
      target = target ? target : *next++;
    }
  }
  return targets;
}

bool bound_to_r{false};

/** @brief Names what compilers make of `#pragma omp parallel`, in GNU's OpenMP. */
using GompParallel = void (*)(void (*fn)(void*), void* data, unsigned n_threads, unsigned flags);
GompParallel gomp_parallel{nullptr};

// As in xgboost/c_api.h.
int (*get_global_config)(char const** out_json){nullptr};
int (*set_global_config)(char const* json){nullptr};

template <typename FnT>
void FindFunction(Library const& library, char const* name, FnT* out) {
  *out = reinterpret_cast<FnT>(dlsym(library.handle.get(), name));
}
}  // namespace

Adapter const& BindXGBoost() {
  static Adapter const* bound{nullptr};
  if (bound) {
    return *bound;
  }
  Library library = FindLibrary();
  auto const& adapter = ChooseAdapter(library);
  auto targets = Resolve(library, adapter.imports);
  std::copy(targets.cbegin(), targets.cend(), adapter.imports.targets);
  bound_to_r = IsOfR(library.path);
  gomp_parallel = reinterpret_cast<GompParallel>(
      CalledFunction(library.handle.get(), *library.map, "GOMP_parallel"));
  FindFunction(library, "XGBGetGlobalConfig", &get_global_config);
  FindFunction(library, "XGBSetGlobalConfig", &set_global_config);
  library.handle.release();  // the stubs point into it from now on: never unloaded
  bound = &adapter;
  return adapter;
}

HostTeam TeamOfXGBoost(std::int32_t n_threads) {
  HostTeam team{n_threads, nullptr};
  if (gomp_parallel != nullptr) {
    team.run = [](void (*fn)(void*), void* data, std::int32_t n) {
      gomp_parallel(fn, data, static_cast<unsigned>(n), 0);
    };
  }
  return team;
}

VectorsFromPool::VectorsFromPool(bool wanted) {
  char const* config{nullptr};
  if (wanted && get_global_config != nullptr && set_global_config != nullptr &&
      get_global_config(&config) == 0 &&
      std::strstr(config, R"("use_cuda_async_pool":false)") != nullptr) {
    is_set_ = true;  // also by a call that fails
    static_cast<void>(set_global_config(R"({"use_cuda_async_pool": true})"));
  }
}

VectorsFromPool::~VectorsFromPool() {
  if (is_set_) {
    static_cast<void>(set_global_config(R"({"use_cuda_async_pool": false})"));
  }
}

bool BoundToR() { return bound_to_r; }
}  // namespace gpu_exact
