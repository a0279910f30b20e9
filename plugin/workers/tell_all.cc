/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "workers/tell_all.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace gpu_exact {
std::string NameRanks(std::vector<std::int32_t> const& ranks) {
  std::string text = ranks.size() == 1 ? "Rank " : "Ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string SentenceOf(std::string text) {
  text = text.substr(0, text.find("\nStack trace"));
  auto const place = text.find(": ");
  if (text.find('[') == 0 && place != std::string::npos) {
    text = text.substr(place + 2);
  }
  text = text.substr(0, text.find_last_not_of('\n') + 1);
  return text.empty() ? "An error without a text." : text;  // an empty one would count as none
}

void ThrowFailures(Communicator* comm, std::string const& failure) {
  constexpr std::size_t kLength = 1024;  // a longer text is cut
  std::vector<char> texts(kLength * comm->Size());
  auto const sent = WholeCharacters(failure, kLength - 1);
  std::copy(sent.cbegin(), sent.cend(), texts.begin() + kLength * comm->Rank());
  comm->AllGather(texts.data(), kLength);
  std::map<std::string, std::vector<std::int32_t>> ranks_of;
  for (std::int32_t rank = 0; rank < comm->Size(); ++rank) {
    std::string const text{texts.data() + kLength * rank};
    if (!text.empty()) {
      ranks_of[text].push_back(rank);
    }
  }
  std::string message;
  for (auto const& [text, ranks] : ranks_of) {
    message += (message.empty() ? "" : "\n") + NameRanks(ranks) + " of " +
               std::to_string(comm->Size()) + ": " + text;
  }
  throw WorkerError{message};
}
}  // namespace gpu_exact
