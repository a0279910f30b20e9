/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Moves parameters to and from a booster's configuration.
 */
#pragma once

#include <dmlc/json.h>

#include <map>
#include <sstream>
#include <string>

#include "hooks/json_text.h"

namespace gpu_exact {
template <typename ParamT>
void SaveParam(ParamT const& param, std::string const& key, xgboost::Json* out_config) {
  std::ostringstream os;
  dmlc::JSONWriter writer{&os};
  param.Save(&writer);
  (*out_config)[key] = ParseJson(os.str());
}

/**
 * @brief Names and values of the first that has this key, in whatever they lie; empty where none has.
 * @param config A saved configuration, or a part of it, as text.
 */
[[nodiscard]] inline std::map<std::string, std::string> FindParam(std::string const& config,
                                                                  std::string const& key) {
  std::map<std::string, std::string> values;
  auto const quoted = '"' + key + "\":";
  if (auto const at = config.find(quoted); at != std::string::npos) {
    std::istringstream is{config.substr(at + quoted.size())};
    dmlc::JSONReader reader{&is};
    reader.Read(&values);
  }
  return values;
}

/** @brief Load parameters. A key that is not there changes nothing: the booster was saved by
 *         XGBoost alone. */
template <typename ParamT>
void LoadParam(xgboost::Json const& config, std::string const& key, ParamT* out_param) {
  if (auto const values = FindParam(DumpJson(config), key); !values.empty()) {
    out_param->UpdateAllowUnknown(values);
  }
}
}  // namespace gpu_exact
