/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements device_communicator.cuh: the three transports.
 */
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>

#include "device/runtime/pool_release_threshold.cuh"
#include "device/runtime/stream_event.cuh"
#include "device/workers/device_communicator.cuh"
#include "device/workers/mailbox.cuh"
#include "device/workers/nccl.cuh"
#include "host/all_or_none.h"

namespace gpu_exact {
namespace {
char* At(void* p, std::uint64_t offset) { return static_cast<char*>(p) + offset; }
char const* At(void const* p, std::uint64_t offset) { return static_cast<char const*>(p) + offset; }

/**
 * @brief Lets threads of one process copy what they need out of each other's memory.
 *
 * Streams wait for each other by events; threads meet before and after, so that an event is recorded
 * before another stream waits for it, and waited for before it is recorded again.
 */
class PeerCopyCommunicator final : public DeviceCommunicator {
 public:
  explicit PeerCopyCommunicator(Communicator* comm)
      : DeviceCommunicator{comm}, workers_(comm->Size()) {
    int device{0};
    EXACT_CUDA(cudaGetDevice(&device));
    workers_[Rank()] = {device, written_.Get(), read_.Get()};
    comm->AllGather(workers_.data(), sizeof(Worker));
    for (Worker const& w : workers_) {
      static_cast<void>(ReachDevice(w.device));  // else copies are staged
      ReachPool(w.device);                       // if XGBoost is told to use it
    }
  }

  void AllGather(void* inout, Parts const& parts) override {
    this->Exchange(inout, parts, [&](std::int32_t rank, Shown const& theirs) {
      CopyAsync(At(inout, parts.Begin(rank)), At(theirs.data, parts.Begin(rank)),
                parts.Bytes(rank));
    });
  }
  void AllToAll(void const* send, Parts const& send_parts, void* receive,
                Parts const& receive_parts) override {
    this->CopyOwn(send, send_parts, receive, receive_parts);
    this->Exchange(send, send_parts, [&](std::int32_t rank, Shown const& theirs) {
      CopyAsync(At(receive, receive_parts.Begin(rank)),
                At(theirs.data, theirs.parts->Begin(Rank())), receive_parts.Bytes(rank));
    });
  }
  [[nodiscard]] Transport Kind() const override { return Transport::kCopies; }

 private:
  struct Worker {
    int device;
    cudaEvent_t written;  // what it shows
    cudaEvent_t read;     // what the others show
  };
  struct Shown {
    void const* data;
    Parts const* parts;
  };

  template <typename FnT>
  void Exchange(void const* data, Parts const& parts, FnT&& fn) {
    written_.Record();
    std::vector<Shown> shown(Size());
    shown[Rank()] = {data, &parts};
    JointStep step{OfHost()}, end{OfHost()};
    OfHost()->AllGather(shown.data(), sizeof(Shown));
    try {
      step.Run([&] {
        for (std::int32_t rank = 0; rank < Size(); ++rank) {
          if (rank != Rank()) {
            EXACT_CUDA(cudaStreamWaitEvent(Stream(), workers_[rank].written, 0));
            fn(rank, shown[rank]);
          }
        }
        read_.Record();
      });
      end.Run([&] {  // nobody goes, and its events with it, before all have named them
        for (std::int32_t rank = 0; rank < Size(); ++rank) {
          if (rank != Rank()) {  // before anything is written there
            EXACT_CUDA(cudaStreamWaitEvent(Stream(), workers_[rank].read, 0));
          }
        }
      });
    } catch (...) {  // nobody frees what others are still reading
      Succeeds(cudaStreamSynchronize(Stream()));
      OfHost()->AllGather(nullptr, 0);
      throw;
    }
  }

  StreamEvent written_;
  StreamEvent read_;
  std::vector<Worker> workers_;
};

/** @brief Tell how long to wait for the others. */
std::chrono::seconds Deadline() {
  char const* text = std::getenv("GPU_EXACT_PEER_TIMEOUT");
  int const seconds = text == nullptr ? 0 : std::atoi(text);
  return std::chrono::seconds{seconds > 0 ? seconds : 60};
}

/** @brief Owns a stream that every thread may name. */
class OwnStream {
 public:
  OwnStream() { EXACT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { Succeeds(cudaStreamDestroy(stream_)); }
  OwnStream(OwnStream const&) = delete;
  OwnStream& operator=(OwnStream const&) = delete;

  [[nodiscard]] cudaStream_t Get() const { return stream_; }

 private:
  cudaStream_t stream_{nullptr};
};

/**
 * @brief Uses NCCL, with one device for each worker. A call that hangs is aborted at the deadline.
 *
 * As calls shall not block, NCCL launches its kernels from threads of its own, for which the
 * stream of this thread would be another one.
 */
class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(Communicator* comm, Nccl const* nccl) : DeviceCommunicator{comm}, nccl_{*nccl} {}
  ~NcclCommunicator() override { this->Abort(); }  // ncclCommDestroy would wait for the others

