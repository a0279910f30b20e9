/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Reads and writes XGBoost's Json as text.
 *
 * Json's own conversions need the vtables of its classes, which are data, and a loaded module can
 * bind functions only.
 */
#pragma once

#include <xgboost/json.h>
#include <xgboost/string_view.h>

#include <string>

namespace gpu_exact {
[[nodiscard]] inline std::string DumpJson(xgboost::Json const& json) {
  std::string text;
  xgboost::Json::Dump(json, &text);
  return text;
}

[[nodiscard]] inline xgboost::Json ParseJson(std::string const& text) {
  return xgboost::Json::Load(xgboost::StringView{text});
}

/** @brief Quote a string, which must need no escaping: names do not. */
[[nodiscard]] inline xgboost::Json QuoteJson(std::string const& name) {
  return ParseJson('"' + name + '"');
}

/** @brief Give the name that QuoteJson() made a string of. */
[[nodiscard]] inline std::string UnquoteJson(xgboost::Json const& json) {
  auto const text = DumpJson(json);
  return text.substr(1, text.size() - 2);
}
}  // namespace gpu_exact
