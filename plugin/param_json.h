/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Parameters to and from a booster's configuration.
 *
 * Goes through JSON text: XGBoost's own conversions need the vtables of its Json classes, which are
 * data, and a loaded module can bind functions only.
 */
#pragma once

#include <dmlc/json.h>
#include <xgboost/json.h>

#include <map>
#include <sstream>
#include <string>

namespace gpu_exact {
template <typename ParamT>
void SaveParam(ParamT const& param, std::string const& key, xgboost::Json* out_config) {
  std::ostringstream os;
  dmlc::JSONWriter writer{&os};
  param.Save(&writer);
  auto const text = os.str();
  (*out_config)[key] = xgboost::Json::Load(xgboost::StringView{text});
}

/** @brief A key that is not there changes nothing: the booster was saved by XGBoost alone. */
template <typename ParamT>
void LoadParam(xgboost::Json const& config, std::string const& key, ParamT* out_param) {
  std::string text;
  xgboost::Json::Dump(config[key], &text);
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