  void AllGather(void* inout, Parts const& parts) override {
    this->Call([&](std::int32_t rank) {
      this->Send(At(inout, parts.Begin(Rank())), parts.Bytes(Rank()), rank);
      this->Receive(At(inout, parts.Begin(rank)), parts.Bytes(rank), rank);
    });
  }
  void AllToAll(void const* send, Parts const& send_parts, void* receive,
                Parts const& receive_parts) override {
    this->CopyOwn(send, send_parts, receive, receive_parts);
    this->Call([&](std::int32_t rank) {
      this->Send(At(send, send_parts.Begin(rank)), send_parts.Bytes(rank), rank);
      this->Receive(At(receive, receive_parts.Begin(rank)), receive_parts.Bytes(rank), rank);
    });
  }
  void Await() override {
    if (!is_open_) {
      return;
    }
    this->WaitUntil([&] {
      this->State();  // throws where the others' end is broken
      return done_.IsReached();
    });
  }
  [[nodiscard]] Transport Kind() const override { return Transport::kNccl; }

 private:
  /** @brief Connect. That takes NCCL a second, which small tables never need. */
  void Open() {
    std::vector<Nccl::UniqueId> ids(Size());
    AllOrNone(OfHost(), [&] {
      if (Rank() == 0) {
        this->Check(nccl_.GetUniqueId(ids.data()), "ncclGetUniqueId");
      }
    });
    OfHost()->AllGather(ids.data(), sizeof(Nccl::UniqueId));
    is_open_ = true;
    Nccl::Config config;
    int const result = nccl_.CommInitRankConfig(&comm_, Size(), ids[0], Rank(), &config);
    if (result != Nccl::kSuccess && result != Nccl::kInProgress) {
      comm_ = nullptr;  // what there may have been is gone already
    }
    this->Check(result, "ncclCommInitRankConfig");
    this->AwaitCall();
  }
  /** @brief Call fn(rank), which sends to and receives from each other worker, all at a time. */
  template <typename FnT>
  void Call(FnT&& fn) {
    if (!is_open_) {
      this->Open();
    }
    ready_.Record();
    ready_.WaitBy(stream_.Get());
    this->Check(nccl_.GroupStart(), "ncclGroupStart");
    for (std::int32_t rank = 0; rank < Size(); ++rank) {
      if (rank != Rank()) {
        fn(rank);
      }
    }
    // Where a call within the group has failed, too: an open one would take in whatever this thread
    // asks of NCCL later on, for other communicators as well, and do none of it.
    this->Note(nccl_.GroupEnd(), "ncclGroupEnd");
    this->Check(first_failure_.result, first_failure_.call);
    this->AwaitCall();
    done_.Record(stream_.Get());
    done_.WaitBy(Stream());
  }
  void Send(void const* data, std::uint64_t n_bytes, std::int32_t to) {
    if (n_bytes != 0) {
      this->Note(nccl_.Send(data, n_bytes, Nccl::kBytes, to, comm_, stream_.Get()), "ncclSend");
    }
  }
  void Receive(void* data, std::uint64_t n_bytes, std::int32_t from) {
    if (n_bytes != 0) {
      this->Note(nccl_.Recv(data, n_bytes, Nccl::kBytes, from, comm_, stream_.Get()), "ncclRecv");
    }
  }

  static bool IsError(int result) {
    return result != Nccl::kSuccess && result != Nccl::kInProgress;
  }
  /** @brief Note an error within a group of calls, which is ended before anything is thrown. */
  void Note(int result, char const* call) {
    if (IsError(result) && !IsError(first_failure_.result)) {
      first_failure_ = {result, call};
    }
  }
  void Check(int result, char const* call) {
    if (IsError(result)) {
      this->Fail(std::string{"NCCL error \""} + nccl_.GetErrorString(result) + "\" from " + call +
                 ". Train again; if that fails too, restart all workers; NCCL_DEBUG=WARN in their "
                 "environment says more.");
    }
  }
  int State() {
    int state{Nccl::kSuccess};
    this->Check(nccl_.CommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    this->Check(state, "ncclCommGetAsyncError");
    return state;
  }
  /** @brief Record that the last call has been enqueued. */
  void AwaitCall() {
    this->WaitUntil([&] { return this->State() == Nccl::kSuccess; });
  }
  template <typename FnT>
  void WaitUntil(FnT&& is_done) {
    auto const deadline = Deadline();
    auto const begin = std::chrono::steady_clock::now();
    while (!is_done()) {
      if (std::chrono::steady_clock::now() - begin > deadline) {
        this->Fail("A worker has not answered for " + std::to_string(deadline.count()) +
                   " s. Its own error may say why; GPU_EXACT_PEER_TIMEOUT sets the seconds.");
      }
      std::this_thread::yield();
    }
  }
  void Abort() {
    if (comm_ != nullptr) {
      static_cast<void>(nccl_.CommAbort(std::exchange(comm_, nullptr)));
    }
  }
  [[noreturn]] void Fail(std::string const& why) {
    this->Abort();  // kernels that wait for the others end
    throw WorkerError{"Rank " + std::to_string(Rank()) + " of " + std::to_string(Size()) + ": " +
                      why};
  }

  Nccl const& nccl_;
  Nccl::Communicator comm_{nullptr};
  bool is_open_{false};
  struct {
    int result;
    char const* call;
  } first_failure_{Nccl::kSuccess, ""};
  OwnStream stream_;
  StreamEvent ready_;  // what is sent
  StreamEvent done_;
};

/** @brief Goes through the host: for workers that share a device, or have no NCCL. */
class HostStagedCommunicator final : public DeviceCommunicator {
 public:
  explicit HostStagedCommunicator(Communicator* comm) : DeviceCommunicator{comm} {}

