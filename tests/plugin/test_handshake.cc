/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_workers.h"
#include "workers/handshake.h"
#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
/** @brief What each of the workers throws; "none" for nothing. */
template <typename Fn>
std::vector<std::string> ErrorsOf(std::int32_t n_workers, Fn const& fn) {
  std::vector<std::string> texts;
  for (auto const& error : reference::RunWorkers(n_workers, fn)) {
    try {
      if (error) {
        std::rethrow_exception(error);
      }
      texts.emplace_back("none");
    } catch (WorkerError const& e) {
      texts.emplace_back(e.what());
    }
  }
  return texts;
}

std::vector<std::string> Same(std::size_t n, std::string const& text) {
  return std::vector<std::string>(n, text);  // NOLINT: braces would look like a list
}

/** @brief Three equal workers, and then one field of one of them is changed. */
template <typename T>
std::string ErrorOfOther(T WorkerState::*field, std::size_t rank) {
  WorkerState usual;
  usual.sources = usual.settings = usual.last_tree = usual.weights = usual.types = 7;
  std::vector<WorkerState> worker_states(3, usual);
  CheckEqual(worker_states);
  worker_states[rank].*field = 8;
  try {
    CheckEqual(worker_states);
  } catch (WorkerError const& e) {
    return e.what();
  }
  return "none";
}

TEST(TellAll, ASentenceWithoutPlaceAndStack) {
  EXPECT_EQ(SentenceOf("[12:00:00] a.cc:7: No memory: free some.\n\nStack trace:\n  [bt] (0)"),
            "No memory: free some.");
  EXPECT_EQ(SentenceOf("No memory: free some.\n"), "No memory: free some.");
  EXPECT_EQ(SentenceOf("[0, 1] is no list"), "[0, 1] is no list");
  for (auto const* empty : {"", "\nStack trace:\n  [bt] (0)"}) {
    EXPECT_EQ(SentenceOf(empty), "An error without a text.");
  }
}

TEST(TellAll, AllLearnWhatEachHas) {
  EXPECT_EQ(ErrorsOf(3,
                     [](Communicator* comm) {
                       auto const ranks = TellAll(comm, [&] { return 10 * comm->Rank(); });
                       EXPECT_EQ(ranks, (std::vector<std::int32_t>{0, 10, 20}));
                     }),
            Same(3, "none"));
  EXPECT_EQ(TellAll(nullptr, [] { return 5; }), std::vector<int>{5});
}

TEST(TellAll, AFailureOfOneIsToldToAll) {
  auto const errors = ErrorsOf(3, [](Communicator* comm) {
    for (int step = 0; step < 2; ++step) {  // nobody is a step ahead afterwards
      try {
        TellAll(comm, [&] {
          return comm->Rank() == 1
                     ? throw std::runtime_error{"[01:02:03] /a/b.cc:7: No room.\nStack trace: f()"}
                     : 0;
        });
        FAIL();
      } catch (WorkerError const& e) {
        if (step == 1) {
          throw;
        }
      }
    }
  });
  EXPECT_EQ(errors, Same(3, "Rank 1 of 3: No room."));
}

TEST(TellAll, EqualFailuresAreToldOnce) {
  auto const errors = ErrorsOf(4, [](Communicator* comm) {
    TellAll(comm, [&] {
      if (comm->Rank() != 2) {
        throw std::runtime_error{comm->Rank() == 0 ? std::string(5000, 'x') : "No room."};
      }
      return 0;
    });
  });
  EXPECT_EQ(errors,
            Same(4, "Ranks 1 and 3 of 4: No room.\nRank 0 of 4: " + std::string(1023, 'x')));
}

/** @brief Characters of 1 to 4 bytes; half of one would be no text to Python. */
TEST(TellAll, ALongTextEndsWithAWholeCharacter) {
  for (std::string character : {"x", "\u00e9", "\u20ac", "\U0001f600"}) {
    std::string text;
    for (std::size_t i = 0; i < 2000; ++i) {
      text += character;
    }
    auto const whole = [&](std::size_t room) {
      return text.substr(0, room / character.size() * character.size());
    };
    auto const errors = ErrorsOf(2, [&](Communicator* comm) {
      TellAll(comm, [&] { return comm->Rank() == 1 ? throw std::runtime_error{text} : 0; });
    });
    EXPECT_EQ(errors, Same(2, "Rank 1 of 2: " + whole(1023)));
    for (std::size_t room = 0; room < 20; ++room) {
      EXPECT_EQ(WholeCharacters(text, room), whole(room)) << room;
    }
    EXPECT_EQ(WholeCharacters(text, text.size()), text);
  }
}

TEST(TellAll, AloneAnErrorStaysWhatItIs) {
  EXPECT_THROW(TellAll(nullptr, []() -> int { throw std::invalid_argument{"No."}; }),
               std::invalid_argument);
}

