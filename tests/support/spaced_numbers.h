/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A program whose numbers have spaces in them and a comma, as French ones do.
 */
#pragma once

#include <locale>
#include <string>

namespace gpu_exact {
/** @brief While it lives, new streams write 1 234,5 and read it. */
class SpacedNumbers {
 public:
  SpacedNumbers()
      : before_{std::locale::global(std::locale{std::locale::classic(), new Punctuation})} {}
  ~SpacedNumbers() { std::locale::global(before_); }
  SpacedNumbers(SpacedNumbers const&) = delete;
  SpacedNumbers& operator=(SpacedNumbers const&) = delete;

 private:
  struct Punctuation : std::numpunct<char> {
    [[nodiscard]] char do_thousands_sep() const override { return ' '; }
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };

  std::locale before_;
};
}  // namespace gpu_exact
