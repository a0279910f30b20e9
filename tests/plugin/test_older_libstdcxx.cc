/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What plugin/load/older_libstdcxx.cc, which is linked into this program, has in the place of the
 *        library's. That the module asks for nothing newer is in tests/package.
 */
#include <gtest/gtest.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <thread>

namespace gpu_exact {
namespace {
struct Counted : std::exception {
  explicit Counted(std::shared_ptr<int> p_alive) : alive{std::move(p_alive)} {}
  std::shared_ptr<int> alive;  // one use of it for each exception that is alive
};
}  // namespace

TEST(OlderLibstdcxx, ExceptionLivesAsLongAsItsPointers) {
  auto alive = std::make_shared<int>();
  {
    auto first = std::make_exception_ptr(Counted{alive});
    std::exception_ptr last;
    {
      auto second = first;
      last = second;
      first = nullptr;
    }
    EXPECT_EQ(first, nullptr);
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_THROW(std::rethrow_exception(last), Counted);
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(OlderLibstdcxx, ThreadWaitsForAnother) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn{0};
  std::thread other{[&] {
    for (int round = 0; round < 100; ++round) {
      std::unique_lock<std::mutex> lock{mutex};
      changed.wait(lock, [&] { return turn % 2 == 1; });
      ++turn;
      changed.notify_one();
    }
  }};
  for (int round = 0; round < 100; ++round) {
    std::unique_lock<std::mutex> lock{mutex};
    changed.wait(lock, [&] { return turn % 2 == 0; });
    ++turn;
    changed.notify_one();
  }
  other.join();
  EXPECT_EQ(turn, 200);
}

TEST(OlderLibstdcxx, StringStreamWithoutArgument) {
  std::ostringstream out;
  out << "trees: " << 12;
  EXPECT_EQ(out.str(), "trees: 12");
}

TEST(OlderLibstdcxx, NewOfTooMany) {
  std::size_t volatile n = static_cast<std::size_t>(-1) / 2;
  EXPECT_THROW(delete[] new long[n], std::bad_array_new_length);
}
}  // namespace gpu_exact
