/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Binding to libraries that only claim to be XGBoost; fakes/fake_xgboost.cc makes them.
 */
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "load/adapter.h"
#include "load/binding.h"
#include "load/elf_symbols.h"
#include "versions.h"

namespace gpu_exact {
namespace {
struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

/** @param kind Of a fake XGBoost, or the name of another fake. */
std::string FakePath(std::string const& kind) {
  auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string const name = kind.find("openmp") == 0 ? kind : "xgboost_" + kind;
  return (here / "fakes" / ("libfake_" + name + ".so")).string();
}

Library Load(std::string const& path) {
  Library library{dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)};
  EXPECT_NE(library, nullptr) << dlerror();
  return library;
}

Library LoadFake(std::string const& kind) { return Load(FakePath(kind)); }

/** @brief The fake under the name of the library in R's package. */
std::string FakeOfR(std::string const& kind) {
  auto const path = std::filesystem::path{testing::TempDir()} / kind / "xgboost.so";
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::copy_file(FakePath(kind), path,
                             std::filesystem::copy_options::overwrite_existing);
  return path.string();
}

Adapter const& Newest() { return *AdapterTo(kNewestRelease); }

std::string BindError() {
  try {
    BindXGBoost();
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return "none";
}

std::string Remedy() {
  std::string release{kNewestRelease};
  return "Install a stock build: pip install xgboost==" + release + " or xgboost-cpu==" + release +
         ".";
}

/** @brief Whether a team is of the fake OpenMP that calls so many times, 0: whether there is none. */
bool IsTeam(HostTeam const& team, int times) {
  int n_calls{0};
  auto const count = [](void* n) { ++*static_cast<int*>(n); };
  if (team.run != nullptr) {
    team.run(count, &n_calls, team.n_threads);
  }
  return team.n_threads == 5 && n_calls == 5 * times && (times != 0) == (team.run != nullptr);
}

/** @brief Bind, in a process that ends with it, and call every function of the fake. */
[[noreturn]] void BindAndCall(bool of_r, int times) {
  if (!IsTeam(TeamOfXGBoost(5), 0)) {
    std::exit(5);
  }
  auto const& adapter = BindXGBoost();
  if (&BindXGBoost() != &adapter) {
    std::exit(7);
  }
  if (BoundToR() != of_r) {
    std::exit(3);
  }
  if (!IsTeam(TeamOfXGBoost(5), times)) {
    std::exit(4);
  }
  ImportTable imports = adapter.imports;
  for (std::size_t i = 0; i < imports.n; ++i) {
    if (reinterpret_cast<std::size_t (*)()>(imports.targets[i])() != i) {
      std::exit(1);
    }
  }
  std::exit(imports.n > 20 ? 0 : 2);
}
}  // namespace

TEST(Binding, NoLibrary) {
  auto const error = BindError();
  EXPECT_EQ(error.rfind("No XGBoost library is loaded", 0), 0u) << error;
  EXPECT_NE(error.find(kReleasesText), std::string::npos) << error;
}

TEST(Binding, OtherVersion) {
  auto fake = LoadFake("other_version");
  auto const error = BindError();
  EXPECT_EQ(error.rfind(FakePath("other_version") + " is XGBoost 9.9.9", 0), 0u) << error;
  EXPECT_NE(error.find(std::string{kReleasesText} + " only"), std::string::npos) << error;
}

TEST(Binding, Stripped) {
  auto fake = LoadFake("stripped");
  auto const error = BindError();
  EXPECT_NE(error.find(FakePath("stripped") + " has no symbol table"), std::string::npos) << error;
  EXPECT_NE(error.find(Remedy()), std::string::npos) << error;
}

TEST(Binding, RemediesOfR) {
  std::string const remedy = "install.packages(\"xgboost\", type = \"source\")";
  for (std::string kind : {"other_version", "stripped", "empty"}) {
    auto const path = FakeOfR(kind);
    auto fake = Load(path);
    auto const error = BindError();
    EXPECT_NE(error.find(path), std::string::npos) << error;
    EXPECT_NE(error.find(remedy), std::string::npos) << error;
  }
}

TEST(Binding, MissingFunction) {
  auto fake = LoadFake("empty");
  EXPECT_NE(BindError().find("_empty.so lacks dmlc::Registry<xgboost::TreeUpdaterReg>::Get()"),
            std::string::npos)
      << BindError();
}

TEST(Binding, TwoLibraries) {
  auto first = LoadFake("empty");
  auto second = LoadFake("other_version");
  auto const error = BindError();
  EXPECT_EQ(error.rfind("Two XGBoost libraries are loaded", 0), 0u) << error;
  EXPECT_NE(error.find(FakePath("empty")), std::string::npos) << error;
  EXPECT_NE(error.find(FakePath("other_version")), std::string::npos) << error;
}

TEST(Binding, NothingIsBoundByAnError) {
  auto fake = LoadFake("other_version");
  BindError();
  for (auto release : kReleases) {
    EXPECT_THROW(AdapterTo(release)->imports.targets[0](), std::logic_error) << release;
  }
}

TEST(Adapters, ReleasesOfOneLayoutShareOne) {
  EXPECT_EQ(AdapterTo("3.2.0"), AdapterTo("3.2.1"));
  EXPECT_EQ(AdapterTo("3.4.0"), AdapterTo("3.4.1"));
  EXPECT_NE(AdapterTo("3.2.0"), AdapterTo("3.3.0"));
  EXPECT_NE(AdapterTo("3.3.0"), AdapterTo("3.4.1"));
  EXPECT_EQ(AdapterTo("3.4.2"), nullptr);
}

TEST(BindingDeathTest, ExportedFunctionsOfEachRelease) {
  for (auto release : kReleases) {
    auto fake = LoadFake(release);
    EXPECT_EXIT(BindAndCall(false, 1), testing::ExitedWithCode(0), "") << release;
  }
}

/** @brief Of two OpenMPs, that which XGBoost's own loops are run by, bound at once or by the first call. */
TEST(BindingDeathTest, TheOpenMPThatXGBoostCalls) {
  for (bool for_all_before : {false, true}) {
    for (int mode : {RTLD_NOW, RTLD_LAZY}) {
      auto const bind = [&] {
        auto other = [] {
          return dlopen(FakePath("openmp_2").c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
        };
        bool const loaded = !for_all_before || other();
        Library const fake{dlopen(FakePath(kNewestRelease).c_str(), mode | RTLD_LOCAL)};
        if (!loaded || fake == nullptr || (!for_all_before && mode == RTLD_NOW && !other())) {
          std::exit(6);
        }
        BindAndCall(false, for_all_before ? 2 : 1);
      };
      EXPECT_EXIT(bind(), testing::ExitedWithCode(0), "") << for_all_before << " " << mode;
    }
  }
}

TEST(BindingDeathTest, HiddenFunctions) {
  auto fake = LoadFake("hidden");
  ASSERT_EQ(dlsym(fake.get(), Newest().imports.names[0]), nullptr);
  EXPECT_EXIT(BindAndCall(false, 0), testing::ExitedWithCode(0), "");
}

TEST(BindingDeathTest, HiddenFunctionsOfR) {
  auto fake = Load(FakeOfR("hidden"));
  EXPECT_EXIT(BindAndCall(true, 0), testing::ExitedWithCode(0), "");
}

/** @brief A copy of a fake that is loaded, after which another one takes its place, as pip does it. */
class Replaced {
 public:
  Replaced(std::string const& name, std::string const& loaded, std::string const& follower)
      : path_{Place(name, loaded)}, library_{Load(path_)} {
    auto const next = path_ + ".next";
    std::filesystem::copy_file(FakePath(follower), next,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(next, path_);
  }
  [[nodiscard]] std::string const& Path() const { return path_; }

 private:
  static std::string Place(std::string const& name, std::string const& loaded) {
    auto const folder =
        std::filesystem::path{testing::TempDir()} / ("replaced" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(FakePath(loaded), folder / name);
    return (folder / name).string();
  }

  std::string path_;
  Library library_;
};

/** @brief Where the symbol table has XGBoostVersion, then the imports. */
std::vector<std::uintptr_t> AddressesIn(std::string const& kind) {
  ImportTable const imports = Newest().imports;
  std::vector<std::string> names{"XGBoostVersion"};
  names.insert(names.end(), imports.names, imports.names + imports.n);
  return ElfFile{FakePath(kind)}.FunctionAddresses(names);
}

/** @brief As two releases of the CUDA wheel: XGBoostVersion stays where it is, other functions do not. */
TEST(Binding, AFileThatWasReplaced) {
  for (std::string kind : {"hidden", "no_id"}) {
    auto const before = AddressesIn(kind);
    auto const after = AddressesIn(kind + "_moved");
    ASSERT_EQ(before.front(), after.front());
    ASSERT_NE(before.back(), after.back());
  }
  for (std::string name : {"libxgboost.so", "xgboost.so"}) {
    for (auto [loaded, follower] : {std::pair{"hidden", "hidden_moved"},
                                    {"hidden_moved", "hidden"},
                                    {"no_id", "no_id_moved"},
                                    {"no_id_moved", "no_id"},
                                    {"hidden", "no_id"},
                                    {"no_id", "hidden"}}) {
      Replaced const file{name, loaded, follower};
      EXPECT_EQ(BindError(),
                file.Path() + " is no longer the file that this process loaded: restart it.")
          << loaded << " " << follower;
    }
  }
}

/** @brief As after a reinstallation of what there was. */
TEST(BindingDeathTest, AFileThatWasReplacedByItself) {
  for (std::string kind : {"hidden", "no_id"}) {
    Replaced const file{"libxgboost.so", kind, kind};
    EXPECT_EXIT(BindAndCall(false, 0), testing::ExitedWithCode(0), "") << kind;
  }
}

TEST(ElfSymbols, RefusesWhatIsNoElfFile) {
  std::string path = testing::TempDir() + "not_elf";
  for (std::string text : {std::string{}, std::string{"\177ELF"}, std::string(4096, 'x')}) {
    std::ofstream{path} << text;
    EXPECT_THROW((void)ElfFile{path}.FunctionAddresses({"main"}), std::runtime_error) << text;
  }
  EXPECT_THROW((void)ElfFile{path + "_absent"}, std::runtime_error);
}

TEST(ElfSymbols, RefusesATruncatedFile) {
  std::ifstream in{FakePath("hidden"), std::ios::binary};
  std::string whole{std::istreambuf_iterator<char>{in}, {}};
  std::string path = testing::TempDir() + "truncated";
  for (std::size_t size = 64; size < whole.size(); size += whole.size() / 16) {
    std::ofstream{path, std::ios::binary} << whole.substr(0, size);
    try {
      static_cast<void>(ElfFile{path}.FunctionAddresses({"main"}));
      ADD_FAILURE() << "no error of " << size << " bytes";
    } catch (std::runtime_error const& error) {
      EXPECT_EQ(error.what(), path + " is not a whole ELF file.") << size;
    }
  }
}

/** @brief Bytes of it are other ones, in its header and tables more often than elsewhere. */
std::string Damaged(std::string file, std::mt19937* rng) {
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>((*rng)() % n); };
  auto header = ElfW(Ehdr){};
  std::memcpy(&header, file.data(), sizeof(header));
  std::size_t const begins[] = {0, header.e_shoff, below(file.size())};
  std::size_t const sizes[] = {sizeof(header), header.e_shnum * sizeof(ElfW(Shdr)), 64};
  for (std::size_t n = 1 + below(4); n-- != 0;) {
    auto const part = below(3);
    auto const at = std::min(begins[part] + below(sizes[part]), file.size() - 1);
    std::uint64_t const values[] = {0, ~std::uint64_t{0}, file.size(), (*rng)(), 1};
    std::size_t const widths[] = {1, 2, 4, 8};
    std::memcpy(file.data() + at, &values[below(5)], std::min(widths[below(4)], file.size() - at));
  }
  return below(8) == 0 ? file.substr(0, below(file.size())) : file;
}

/** @brief GPU_EXACT_INPUTS of them (20000). */
TEST(ElfSymbols, DamagedFilesGiveAddressesOrAnError) {
  auto const* wanted = std::getenv("GPU_EXACT_INPUTS");
  auto const n = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 20000;
  std::ifstream in{FakePath("hidden"), std::ios::binary};
  std::string const whole{std::istreambuf_iterator<char>{in}, {}};
  ASSERT_GT(whole.size(), sizeof(ElfW(Ehdr)));
  int const file = memfd_create("damaged", 0);  // on a disk it takes a hundred times as long
  ASSERT_GE(file, 0);
  std::string const path = "/proc/self/fd/" + std::to_string(file);
  ImportTable const imports = Newest().imports;
  std::vector<std::string> const names(imports.names, imports.names + imports.n);
  std::mt19937 rng{1};
  std::size_t n_errors{0};
  auto fake = LoadFake("hidden");
  auto const* object = static_cast<link_map const*>(fake.get());
  for (std::size_t i = 0; i < n; ++i) {
    auto const damaged = Damaged(whole, &rng);
    auto const n_bytes = static_cast<ssize_t>(damaged.size());
    ASSERT_EQ(ftruncate(file, n_bytes), 0);
    ASSERT_EQ(pwrite(file, damaged.data(), damaged.size(), 0), n_bytes);
    try {
      ElfFile damaged_file{path};
      static_cast<void>(damaged_file.IsThatOf(fake.get(), *object));
      EXPECT_EQ(damaged_file.FunctionAddresses(names).size(), names.size());
    } catch (std::runtime_error const& error) {
      ++n_errors;
      EXPECT_NE(std::string{error.what()}.find(path), std::string::npos) << error.what();
    }
  }
  close(file);
  RecordProperty("tried", std::to_string(n));
  EXPECT_GT(n_errors, n / 10);
  EXPECT_LT(n_errors, n);
}
}  // namespace gpu_exact
