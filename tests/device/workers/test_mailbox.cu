/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Messages of threads of one process, call after call, through the two places of a box.
 */
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "device/runtime/device_context.cuh"
#include "device/workers/mailbox.cuh"
#include "host/thread_communicator.h"
#include "tests/device/device_arrays.cuh"
#include "tests/device/workers/worker_test.h"

namespace gpu_exact {
namespace {
constexpr std::chrono::seconds kDeadline{60};

/** @brief Says who sent a word, in which call. */
std::uint32_t Word(std::int32_t from, int call, std::uint64_t i) {
  return static_cast<std::uint32_t>(1 + i * 10000 + call * 20 + from);
}

class MailboxTest : public WorkerTest {
 protected:
  /** @param lengths Of the parts, in turn. */
  static void Check(std::int32_t n_workers, std::vector<std::uint64_t> const& lengths,
                    int n_calls) {
    ThreadWorkers workers{n_workers};
    std::vector<int> n_wrong(n_workers, 0);
    workers.Run([&](std::int32_t rank) {
      DeviceContext context{-1};
      DeviceContext::Scope const scope{context};
      auto const mailbox = Mailbox::Make(workers.Worker(rank), kDeadline);
      ASSERT_NE(mailbox, nullptr);
      EXPECT_GE(context.Bytes(), 2 * Mailbox::kCapacity);
      std::vector<DeviceBuffer<std::uint32_t>> words;  // of each call: none is waited for
      std::vector<std::vector<std::uint32_t>> sent(n_calls), want(n_calls);
      for (int call = 0; call < n_calls; ++call) {
        std::vector<std::uint64_t> begins{0};
        for (std::int32_t from = 0; from < n_workers; ++from) {
          begins.push_back(begins.back() + lengths[(call + 3 * from) % lengths.size()]);
          for (std::uint64_t i = 0; i < begins[from + 1] - begins[from]; ++i) {
            want[call].push_back(Word(from, call, i));
            sent[call].push_back(from == rank ? want[call].back() : 0);
          }
        }
        EXPECT_TRUE(Mailbox::Takes(begins));
        words.push_back(ToDevice(sent[call]));
        mailbox->AllGather(words.back().Data(), begins);
      }
      for (int call = 0; call < n_calls; ++call) {
        n_wrong[rank] += ToHost(words[call].Data(), want[call].size()) == want[call] ? 0 : 1;
      }
      mailbox->Check();
    });
    EXPECT_EQ(n_wrong, std::vector<int>(n_workers, 0));
  }
};

TEST_F(MailboxTest, CallAfterCall) {
  Check(1, {5}, 2);
  for (std::int32_t n_workers : {2, 3, 5}) {
    Check(n_workers, {1, 0, 1023, 1024, 1025, 7}, Scaled(40, 6));
  }
  Check(2, {0}, 3);
}

/** @brief More words than all blocks have at a time, and as many as fit. */
TEST_F(MailboxTest, LongMessages) {
  std::uint64_t const all = Mailbox::kCapacity / sizeof(std::uint32_t);
  Check(2, {Scaled(all / 2, 40000u)}, 5);
  Check(2, {100000, 3}, 6);
  EXPECT_TRUE(Mailbox::Takes({0, all}));
  EXPECT_FALSE(Mailbox::Takes({0, all / 2, all + 1}));
}

/** @brief Where one of several says no, none has a box. */
TEST_F(MailboxTest, AllHaveOneOrNone) {
  ThreadWorkers too_many{Mailbox::kMostWorkers + 1};
  too_many.Run([&](std::int32_t rank) {
    EXPECT_EQ(Mailbox::Make(too_many.Worker(rank), kDeadline), nullptr);
  });
  setenv("GPU_EXACT_PEER_MEMORY", "0", 1);
  ThreadWorkers workers{2};
  workers.Run([&](std::int32_t rank) {
    EXPECT_EQ(Mailbox::Make(workers.Worker(rank), kDeadline), nullptr);
  });
  unsetenv("GPU_EXACT_PEER_MEMORY");
}

/** @brief A worker that fails between two calls does not leave the other one waiting. */
TEST_F(MailboxTest, AWorkerThatFailsEndsTheCall) {
  ThreadWorkers workers{2};
  std::vector<int> n_ended(2, 0);
  auto const run = [&](std::int32_t rank) {
    DeviceContext context{-1};
    DeviceContext::Scope const scope{context};
    auto const mailbox = Mailbox::Make(workers.Worker(rank), kDeadline);
    auto const words = ToDevice(std::vector<std::uint32_t>(2, 1));
    mailbox->AllGather(words.Data(), {0, 1, 2});
    if (rank == 1) {
      Synchronize();
      throw std::runtime_error{"has failed"};
    }
    try {
      mailbox->AllGather(words.Data(), {0, 1, 2});
    } catch (WorkerError const&) {
      n_ended[rank] = 1;
    }
    Synchronize();
  };
  EXPECT_THROW(workers.Run(run), std::runtime_error);
  EXPECT_EQ(n_ended, (std::vector<int>{1, 0}));
}
}  // namespace
}  // namespace gpu_exact
