/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What a benchmark writes: medians, quartiles, lines of JSON.
 */
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gpu_exact::bench {
/** @brief Of a sample that is not empty; between two values, linear. */
struct Quartiles {
  double low, median, high;

  explicit Quartiles(std::vector<double> sample) {
    std::sort(sample.begin(), sample.end());
    auto at = [&](double part) {
      double place = part * static_cast<double>(sample.size() - 1);
      auto i = static_cast<std::size_t>(place);
      double above = sample[std::min(i + 1, sample.size() - 1)];
      return sample[i] + (place - static_cast<double>(i)) * (above - sample[i]);
    };
    low = at(0.25);
    median = at(0.5);
    high = at(0.75);
  }
};

/** @brief One line of JSON: what all lines share, then what was added. */
class JsonLine {
 public:
  JsonLine() { os_.precision(6); }
  template <typename T>
  JsonLine& Add(char const* key, T const& value) {
    os_ << Separator() << '"' << key << "\": " << value;
    return *this;
  }
  JsonLine& Add(char const* key, std::string const& value) {
    os_ << Separator() << '"' << key << "\": \"" << value << '"';
    return *this;
  }
  JsonLine& Add(char const* key, Quartiles const& q) {
    os_ << Separator() << '"' << key << "\": [" << q.low << ", " << q.high << ']';
    return *this;
  }
  [[nodiscard]] std::string Text() const { return "{" + os_.str() + "}"; }

 private:
  char const* Separator() { return std::exchange(first_, false) ? "" : ", "; }

  std::ostringstream os_;
  bool first_{true};
};
}  // namespace gpu_exact::bench