TEST(Handshake, DifferencesNameRanksAndRemedy) {
  auto const of_build = ErrorOfOther(&WorkerState::sources, 2);
  EXPECT_EQ(of_build.rfind("Rank 2 of 3 differs from rank 0 in its build", 0), 0u) << of_build;
  auto const of_settings = ErrorOfOther(&WorkerState::settings, 0);
  EXPECT_EQ(of_settings.rfind("Ranks 1 and 2 of 3 differ from rank 0", 0), 0u) << of_settings;
  for (auto const& [error, word] :
       {std::pair{ErrorOfOther(&WorkerState::n_features, 1), "columns"},
        std::pair{ErrorOfOther(&WorkerState::n_groups, 1), "`num_class`"},
        std::pair{ErrorOfOther(&WorkerState::n_rounds, 1), "rounds that its model has"},
        std::pair{ErrorOfOther(&WorkerState::random, 1), "`seed`"},
        std::pair{ErrorOfOther(&WorkerState::last_tree, 1), "tree that it grew last"},
        std::pair{ErrorOfOther(&WorkerState::weights, 1), "`feature_weights`"},
        std::pair{ErrorOfOther(&WorkerState::types, 1), "`feature_types`"}}) {
    EXPECT_EQ(error.find("Rank 1 of 3 differs from rank 0 in "), 0) << error;
    EXPECT_NE(error.find(word), std::string::npos) << error;
  }
}

TEST(Handshake, NoTreeNoWeightsAndNoTypesAreNoDifference) {
  std::vector<WorkerState> worker_states(3);
  worker_states[1].last_tree = worker_states[1].weights = worker_states[1].types = 7;
  EXPECT_NO_THROW(CheckEqual(worker_states));
  worker_states[2].last_tree = 8;
  EXPECT_THROW(CheckEqual(worker_states), WorkerError);
}

TEST(Handshake, ATableThatOneLacksIsMadeAnewByAll) {
  auto const errors = ErrorsOf(3, [](Communicator* comm) {
    std::uint64_t table{0};
    std::vector<std::uint64_t> seen;
    for (int step = 0; step < 5; ++step) {
      if (step == 2 && comm->Rank() == 1) {
        table = 0;  // lost
      }
      auto const worker_states = TellAll(comm, [&] {
        WorkerState worker_state;
        worker_state.epoch = table;
        worker_state.newest_epoch = NewestEpoch();
        return worker_state;
      });
      table = AgreeOnEpoch(worker_states);
      seen.push_back(table);
    }
    EXPECT_NE(seen[0], 0u);
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{seen[0], seen[0], seen[0] + 1, seen[0] + 1,
                                                seen[0] + 1}));
  });
  EXPECT_EQ(errors, Same(3, "none"));
}

/** @brief Let workers agree on what the first one lacks. @param hash Of it. */
template <typename T>
std::vector<std::string> ErrorsOfAgreement(std::uint64_t WorkerState::*hash,
                                           std::vector<T> const& theirs,
                                           std::vector<T> const& expected) {
  return ErrorsOf(3, [&](Communicator* comm) {
    std::vector<WorkerState> worker_states(3);
    EXPECT_TRUE(AgreeOn(comm, worker_states, hash, std::vector<T>{}).empty());
    for (auto& worker_state : worker_states) {
      worker_state.n_features = 3;
    }
    worker_states[1].*hash = worker_states[2].*hash = 7;
    auto own = comm->Rank() == 0 ? std::vector<T>{} : theirs;
    EXPECT_EQ(AgreeOn(comm, worker_states, hash, std::move(own)), expected);
  });
}

TEST(Handshake, WorkersWithoutWeightsOrTypesGetThoseOfTheOthers) {
  std::vector<float> const weights{1, 2, 3};
  EXPECT_EQ(ErrorsOfAgreement(&WorkerState::weights, weights, weights), Same(3, "none"));
  std::vector<FeatureType> const numbers(3, FeatureType::kNumerical);
  auto types = numbers;
  types[2] = FeatureType::kCategorical;
  EXPECT_EQ(ErrorsOfAgreement(&WorkerState::types, types, types), Same(3, "none"));
  EXPECT_EQ(ErrorsOfAgreement(&WorkerState::types, {}, numbers), Same(3, "none"));
}

TEST(Handshake, AHashKnowsCategories) {
  GrownTree tree(3);
  tree[0].left = 1;
  tree[0].right = 2;
  auto const by_threshold = HashOf(tree);
  tree[0].categories = {1};
  auto const by_category = HashOf(tree);
  tree[0].categories = {2};
  EXPECT_NE(by_category, by_threshold);
  EXPECT_NE(by_category, HashOf(tree));
}
}  // namespace
}  // namespace gpu_exact
