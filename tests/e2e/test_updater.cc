/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The module in a C++ program: loaded beside libxgboost, used through XGBoost's C API.
 */
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <xgboost/c_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu_exact/c_api.h"

namespace {
/** @brief The module that the environment variable GPU_EXACT_MODULE names. */
class Module {
 public:
  static Module const& Get() {
    static Module const module;  // NOLINT
    return module;
  }

  decltype(&GpuExactGetLastError) get_last_error;
  decltype(&GpuExactRegister) register_updater;
  decltype(&GpuExactTakeOver) take_over;
  decltype(&GpuExactSetDefaultDevice) set_default_device;
  decltype(&GpuExactDeviceStatus) device_status;
  decltype(&GpuExactLastRun) last_run;
  decltype(&GpuExactMemoryEstimate) memory_estimate;
  decltype(&GpuExactSourceHash) source_hash;

 private:
  Module() {
    auto const* path = std::getenv("GPU_EXACT_MODULE");
    // Never closed: XGBoost's registry keeps functions of it.
    auto* handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!handle) {
      throw std::runtime_error{path ? dlerror() : "Set GPU_EXACT_MODULE to the module's path."};
    }
    Load(handle, "GpuExactGetLastError", &get_last_error);
    Load(handle, "GpuExactRegister", &register_updater);
    Load(handle, "GpuExactTakeOver", &take_over);
    Load(handle, "GpuExactSetDefaultDevice", &set_default_device);
    Load(handle, "GpuExactDeviceStatus", &device_status);
    Load(handle, "GpuExactLastRun", &last_run);
    Load(handle, "GpuExactMemoryEstimate", &memory_estimate);
    Load(handle, "GpuExactSourceHash", &source_hash);
  }

  template <typename Fn>
  static void Load(void* handle, char const* name, Fn* out_fn) {
    *out_fn = reinterpret_cast<Fn>(dlsym(handle, name));
    if (!*out_fn) {
      throw std::runtime_error{dlerror()};
    }
  }
};

using Params = std::map<std::string, std::string>;

/** @brief A table with missing values and labels whose gradients have exact sums. */
class Table {
 public:
  Table() {
    std::mt19937 rng{0};
    std::vector<float> values(kRows * kColumns);
    for (auto& value : values) {
      value = rng() % 5 == 0 ? std::numeric_limits<float>::quiet_NaN()
                             : static_cast<float>(rng() % 100);
    }
    std::vector<float> labels(kRows);
    for (auto& label : labels) {
      label = static_cast<float>(rng() % 65) / 16.0f;
    }
    EXPECT_EQ(XGDMatrixCreateFromMat(values.data(), kRows, kColumns,
                                     std::numeric_limits<float>::quiet_NaN(), &handle_),
              0);
    EXPECT_EQ(XGDMatrixSetFloatInfo(handle_, "label", labels.data(), labels.size()), 0);
  }
  ~Table() { XGDMatrixFree(handle_); }
  Table(Table const&) = delete;
  Table& operator=(Table const&) = delete;

  [[nodiscard]] DMatrixHandle Handle() const { return handle_; }

 private:
  static constexpr bst_ulong kRows = 500;
  static constexpr bst_ulong kColumns = 7;
  DMatrixHandle handle_{nullptr};
};

struct Result {
  int status;
  std::string error;
  std::string model;  // JSON
};

/** @brief One round, so that all gradients are multiples of 1/16. */
Result Train(Table const& table, Params params) {
  params.insert({{"nthread", "1"}, {"base_score", "0.5"}, {"max_depth", "5"}});
  auto dtrain = table.Handle();
  BoosterHandle booster;
  EXPECT_EQ(XGBoosterCreate(&dtrain, 1, &booster), 0);
  for (auto const& [name, value] : params) {
    EXPECT_EQ(XGBoosterSetParam(booster, name.c_str(), value.c_str()), 0);
  }
  Result result{XGBoosterUpdateOneIter(booster, 0, dtrain), XGBGetLastError(), ""};
  if (result.status == 0) {
    char const* model;
    bst_ulong size;
    EXPECT_EQ(XGBoosterSaveModelToBuffer(booster, R"({"format": "json"})", &size, &model), 0);
    result.model.assign(model, size);
  }
  EXPECT_EQ(XGBoosterFree(booster), 0);
  return result;
}

/** @brief Why a booster of ours cannot be on a CUDA device here; empty where it can. */
std::string WhyNoCuda() {
  char const* build{nullptr};
  EXPECT_EQ(XGBuildInfo(&build), 0);
  if (std::string{build}.find("\"USE_CUDA\":true") == std::string::npos) {
    return "this XGBoost is built without CUDA";
  }
  int usable{0};
  char const* text{nullptr};
  EXPECT_EQ(Module::Get().device_status(-1, &usable, &text), 0);
  bool const gpu = usable == 1 && std::strncmp(text, "reference", 9) != 0;
  return gpu ? "" : std::string{"no GPU builder: "} + text;
}

