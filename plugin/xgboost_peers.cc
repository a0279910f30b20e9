/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "xgboost_peers.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/collective/comm_group.h"
#include "src/collective/communicator-inl.h"
#include "tell_all.h"

namespace gpu_exact {
namespace {
namespace coll = xgboost::collective;

/**
 * @brief The last byte of every part that is sent.
 *
 * XGBoost may notice a lost connection one call late: it then passes on zeros in the place of what it
 * has not received, and calls that a success, on that worker and on those that get the zeros. Where
 * there is nothing else to send it still makes all wait for all.
 */
constexpr char kComplete = 0x5a;

/** @brief XGBoost reports errors as a list, from what was tried to the cause. */
std::string Cause(std::string report) {
  if (auto const last = report.rfind("\n- "); last != std::string::npos) {
    report = report.substr(last + 3);
  }
  report = report.substr(0, report.find('\n'));
  if (auto const place = report.find("]: "); place != std::string::npos) {
    report = report.substr(place + 3);  // where in XGBoost's sources, and when
  }
  return report;
}

std::shared_ptr<coll::Coll> Backend() {
  return coll::GlobalCommGroup()->Backend(xgboost::DeviceOrd::CPU());
}

coll::Comm const& Connections() {
  return coll::GlobalCommGroup()->Ctx(nullptr, xgboost::DeviceOrd::CPU());
}

template <typename T>
xgboost::common::Span<std::int8_t> Bytes(T* data, std::size_t n) {
  return {reinterpret_cast<std::int8_t*>(data), n * sizeof(T)};
}

/**
 * @brief Those whose connection has ended, as far as this worker has noticed; from four workers on
 *        XGBoost connects each with some of the others only.
 *
 * What they sent before may be unread, so that reading a byte would not tell.
 */
std::vector<std::int32_t> RanksThatAreGone(coll::Comm const& comm) {
  std::vector<std::int32_t> gone;
  for (std::int32_t rank = 0; rank < comm.World() && !comm.IsFederated(); ++rank) {
    bool const is_connected = rank != comm.Rank() && comm.HasChan(rank);
    if (auto const socket = is_connected ? comm.Chan(rank)->Socket() : nullptr) {
      pollfd connection{socket->Handle(), POLLRDHUP, 0};  // what else ends it is told unasked
      if (poll(&connection, 1, 0) > 0) {
        gone.push_back(rank);
      }
    }
  }
  return gone;
}

/**
 * @brief Everybody's part to everybody, both ways around the ring of workers: in half as many steps as
 *        XGBoost's own, each of which takes a tenth of a millisecond on one machine.
 */
coll::Result AllGatherBothWays(coll::Comm const& comm, xgboost::common::Span<std::int8_t> parts) {
  auto const n = comm.World();
  auto const rank = comm.Rank();
  auto const length = parts.size() / n;
  auto const part = [&](std::int32_t of) { return parts.subspan((of + n) % n * length, length); };
  auto const next = comm.Chan((rank + 1) % n);
  auto const previous = comm.Chan((rank + n - 1) % n);
  auto result = coll::Success();
  for (std::int32_t step = 1; step <= n / 2 && result.OK(); ++step) {
    // Block() tells what becomes of these. What is last may come from one side alone.
    static_cast<void>(next->SendAll(part(rank - step + 1)));
    static_cast<void>(previous->RecvAll(part(rank - step)));
    if (2 * step != n) {
      static_cast<void>(previous->SendAll(part(rank + step - 1)));
      static_cast<void>(next->RecvAll(part(rank + step)));
    }
    result = comm.Block();
  }
  return result;
}
}  // namespace

GroupToken CurrentGroup() {
  return coll::GetWorldSize() == 1 ? GroupToken{} : GroupToken{Backend()};
}

XGBoostPeers::XGBoostPeers() : rank_{coll::GetRank()}, size_{coll::GetWorldSize()} {}

void XGBoostPeers::AllGather(void* inout, std::size_t bytes) {
  this->CheckThread();
  auto const length = bytes + 1;
  std::vector<char> parts(length * size_);
  auto* const own = static_cast<char*>(inout);
  std::copy_n(own + bytes * rank_, bytes, parts.begin() + length * rank_);
  parts[length * rank_ + bytes] = kComplete;
  auto const& connections = Connections();
  auto const all = Bytes(parts.data(), parts.size());
  this->Check(connections.IsFederated() ? Backend()->Allgather(nullptr, connections, all)
                                        : AllGatherBothWays(connections, all));
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    auto const part = parts.cbegin() + length * rank;
    if (part[bytes] != kComplete) {
      this->Lose("nothing, but rank " + std::to_string(rank) + " has not been heard.");
    }
    std::copy_n(part, bytes, own + bytes * rank);
  }
}

void XGBoostPeers::AllReduce(std::uint64_t* inout, std::size_t n) {
  this->CheckThread();
  if (n != 0) {
    this->Check(Backend()->Allreduce(nullptr, Connections(), Bytes(inout, n),
                                     xgboost::ArrayInterfaceHandler::kU8, coll::Op::kSum));
    std::vector<char> all_are_here(size_);
    this->AllGather(all_are_here.data(), 1);
  }
}

/** @brief In another thread XGBoost would do nothing, and call it a success. */
void XGBoostPeers::CheckThread() const {
  if (coll::GetRank() != rank_ || coll::GetWorldSize() != size_) {
    throw PeerError{"This thread is not that of rank " + std::to_string(rank_) + " of " +
                    std::to_string(size_) +
                    " any more: train in the thread, and inside of the communicator, that the"
                    " first tree was grown in."};
  }
}

void XGBoostPeers::Check(coll::Result const& result) const {
  if (!result.OK()) {
    this->Lose(Cause(result.Report()));
  }
}

void XGBoostPeers::Lose(std::string const& cause) const {
  auto const gone = RanksThatAreGone(Connections());
  throw PeerError{"Rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                  " has lost another worker" + (gone.empty() ? "" : " (" + NameRanks(gone) + ")") +
                  ", which was killed, raised an error or waits for"
                  " something else: see the other workers' logs, and import xgboost_gpu_exact on"
                  " every worker. XGBoost says: " +
                  cause};
}

std::shared_ptr<Peers> CurrentPeers() {
  return coll::GetWorldSize() == 1 ? nullptr : std::make_shared<XGBoostPeers>();
}
}  // namespace gpu_exact
