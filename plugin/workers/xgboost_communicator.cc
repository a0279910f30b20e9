/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "workers/xgboost_communicator.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "load/release.h"
#include "src/collective/comm_group.h"
#include "src/collective/communicator-inl.h"
#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
namespace coll = xgboost::collective;
using xgboost::common::Span;

/** @brief Ends every part. A worker that does something else hardly sends the same byte there. */
constexpr char kComplete = 0x5a;

coll::Comm const& Connections() {
  return coll::GlobalCommGroup()->Ctx(nullptr, xgboost::DeviceOrd::CPU());
}

template <typename T>
Span<char> Bytes(std::vector<T>* values) {
  return {reinterpret_cast<char*>(values->data()), values->size() * sizeof(T)};
}

/** @brief Find the ranks with which this worker is connected: from four workers on not all of
 *         them. */
std::vector<std::int32_t> Connected(coll::Comm const& comm) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < comm.World(); ++rank) {
    auto const channel = rank != comm.Rank() ? ChannelTo(comm, rank) : nullptr;
    if (channel && channel->Socket()) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

/**
 * @brief Find those whose connection has ended, as far as this worker has noticed.
 *
 * What they sent before may be unread, so that reading a byte would not tell.
 */
std::vector<std::int32_t> RanksThatAreGone(coll::Comm const& comm) {
  std::vector<std::int32_t> gone;
  for (auto rank : Connected(comm)) {
    pollfd connection{comm.Chan(rank)->Socket()->Handle(), POLLRDHUP, 0};  // other ends: unasked
    if (poll(&connection, 1, 0) > 0) {
      gone.push_back(rank);
    }
  }
  return gone;
}

/**
 * @brief End all connections: nobody waits for this worker any more, or reads what is left of a call that
 *        has failed for the answer to another one.
 */
void Disconnect(coll::Comm const& comm) {
  for (auto rank : Connected(comm)) {
    shutdown(comm.Chan(rank)->Socket()->Handle(), SHUT_RDWR);  // in forked processes, too
  }
}

/** @brief Tell what the last system call has failed for; empty: it was interrupted, and may be made
 *         again. */
std::string Failure() {
  return errno == EINTR
             ? ""
             : "A connection has failed: " + std::generic_category().message(errno) + ".";
}

/** @brief Moves bytes to or from a worker. */
struct Transfer {
  enum Direction : std::int16_t { kSend = POLLOUT, kReceive = POLLIN };

  std::int32_t rank;
  Direction direction;
  Span<char> left;  // still to be sent, or received

  /** @brief Move what moves without waiting. @return Why nothing ever will; empty: no such reason. */
  std::string Advance(int connection) {
    auto const n = direction == kSend
                       ? send(connection, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                       : recv(connection, left.data(), left.size(), MSG_DONTWAIT);
    if (n < 0) {
      return errno == EAGAIN ? "" : Failure();
    }
    left = left.subspan(n);
    return n == 0 ? "A connection has ended." : "";
  }
};

/**
 * @brief Make all transfers, over XGBoost's connections.
 *
 * Not by its loop of sends and receives. That may take the end of a connection for a success, and wait
 * for ever in the next call: an operation that fails is called done before its error is kept.
 *
 * @return Why they cannot be made; empty: they are.
 */
std::string MakeAll(coll::Comm const& comm, std::vector<Transfer> transfers) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  constexpr std::chrono::seconds kMost{std::numeric_limits<int>::max() / 1000};  // poll() can wait
  auto const timeout = std::min(comm.Timeout(), kMost);
  constexpr std::chrono::microseconds kAwake{500};  // workers are seldom apart for longer
  auto const is_done = [](Transfer const& transfer) { return transfer.left.empty(); };
  auto const handle = [&](Transfer const& transfer) {
    return comm.Chan(transfer.rank)->Socket()->Handle();
  };
  auto const begin = Clock::now();
  auto deadline = begin + timeout;
  std::string error;
  while (error.empty()) {
    transfers.erase(std::remove_if(transfers.begin(), transfers.end(), is_done), transfers.end());
    if (transfers.empty()) {
      break;
    }
    if (Clock::now() - begin < kAwake) {
      for (std::size_t i = 0; i < transfers.size() && error.empty(); ++i) {
        error = transfers[i].Advance(handle(transfers[i]));
      }
      std::this_thread::yield();
      continue;
    }
    std::vector<pollfd> connections;
    for (auto const& transfer : transfers) {
      connections.push_back({handle(transfer), transfer.direction, 0});
    }
    auto const wait = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    auto const n_ready = poll(connections.data(), connections.size(),
                              static_cast<int>(std::max(wait, Milliseconds{0}).count()));
    if (n_ready < 0) {
      error = Failure();
    } else if (n_ready == 0) {
      error = "Nothing has come for " + std::to_string(timeout.count()) + " s (dmlc_timeout).";
    } else {
      deadline = Clock::now() + timeout;
      for (std::size_t i = 0; i < transfers.size() && error.empty(); ++i) {
        if (connections[i].revents != 0) {
          error = transfers[i].Advance(connections[i].fd);
        }
      }
    }
  }
  return error;
}

/** @brief Joins the workers in a ring: each is connected with the next one and with the previous
 *         one. */
class Ring {
 public:
  explicit Ring(coll::Comm const& comm)
      : comm_{comm},
        n_{comm.World()},
        rank_{comm.Rank()},
        next_{(rank_ + 1) % n_},
        previous_{(rank_ + n_ - 1) % n_} {}

  /**
   * @brief Send every part to every worker, both ways around: in half as many steps as one way.
   * @return Why it cannot be done; empty: it is done.
   */
  [[nodiscard]] std::string AllGather(std::vector<char>* parts) const {
    auto const all = Bytes(parts);
    std::string error;
    for (std::int32_t step = 1; step <= n_ / 2 && error.empty(); ++step) {
      std::vector<Transfer> transfers{{next_, Transfer::kSend, Part(all, rank_ - step + 1)},
                                      {previous_, Transfer::kReceive, Part(all, rank_ - step)}};
      if (2 * step != n_) {  // what is last may come from one side alone
        transfers.push_back({previous_, Transfer::kSend, Part(all, rank_ + step - 1)});
        transfers.push_back({next_, Transfer::kReceive, Part(all, rank_ + step)});
      }
      error = MakeAll(comm_, std::move(transfers));
    }
    return error;
  }

  /**
   * @brief Add everybody's parts on their way around. Each is whole when it is with the worker of its
   *        rank; what else is in `parts` is of no use then.
   * @return Why it cannot be done; empty: it is done.
   */
  [[nodiscard]] std::string ReduceScatter(std::vector<std::uint64_t>* parts) const {
    auto const all = Bytes(parts);
    std::vector<std::uint64_t> received(parts->size() / n_);
    std::string error;
    for (std::int32_t step = 1; step < n_ && error.empty(); ++step) {
      error = MakeAll(comm_, {{next_, Transfer::kSend, Part(all, rank_ - step)},
                              {previous_, Transfer::kReceive, Bytes(&received)}});
      auto* const sums = parts->data() + (rank_ + n_ - step - 1) % n_ * received.size();
      std::transform(received.cbegin(), received.cend(), sums, sums, std::plus<>{});
    }
    return error;
  }

 private:
  /** @brief Give the part of a rank, of n of the same length. Ranks go around. */
  [[nodiscard]] Span<char> Part(Span<char> parts, std::int32_t rank) const {
    auto const length = parts.size() / n_;
    return parts.subspan((rank + n_) % n_ * length, length);
  }

  coll::Comm const& comm_;
  std::int32_t n_;
  std::int32_t rank_;
  std::int32_t next_;
  std::int32_t previous_;
};
}  // namespace

