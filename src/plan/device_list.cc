/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Decides which GPUs share a table.
 */
#include <sstream>
#include <stdexcept>

#include "gpu_exact/device.h"

namespace gpu_exact {
std::vector<int> ChooseDevices(std::string const& text, int first, int n_visible,
                               EntryIdx n_entries) {
  // Estimated of an H200: GPUs tell each other things for 0.1 ms a level, and a level of so many
  // entries takes 0.3 ms.
  constexpr EntryIdx kWorthSharing = EntryIdx{1} << 25;
  std::vector<int> devices{first};
  if (text.empty() || (text == "all" && n_entries < kWorthSharing)) {
    return devices;
  }
  auto refuse = [&](std::string const& why) {
    throw std::invalid_argument{"gpu_exact_devices is \"" + text + "\", " + why +
                                "; set it to \"all\", or to a list such as \"0,1\"."};
  };
  bool has_first{false};
  auto add = [&](int device) {
    if (device == first && !has_first) {
      has_first = true;
    } else {
      devices.push_back(device);
    }
  };
  if (text == "all") {
    for (int device = 0; device < n_visible; ++device) {
      add(device);
    }
    return devices;
  }
  std::istringstream list{text};
  for (std::string word; std::getline(list, word, ',');) {
    bool const is_number = !word.empty() && word.size() < 5 &&
                           word.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) {
      refuse("which is no list of devices");
    }
    if (int const device = std::stoi(word); device < n_visible) {
      add(device);
    } else {
      refuse("and this process sees " + std::to_string(n_visible) + " GPUs");
    }
  }
  if (!has_first) {
    refuse("which leaves out the booster's own, " + std::to_string(first));
  }
  return devices;
}
}  // namespace gpu_exact