  void AllGather(void* inout, Parts const& parts) override {
    std::vector<std::uint64_t> sizes;
    for (std::int32_t rank = 0; rank < Size(); ++rank) {
      sizes.push_back(parts.Bytes(rank));
    }
    this->Stage(At(inout, parts.Begin(Rank())), sizes,
                [&](std::int32_t rank) { return At(inout, parts.Begin(rank)); });
  }
  void AllToAll(void const* send, Parts const& send_parts, void* receive,
                Parts const& receive_parts) override {
    this->CopyOwn(send, send_parts, receive, receive_parts);
    std::vector<std::uint64_t> all(std::size_t{1} * Size() * Size());  // by sender, receiver
    for (std::int32_t rank = 0; rank < Size(); ++rank) {
      all[Rank() * Size() + rank] = send_parts.Bytes(rank);
    }
    OfHost()->AllGather(all.data(), Size() * sizeof(std::uint64_t));
    // A Communicator knows no way to tell one worker alone: all hear what is for one.
    for (std::int32_t to = 0; to < Size(); ++to) {
      std::vector<std::uint64_t> sizes;
      for (std::int32_t from = 0; from < Size(); ++from) {
        sizes.push_back(from == to ? 0 : all[from * Size() + to]);
      }
      this->Stage(At(send, send_parts.Begin(to)), sizes, [&](std::int32_t from) {
        return to == Rank() ? At(receive, receive_parts.Begin(from)) : nullptr;
      });
    }
  }
  [[nodiscard]] Transport Kind() const override { return Transport::kHost; }

 private:
  static constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 24;  // bytes of a worker

  /** @param where where(rank) is what the bytes of a worker are copied to, nullptr: nothing. */
  template <typename FnT>
  void Stage(char const* own, std::vector<std::uint64_t> const& sizes, FnT&& where) {
    auto const longest = *std::max_element(sizes.cbegin(), sizes.cend());
    for (std::uint64_t begin = 0; begin < longest; begin += kAtOnce) {
      auto const n = std::min(kAtOnce, longest - begin);
      auto of = [&](std::int32_t rank) {
        return sizes[rank] <= begin ? 0 : std::min(n, sizes[rank] - begin);
      };
      staged_.resize(Size() * n);
      CopyAsync(staged_.data() + Rank() * n, own + begin, of(Rank()));
      Synchronize();
      OfHost()->AllGather(staged_.data(), n);
      for (std::int32_t rank = 0; rank < Size(); ++rank) {
        if (char* to = rank == Rank() ? nullptr : where(rank); to != nullptr) {
          CopyAsync(to + begin, staged_.data() + rank * n, of(rank));
        }
      }
      Synchronize();
    }
  }

