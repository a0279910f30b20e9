/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Threads that work as one group: what they tell each other, and how a failure ends.
 */
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "host/all_or_none.h"
#include "host/thread_communicator.h"
#include "tests/support/faults.h"

namespace gpu_exact {
namespace {
TEST(ThreadCommunicator, EverybodyHearsEverybody) {
  for (std::int32_t size : {1, 2, 3, 7}) {
    ThreadWorkers workers{size};
    for (std::size_t n : {0, 1, 1000}) {
      std::atomic<int> n_right{0};
      workers.Run([&](std::int32_t rank) {
        Communicator* comm = workers.Worker(rank);
        std::vector<std::uint32_t> all(size * n, 99);
        std::iota(all.begin() + rank * n, all.begin() + (rank + 1) * n, 1000000 * rank);
        comm->AllGather(all.data(), n * sizeof(all[0]));
        std::vector<std::uint64_t> sums(n, std::uint64_t{1} << 63 | rank);
        comm->AllReduce(sums.data(), n);
        bool right = comm->Rank() == rank && comm->Size() == size;
        for (std::size_t i = 0; i < all.size(); ++i) {
          right = right && all[i] == 1000000 * (i / n) + i % n;
        }
        for (std::uint64_t sum : sums) {
          right =
              right && sum == (static_cast<std::uint64_t>(size % 2) << 63) + size * (size - 1) / 2;
        }
        n_right += right ? 1 : 0;
      });
      EXPECT_EQ(n_right, size) << size << " workers, " << n << " values";
    }
  }
}

/** @brief Nobody waits for the one that is gone, whoever it is; the group works again afterwards. */
TEST(ThreadCommunicator, AFailureEndsEverywhere) {
  constexpr std::int32_t kSize = 3;
  ThreadWorkers workers{kSize};
  for (std::int32_t failing = 0; failing < kSize; ++failing) {
    for (auto pause : {0, 5}) {  // while the others are awake, and when they sleep
      std::vector<std::string> told(kSize);
      auto run = [&](std::int32_t rank) {
        Communicator* comm = workers.Worker(rank);
        std::vector<char> all(kSize);
        comm->AllGather(all.data(), 1);
        if (rank == failing) {
          std::this_thread::sleep_for(std::chrono::milliseconds{pause});
          throw std::domain_error{"out of order"};
        }
        try {
          comm->AllGather(all.data(), 1);
        } catch (WorkerError const& e) {
          told[rank] = e.what();
          throw;
        }
      };
      EXPECT_THROW(workers.Run(run), std::domain_error);
      for (std::int32_t rank = 0; rank < kSize; ++rank) {
        std::string const want = rank == failing ? ""
                                                 : "Rank " + std::to_string(failing) +
                                                       " of 3 has failed; its own error says why.";
        EXPECT_EQ(told[rank], want);
      }
      workers.Run([&](std::int32_t rank) {
        std::vector<char> all(kSize);
        workers.Worker(rank)->AllGather(all.data(), 1);
      });
    }
  }
}

/** @brief While it lives, the process has room for the stack of one more thread, not of two. */
class RoomForOneThread {
 public:
  RoomForOneThread() {
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, kStack);
    pthread_getattr_default_np(&attributes_);
    pthread_setattr_default_np(&large);
    pthread_attr_destroy(&large);
    getrlimit(RLIMIT_AS, &limit_);
    std::size_t n_pages{0};
    std::ifstream{"/proc/self/statm"} >> n_pages;
    rlimit const little{n_pages * sysconf(_SC_PAGESIZE) + kStack + kStack / 2, limit_.rlim_max};
    setrlimit(RLIMIT_AS, &little);
  }
  ~RoomForOneThread() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&attributes_);
    pthread_attr_destroy(&attributes_);
  }
  RoomForOneThread(RoomForOneThread const&) = delete;
  RoomForOneThread& operator=(RoomForOneThread const&) = delete;

 private:
  static constexpr std::size_t kStack = std::size_t{1} << 30;
  pthread_attr_t attributes_;
  rlimit limit_;
};

/** @brief Those that there are end, instead of the process. */
TEST(ThreadCommunicator, NotAllThreadsCanBeHad) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes more than a stack for each thread";
#endif
  std::string told;
  {
    RoomForOneThread const room;
    ThreadWorkers const two{2};
    EXPECT_EQ(two.Size(), 2);
  }
  {
    RoomForOneThread const room;
    try {
      ThreadWorkers const three{3};
    } catch (std::runtime_error const& e) {
      told = e.what();
    }
  }
  EXPECT_NE(told.find("A thread for each of 3 GPUs cannot be had"), std::string::npos) << told;
  EXPECT_NE(told.find("name fewer GPUs in gpu_exact_devices"), std::string::npos) << told;
}

