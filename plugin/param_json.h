/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Parameters to and from a booster's configuration.
 */
#pragma once

#include <dmlc/json.h>

#include <map>
#include <sstream>
#include <string>

#include "json_text.h"

namespace gpu_exact {
template <typename ParamT>
void SaveParam(ParamT const& param, std::string const& key, xgboost::Json* out_config) {
  std::ostringstream os;
  dmlc::JSONWriter writer{&os};
  param.Save(&writer);
  (*out_config)[key] = ParseJson(os.str());
}

/** @brief A key that is not there changes nothing: the booster was saved by XGBoost alone. */
template <typename ParamT>
void LoadParam(xgboost::Json const& config, std::string const& key, ParamT* out_param) {
  auto const text = DumpJson(config[key]);
  if (text == "null") {
    return;
  }
  std::istringstream is{text};
  dmlc::JSONReader reader{&is};
  std::map<std::string, std::string> values;
  reader.Read(&values);
  out_param->UpdateAllowUnknown(values);
}
}  // namespace gpu_exact
