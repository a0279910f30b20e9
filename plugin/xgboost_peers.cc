/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "xgboost_peers.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/collective/comm_group.h"

extern "C" int XGCommunicatorAllgather(void* inout, std::size_t bytes);  // in no header of XGBoost

namespace gpu_exact {
namespace {
/**
 * @brief The last byte of every part that is sent.
 *
 * XGBoost may notice a lost connection one call late: it then passes on zeros in the place of what it
 * has not received, and calls that a success, on that worker and on those that get the zeros.
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
}  // namespace

GroupToken CurrentGroup() {
  if (XGCommunicatorGetWorldSize() == 1) {
    return {};
  }
  return xgboost::collective::GlobalCommGroup()->Backend(xgboost::DeviceOrd::CPU());
}

XGBoostPeers::XGBoostPeers()
    : rank_{XGCommunicatorGetRank()}, size_{XGCommunicatorGetWorldSize()} {}

void XGBoostPeers::AllGather(void* inout, std::size_t bytes) {
  this->CheckThread();
  if (bytes == 0) {  // which XGBoost takes for an error
    return;
  }
  auto const length = bytes + 1;
  std::vector<char> parts(length * size_);
  auto* const own = static_cast<char*>(inout);
  std::copy_n(own + bytes * rank_, bytes, parts.begin() + length * rank_);
  parts[length * rank_ + bytes] = kComplete;
  this->Check(XGCommunicatorAllgather(parts.data(), parts.size()));
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    auto const part = parts.cbegin() + length * rank;
    if (part[bytes] != kComplete) {
      this->Lose("nothing, but rank " + std::to_string(rank) + " has not been heard.");
    }
    std::copy_n(part, bytes, own + bytes * rank);
  }
}

void XGBoostPeers::AllReduce(std::uint64_t* inout, std::size_t n) {
  constexpr int kUint64 = 11;  // of xgboost::ArrayInterfaceHandler::Type
  constexpr int kSum = 2;      // of xgboost::collective::Op
  this->CheckThread();
  if (n != 0) {
    this->Check(XGCommunicatorAllreduce(inout, n, kUint64, kSum));
    std::vector<char> all_are_here(size_);
    this->AllGather(all_are_here.data(), 1);
  }
}

/** @brief In another thread XGBoost would do nothing, and call it a success. */
void XGBoostPeers::CheckThread() const {
  if (XGCommunicatorGetRank() != rank_ || XGCommunicatorGetWorldSize() != size_) {
    throw PeerError{"This thread is not that of rank " + std::to_string(rank_) + " of " +
                    std::to_string(size_) +
                    " any more: train in the thread, and inside of the communicator, that the"
                    " first tree was grown in."};
  }
}

void XGBoostPeers::Check(int status) const {
  if (status != 0) {
    this->Lose(Cause(XGBGetLastError()));
  }
}

void XGBoostPeers::Lose(std::string const& cause) const {
  throw PeerError{"Rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                  " has lost another worker, which was killed, raised an error or waits for"
                  " something else: see the other workers' logs, and import xgboost_gpu_exact on"
                  " every worker. XGBoost says: " +
                  cause};
}

std::shared_ptr<Peers> CurrentPeers() {
  return XGCommunicatorGetWorldSize() == 1 ? nullptr : std::make_shared<XGBoostPeers>();
}
}  // namespace gpu_exact