  std::vector<char> staged_;
};

WorkerInfo Introduce() {
  static auto const born = std::chrono::system_clock::now().time_since_epoch().count();
  int device{0};
  cudaDeviceProp prop{};
  EXACT_CUDA(cudaGetDevice(&device));
  EXACT_CUDA(cudaGetDeviceProperties(&prop, device));
  return {getpid(), born, prop.uuid, Nccl::Load() != nullptr ? 1u : 0u};
}

bool SameDevice(WorkerInfo const& a, WorkerInfo const& b) {
  return std::memcmp(&a.device, &b.device, sizeof(a.device)) == 0;
}
}  // namespace

Transport ChooseTransport(std::vector<WorkerInfo> const& workers) {
  auto const& first = workers.front();
  bool one_process{true}, nccl{true};
  for (auto w = workers.cbegin(); w != workers.cend(); ++w) {
    one_process = one_process && w->process == first.process && w->born == first.born;
    nccl = nccl && w->has_nccl != 0 &&
           std::none_of(workers.cbegin(), w, [&](auto const& v) { return SameDevice(v, *w); });
  }
  return one_process ? Transport::kCopies : nccl ? Transport::kNccl : Transport::kHost;
}

void DeviceCommunicator::CopyOwn(void const* send, Parts const& send_parts, void* receive,
                                 Parts const& receive_parts) const {
  CopyAsync(At(receive, receive_parts.Begin(Rank())), At(send, send_parts.Begin(Rank())),
            send_parts.Bytes(Rank()));
}

DeviceCommunicator::DeviceCommunicator(Communicator* comm) : comm_{comm} {}

DeviceCommunicator::~DeviceCommunicator() = default;

void DeviceCommunicator::AllGatherWords(std::uint32_t* inout, Parts const& parts) {
  std::vector<std::uint64_t> words;
  for (std::uint64_t begin : parts.begins) {
    words.push_back(begin * parts.unit / sizeof(std::uint32_t));
  }
  if (mailbox_ != nullptr && Mailbox::Takes(words)) {
    mailbox_->AllGather(inout, words);
  } else {
    this->AllGather(inout, parts);
    this->Await();
  }
}

void DeviceCommunicator::AllToAllAndWait(void const* send, Parts const& send_parts, void* receive,
                                         Parts const& receive_parts) {
  auto const n = static_cast<std::size_t>(Size());
  auto const own = static_cast<std::size_t>(Rank());
  std::vector<std::uint64_t> begins(n * n + 1);  // of words, by sender and receiver
  if (mailbox_ != nullptr) {
    for (std::size_t to = 0; to < n; ++to) {
      begins[own * n + to + 1] =
          send_parts.Bytes(static_cast<std::int32_t>(to)) / sizeof(std::uint32_t);
    }
    comm_->AllGather(&begins[1], n * sizeof(std::uint64_t));
    std::partial_sum(begins.cbegin(), begins.cend(), begins.begin());
  }
  std::vector<std::uint64_t> of_workers;
  for (std::size_t from = 0; from <= n; ++from) {
    of_workers.push_back(begins[from * n]);
  }
  if (mailbox_ == nullptr || !Mailbox::Takes(of_workers)) {
    this->AllToAll(send, send_parts, receive, receive_parts);
    this->Await();
    return;
  }
  DeviceBuffer<std::uint32_t> all{"what workers tell each other"};  // everybody hears everything
  auto const words = [&](std::size_t from, std::size_t to) {
    return reinterpret_cast<char*>(all.Data() + begins[from * n + to]);
  };
  AllOrNone(comm_, [&] {
    all.Reserve(begins.back());
    for (std::int32_t rank = 0; rank < Size(); ++rank) {
      CopyAsync(words(own, rank), At(send, send_parts.Begin(rank)), send_parts.Bytes(rank));
    }
  });
  mailbox_->AllGather(all.Data(), of_workers);
  for (std::int32_t rank = 0; rank < Size(); ++rank) {
    CopyAsync(At(receive, receive_parts.Begin(rank)), words(rank, own), receive_parts.Bytes(rank));
  }
  AllOrNone(comm_, [&] {
    Synchronize();
    this->Check();
  });
}

void DeviceCommunicator::Check() const {
  if (mailbox_ != nullptr) {
    mailbox_->Check();
  }
}

void DeviceCommunicator::Leave() noexcept {
  if (mailbox_ != nullptr) {
    mailbox_->Leave();
  }
}

std::unique_ptr<DeviceCommunicator> DeviceCommunicator::Make(Communicator* comm,
                                                             Transport transport) {
  bool const may_write = transport == Transport::kAuto || transport == Transport::kCopies;
  if (transport == Transport::kAuto) {
    std::vector<WorkerInfo> workers(comm->Size());
    AllOrNone(comm, [&] { workers[comm->Rank()] = Introduce(); });
    comm->AllGather(workers.data(), sizeof(WorkerInfo));
    transport = ChooseTransport(workers);
  }
  std::unique_ptr<DeviceCommunicator> made;
  if (transport == Transport::kHost) {
    made = std::make_unique<HostStagedCommunicator>(comm);
  } else if (transport == Transport::kCopies) {
    made = std::make_unique<PeerCopyCommunicator>(comm);
  } else if (Nccl::Load() == nullptr) {
    throw DeviceError{"NCCL was not found; name it by GPU_EXACT_NCCL in the environment."};
  } else {
    made = std::make_unique<NcclCommunicator>(comm, Nccl::Load());
  }
  if (may_write) {
    made->mailbox_ = Mailbox::Make(comm, Deadline());
  }
  return made;
}
}  // namespace gpu_exact