TEST(ThreadCommunicator, TheCallerWaitsForTheLast) {
  ThreadWorkers workers{3};
  std::atomic<int> n_done{0};
  workers.Run([&](std::int32_t rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5 * rank});  // the caller falls asleep
    ++n_done;
  });
  EXPECT_EQ(n_done, 3);
}

TEST(ThreadCommunicator, TheGroupWorksAgainAfterAPeerError) {
  ThreadWorkers workers{2};
  EXPECT_THROW(workers.Run([](std::int32_t rank) {
    if (rank == 1) {
      throw WorkerError{"by a step that this worker takes with others"};
    }
  }),
               WorkerError);
  workers.Run([&](std::int32_t rank) {
    std::vector<char> all(2);
    workers.Worker(rank)->AllGather(all.data(), 1);
  });
}

TEST(ThreadCommunicator, WhatOneCannotDoNoneDoes) {
  constexpr std::int32_t kSize = 3;
  ThreadWorkers workers{kSize};
  std::vector<std::string> told(kSize);
  workers.Run([&](std::int32_t rank) {
    Communicator* comm = workers.Worker(rank);
    AllOrNone(comm, [] {});
    try {
      AllOrNone(comm, [&] {
        if (rank == 1) {
          throw std::bad_alloc{};
        }
      });
    } catch (std::bad_alloc const&) {
      told[rank] = "bad_alloc";
    } catch (WorkerError const& e) {
      told[rank] = e.what();
    }
    AllOrNone(comm, [] {});  // the group goes on
  });
  EXPECT_EQ(told[1], "bad_alloc");
  EXPECT_EQ(told[0].find("Rank 1 of 3: Out of host memory"), 0u) << told[0];
  EXPECT_EQ(told[2], told[0]);
}

/** @brief Who lacks memory would go before the others have read what it shows. */
TEST(ThreadCommunicator, AStepAllocatesNothing) {
  ThreadWorkers workers{2};
  workers.Run([&](std::int32_t rank) {
    Communicator* comm = workers.Worker(rank);
    JointStep step{comm};
    auto const meet = [&] { comm->AllGather(nullptr, 0); };
    meet();
    if (rank == 0) {
      GpuExactFaultBegin(static_cast<int>(faults::Kind::kHost), 0, 0, 0);
    }
    meet();
    step.Run([] {});
    if (rank == 0) {
      GpuExactFaultEnd();
    }
    meet();
  });
  long long first, last;
  EXPECT_EQ(GpuExactFaultSite(0, &first, &last), nullptr);
}

/** @brief So that what a worker tells of a failure is 1 KiB; between characters. */
TEST(ThreadCommunicator, LongWordsAreCut) {
  ThreadWorkers workers{2};
  std::string told;
  workers.Run([&](std::int32_t rank) {
    try {
      AllOrNone(workers.Worker(rank), [&] {
        if (rank == 1) {
          throw std::runtime_error{std::string(1014, 'x') + "\u20ac"};
        }
      });
    } catch (WorkerError const& e) {
      told = e.what();
    } catch (std::runtime_error const&) {  // the worker's own
    }
  });
  EXPECT_EQ(told, "Rank 1 of 2: " + std::string(1014, 'x'));
}

/** @brief Who meets again after a failure is not taken for the one that failed. */
TEST(ThreadCommunicator, NobodyMeetsAfterAFailure) {
  ThreadWorkers workers{3};
  std::atomic<bool> has_met_twice{false};
  std::atomic<int> n_refused{0};
  EXPECT_THROW(workers.Run([&](std::int32_t rank) {
    auto const meet = [&] {
      try {
        workers.Worker(rank)->AllGather(nullptr, 0);
      } catch (WorkerError const&) {
        ++n_refused;
      }
    };
    if (rank == 0) {
      throw std::runtime_error{"the first"};
    }
    if (rank == 1) {
      meet();
      meet();
      has_met_twice = true;
    }
    while (!has_met_twice) {
      std::this_thread::yield();
    }
    if (rank == 2) {
      meet();
    }
  }),
               std::runtime_error);
  EXPECT_EQ(n_refused, 3);
}
}  // namespace
}  // namespace gpu_exact