class Updater : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    int major, minor, patch;
    XGBoostVersion(&major, &minor, &patch);
    std::printf("XGBoost %d.%d.%d\n", major, minor, patch);  // releases/test_releases.py reads it
  }
  void TearDown() override {
    ASSERT_EQ(Module::Get().take_over(0), 0);
    ASSERT_EQ(Module::Get().set_default_device("cpu"), 0);
  }
  Table table_;
};
}  // namespace

TEST_F(Updater, TakesOverAndGivesBack) {
  auto const stock = Train(table_, {{"tree_method", "exact"}});
  ASSERT_EQ(stock.status, 0) << stock.error;
  ASSERT_EQ(Module::Get().take_over(1), 0) << Module::Get().get_last_error();
  auto const ours = Train(table_, {{"tree_method", "exact"}});
  ASSERT_EQ(ours.status, 0) << ours.error;
  ASSERT_EQ(ours.model, stock.model);

  // The parameter is ours alone: whoever looks at its value has taken over.
  Params const wrong{{"tree_method", "exact"}, {"gpu_exact_fallback", "maybe"}};
  ASSERT_EQ(Train(table_, wrong).status, -1);
  ASSERT_EQ(Module::Get().take_over(0), 0);
  ASSERT_EQ(Train(table_, wrong).status, 0);
}

TEST_F(Updater, ExactGoesWithCuda) {
  if (auto const reason = WhyNoCuda(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  auto const stock = Train(table_, {{"tree_method", "exact"}});
  Params const on_cuda{{"tree_method", "exact"}, {"device", "cuda"}};
  auto const refused = Train(table_, on_cuda);
  ASSERT_NE(refused.error.find("not supported on GPU"), std::string::npos) << refused.error;
  ASSERT_EQ(Module::Get().take_over(1), 0) << Module::Get().get_last_error();
  auto const named = Train(table_, on_cuda);
  ASSERT_EQ(named.status, 0) << named.error;
  ASSERT_EQ(named.model, stock.model);
  ASSERT_EQ(Module::Get().set_default_device("cuda"), 0) << Module::Get().get_last_error();
  auto const by_default = Train(table_, {{"tree_method", "exact"}});
  ASSERT_EQ(by_default.status, 0) << by_default.error;
  ASSERT_EQ(by_default.model, stock.model);
}

TEST_F(Updater, DefaultDeviceMustBeOne) {
  ASSERT_EQ(Module::Get().set_default_device("tpu"), -1);
  ASSERT_NE(std::string{Module::Get().get_last_error()}.find("say `cpu`, `cuda`"),
            std::string::npos);
}

TEST_F(Updater, AnswersToItsName) {
  auto const stock = Train(table_, {{"tree_method", "exact"}, {"gamma", "2"}});
  ASSERT_EQ(Module::Get().register_updater(), 0) << Module::Get().get_last_error();
  ASSERT_EQ(Module::Get().register_updater(), 0) << "a second time";
  auto const ours = Train(table_, {{"updater", "grow_gpu_exact"}, {"gamma", "2"}});
  ASSERT_EQ(ours.status, 0) << ours.error;
  ASSERT_EQ(ours.model, stock.model);
}

TEST_F(Updater, SaysWhatTheLastTreeTook) {
  ASSERT_EQ(Module::Get().take_over(1), 0) << Module::Get().get_last_error();
  ASSERT_EQ(Train(table_, {{"tree_method", "exact"}}).status, 0);
  char const* json{nullptr};
  ASSERT_EQ(Module::Get().last_run(&json), 0) << Module::Get().get_last_error();
  std::string const text{json};
  ASSERT_NE(text.find(R"("rows": 500, "columns": 7, )"), std::string::npos) << text;
}

TEST_F(Updater, EstimatesMemory) {
  char const* json{nullptr};
  ASSERT_EQ(Module::Get().memory_estimate(1000, 10, 10000, 6, nullptr, 0, &json), 0);
  ASSERT_EQ(std::string{json}.rfind(R"({"sort": {"peak": )", 0), 0u) << json;
  ASSERT_EQ(Module::Get().memory_estimate(1000, 10, 10001, 6, nullptr, 0, &json), -1);
  ASSERT_NE(std::string{Module::Get().get_last_error()}.find("has no 10001 entries"),
            std::string::npos);
}

TEST_F(Updater, SaysWhatItIsBuiltOf) {
  ASSERT_EQ(std::strlen(Module::Get().source_hash()), 64u);  // hexadecimal digits of SHA-256
}

TEST_F(Updater, ErrorsArriveAsXGBoostsOwn) {
  ASSERT_EQ(Module::Get().take_over(1), 0) << Module::Get().get_last_error();
  auto const refused =
      Train(table_, {{"tree_method", "exact"}, {"interaction_constraints", "[[0, 0.5]]"}});
  ASSERT_EQ(refused.status, -1);
  ASSERT_NE(refused.error.find("Failed to parse feature interaction constraint"),
            std::string::npos);
  ASSERT_EQ(Train(table_, {{"tree_method", "exact"}}).status, 0) << "the process goes on";
}