GroupToken CurrentGroup() {
  return coll::GetWorldSize() == 1
             ? GroupToken{}
             : GroupToken{coll::GlobalCommGroup()->Backend(xgboost::DeviceOrd::CPU())};
}

XGBoostCommunicator::XGBoostCommunicator() : rank_{coll::GetRank()}, size_{coll::GetWorldSize()} {}

void XGBoostCommunicator::AllGather(void* inout, std::size_t bytes) {
  this->CheckThread();
  auto const length = bytes + 1;
  std::vector<char> parts(length * size_);
  auto* const own = static_cast<char*>(inout);
  std::copy_n(own + bytes * rank_, bytes, parts.begin() + length * rank_);
  parts[length * rank_ + bytes] = kComplete;
  this->Check(Ring{Connections()}.AllGather(&parts));
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    auto const part = parts.cbegin() + length * rank;
    this->Check(part[bytes] == kComplete
                    ? ""
                    : "Rank " + std::to_string(rank) + " has sent something else.");
    std::copy_n(part, bytes, own + bytes * rank);
  }
}

void XGBoostCommunicator::AllReduce(std::uint64_t* inout, std::size_t n) {
  this->CheckThread();
  auto const length = (n + size_ - 1) / size_;  // of a part; the last ones may be shorter, or empty
  std::vector<std::uint64_t> parts(length * size_);
  std::copy_n(inout, n, parts.begin());
  this->Check(Ring{Connections()}.ReduceScatter(&parts));
  this->AllGather(parts.data(), length * sizeof(std::uint64_t));
  std::copy_n(parts.cbegin(), n, inout);
}

/** @brief Check the thread: in another one XGBoost has no communicator, or another one. */
void XGBoostCommunicator::CheckThread() const {
  if (coll::GetRank() != rank_ || coll::GetWorldSize() != size_) {
    throw WorkerError{"This thread is not that of rank " + std::to_string(rank_) + " of " +
                      std::to_string(size_) +
                      " any more: train in the thread, and inside of the communicator, that the"
                      " first tree was grown in."};
  }
}

void XGBoostCommunicator::Check(std::string const& error) const {
  if (error.empty()) {
    return;
  }
  auto const& comm = Connections();
  auto const gone = RanksThatAreGone(comm);
  Disconnect(comm);
  throw WorkerError{"Rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                    " has lost another worker" +
                    (gone.empty() ? "" : " (" + NameRanks(gone) + ")") +
                    ", which was killed, raised an error or waits for"
                    " something else: see the other workers' logs, and import xgboost_gpu_exact on"
                    " every worker. " +
                    error};
}

std::shared_ptr<Communicator> CurrentCommunicator() {
  return coll::GetWorldSize() == 1 ? nullptr : std::make_shared<XGBoostCommunicator>();
}
}  // namespace gpu_exact
