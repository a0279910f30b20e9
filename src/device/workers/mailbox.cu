/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements mailbox.cuh.
 */
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <cuda/ptx>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>

#include "device/runtime/stream_event.cuh"
#include "device/workers/mailbox.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 512;
constexpr std::uint32_t kMostBlocks = 32;    // that wait for others at a time
constexpr std::uint64_t kBlockWords = 1024;  // a block's piece of a part at least
constexpr std::int32_t kMost = Mailbox::kMostWorkers;

/** @brief Begins a box. */
struct BoxHead {
  std::uint32_t flags[kMost][kMostBlocks];  // number of the last call, by sender and block
  std::uint32_t has_left[kMost];            // by sender
  std::uint32_t is_broken;                  // a call was in vain: none is waited for any more
};

constexpr std::uint64_t kHeadWords = (sizeof(BoxHead) + 255) / 256 * 64;
constexpr std::uint64_t kDataWords = Mailbox::kCapacity / sizeof(std::uint32_t);
constexpr std::uint64_t kBoxWords = kHeadWords + 2 * kDataWords;

/** @brief Tells kernels of one call. Sizes are in words of 4 B. */
struct Call {
  std::uint32_t* boxes[kMost];      // by rank
  std::uint64_t begins[kMost + 1];  // of parts
  std::int32_t rank;
  std::int32_t n_workers;
  std::uint32_t number;
  std::uint64_t deadline_ns;
  std::uint32_t* missing;  // of the host: 1 + rank of a worker that has not answered

  [[nodiscard]] __device__ BoxHead* Head(std::int32_t of) const {
    return reinterpret_cast<BoxHead*>(boxes[of]);
  }
  /** @brief Tell where a worker's part lies in a box. */
  [[nodiscard]] __device__ std::uint32_t* Data(std::int32_t of, std::int32_t from) const {
    return boxes[of] + kHeadWords + number % 2 * kDataWords + begins[from];
  }
  [[nodiscard]] __device__ std::uint64_t Words(std::int32_t of) const {
    return begins[of + 1] - begins[of];
  }
};

/** @brief Write this block's piece of the own part to all. */
__device__ void Write(Call const& call, std::uint32_t const* own) {
  for (std::uint64_t i = GlobalIdx(); i < call.Words(call.rank);
       i += std::uint64_t{gridDim.x} * kThreads) {
    std::uint32_t const word = own[call.begins[call.rank] + i];
    for (std::int32_t to = 0; to < call.n_workers; ++to) {
      if (to != call.rank) {
        call.Data(to, call.rank)[i] = word;
      }
    }
  }
}

/** @brief Read this block's pieces of the other parts out of the own box. */
__device__ void Read(Call const& call, std::uint32_t* out) {
  for (std::int32_t from = 0; from < call.n_workers; ++from) {
    if (from == call.rank) {
      continue;
    }
    std::uint32_t const* data = call.Data(call.rank, from);
    for (std::uint64_t i = GlobalIdx(); i < call.Words(from);
         i += std::uint64_t{gridDim.x} * kThreads) {
      out[call.begins[from] + i] = __ldcv(data + i);  // not what a cache had before
    }
  }
}

__global__ __launch_bounds__(kThreads) void WriteKernel(__grid_constant__ Call const call,
                                                        std::uint32_t const* own) {
  WaitForPreviousKernel();
  Write(call, own);
}

__global__ __launch_bounds__(kThreads) void ReadKernel(__grid_constant__ Call const call,
                                                       std::uint32_t* out) {
  WaitForPreviousKernel();
  Read(call, out);
}

using SystemWord = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

/** @brief Wait for the flag of the same block of another worker; false where it will not come. */
__device__ bool AwaitFlag(Call const& call, std::int32_t from) {
  BoxHead* const own = call.Head(call.rank);
  SystemWord const flag{own->flags[from][blockIdx.x]};
  SystemWord const has_left{own->has_left[from]};
  SystemWord const is_broken{own->is_broken};
  std::uint64_t const begin = cuda::ptx::get_sreg_globaltimer();
  for (std::uint32_t n = 1;; ++n) {
    if (static_cast<std::int32_t>(flag.load(cuda::memory_order_acquire) - call.number) >= 0) {
      return true;
    }
    if (n % 64 == 0 && (has_left.load(cuda::memory_order_relaxed) != 0 ||
                        cuda::ptx::get_sreg_globaltimer() - begin > call.deadline_ns)) {
      is_broken.store(1, cuda::memory_order_relaxed);
      SystemWord{*call.missing}.store(static_cast<std::uint32_t>(from) + 1,
                                      cuda::memory_order_relaxed);
      return false;
    }
  }
}

// grid: pieces of the parts, as many on every worker
__global__ __launch_bounds__(kThreads) void ExchangeKernel(__grid_constant__ Call const call,
                                                           std::uint32_t* inout) {
  WaitForPreviousKernel();
  EXACT_DEVICE_CHECK(gridDim.x <= kMostBlocks && call.begins[call.n_workers] <= kDataWords);
  // After a failed call this worker's data and its slot may be wrong: it writes nothing.
  SystemWord const is_broken{call.Head(call.rank)->is_broken};  // which another block may set now
  if (__syncthreads_or(is_broken.load(cuda::memory_order_relaxed) != 0 ? 1 : 0) != 0) {
    return;
  }
  Write(call, inout);
  __syncthreads();
  auto const other = static_cast<std::int32_t>(threadIdx.x);
  bool is_there{true};
  if (other < call.n_workers && other != call.rank) {
    __threadfence_system();  // the words of all threads, which have met this one, come first
    SystemWord const flag{call.Head(other)->flags[call.rank][blockIdx.x]};
    flag.store(call.number, cuda::memory_order_release);
    is_there = AwaitFlag(call, other);
  }
  if (__syncthreads_and(is_there ? 1 : 0) != 0) {
    Read(call, inout);
  }
}

/** @brief Tells the others where a worker's box is. */
struct Address {
  std::uint64_t machine;
  std::int64_t process;
  std::int64_t born;  // with the process id: one process of all
  cudaUUID_t device;
  int ordinal;
  std::uint32_t is_willing;
  void const* box;  // of use in the same process
  cudaIpcMemHandle_t handle;
};

/** @brief Number the machine's start, alike for all its processes; 0: not known. */
std::uint64_t MachineId() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  file >> text;
  return text.empty() ? 0 : std::hash<std::string>{}(text);
}

bool IsWanted() {
  char const* text = std::getenv("GPU_EXACT_PEER_MEMORY");
  return text == nullptr || std::strcmp(text, "0") != 0;
}

/** @brief Tell whether all say yes. Collective. */
bool AllAgree(Communicator* comm, bool yes) {
  std::vector<std::uint8_t> answers(comm->Size());
  answers[comm->Rank()] = yes ? 1 : 0;
  comm->AllGather(answers.data(), 1);
  return std::all_of(answers.cbegin(), answers.cend(), [](auto answer) { return answer != 0; });
}
}  // namespace

/** @brief Own memory, as long as any thread of the process may write into it. */
struct Mailbox::Box {
  int device{0};
  DeviceBuffer<std::uint32_t> words{"messages of other workers"};
  PinnedBuffer<std::uint32_t> missing{"a worker that has not answered"};
  StreamEvent written;  // the own part, in the others' boxes

  Box() {
    EXACT_CUDA(cudaGetDevice(&device));
    ZeroAsync(words.Reserve(kBoxWords), kHeadWords);
    *missing.Reserve(1) = 0;
    Synchronize();
  }
};

/** @brief Holds another worker's box. */
struct Mailbox::View {
  std::shared_ptr<Box> box;  // of a thread of this process, or
  void* opened{nullptr};     // of another process

  View() = default;
  ~View() {
    if (opened != nullptr) {
      Succeeds(cudaIpcCloseMemHandle(opened));
    }
  }
  View(View const&) = delete;
  View& operator=(View const&) = delete;

  [[nodiscard]] std::uint32_t* Words() const {
    return box != nullptr ? box->words.Data() : static_cast<std::uint32_t*>(opened);
  }
};

Mailbox::Mailbox(Communicator* comm, std::chrono::seconds deadline)
    : comm_{comm}, deadline_{deadline}, others_(comm->Size()) {}

Mailbox::~Mailbox() {
  int device{0};
  if (own_ != nullptr && Succeeds(cudaGetDevice(&device)) &&
      Succeeds(cudaSetDevice(own_->device))) {
    others_.clear();  // handles are closed by the device that has opened them
    Succeeds(cudaSetDevice(device));
  }
}

std::unique_ptr<Mailbox> Mailbox::Make(Communicator* comm, std::chrono::seconds deadline) {
  if (comm->Size() > kMostWorkers) {
    return nullptr;
  }
  std::unique_ptr<Mailbox> mailbox{new Mailbox{comm, deadline}};
  return mailbox->Open() && mailbox->Try() ? std::move(mailbox) : nullptr;
}

bool Mailbox::Open() {
  static std::int64_t const born = std::chrono::system_clock::now().time_since_epoch().count();
  std::vector<Address> addresses(comm_->Size());
  Address& own = addresses[comm_->Rank()];
  for (std::int32_t rank = 0; rank < comm_->Size(); ++rank) {
    if (rank != comm_->Rank()) {
      others_[rank] = std::make_unique<View>();
    }
  }
  try {
    own_ = std::make_shared<Box>();
    cudaDeviceProp prop{};
    EXACT_CUDA(cudaGetDeviceProperties(&prop, own_->device));
    own = {MachineId(), getpid(), born, prop.uuid, own_->device, IsWanted() ? 1u : 0u, &own_, {}};
    // Threads of one process do without.
    Succeeds(cudaIpcGetMemHandle(&own.handle, own_->words.Data()));
  } catch (DeviceError const&) {
    own.is_willing = 0;
  }
  comm_->AllGather(addresses.data(), sizeof(Address));
  auto in_process = [&](Address const& other) {
    return other.process == own.process && other.born == own.born;
  };
  auto is_near = [&](Address const& other) {
    return other.is_willing != 0 &&
           (in_process(other) || (other.machine == own.machine && other.machine != 0));
  };
  of_one_process_ = std::all_of(addresses.cbegin(), addresses.cend(), in_process);
  bool reaches = std::all_of(addresses.cbegin(), addresses.cend(), is_near);
  if (reaches && of_one_process_) {
    for (std::int32_t rank = 0; rank < comm_->Size(); ++rank) {
      if (rank != comm_->Rank()) {
        others_[rank]->box = *static_cast<std::shared_ptr<Box> const*>(addresses[rank].box);
      }
    }
    comm_->AllGather(nullptr, 0);  // all have the boxes, before any thread may fail and go
  }
  for (std::int32_t rank = 0; reaches && rank < comm_->Size(); ++rank) {
    Address const& other = addresses[rank];
    if (rank == comm_->Rank()) {
      continue;
    }
    if (of_one_process_) {
      reaches = ReachDevice(other.ordinal);
    } else {  // kernels that wait for each other need not run at a time on one device
      bool const shares = std::memcmp(&other.device, &own.device, sizeof(cudaUUID_t)) == 0;
      reaches = !shares && Succeeds(cudaIpcOpenMemHandle(&others_[rank]->opened, other.handle,
                                                         cudaIpcMemLazyEnablePeerAccess));
    }
  }
  return AllAgree(comm_, reaches);
}

bool Mailbox::Try() {
  constexpr std::uint64_t kWords = 3 * kBlockWords + 5;  // some blocks, the last one not full
  std::vector<std::uint64_t> begins;
  for (std::int32_t rank = 0; rank <= comm_->Size(); ++rank) {
    begins.push_back(rank * kWords);
  }
  auto const deadline = std::exchange(deadline_, std::min(deadline_, std::chrono::seconds{10}));
  bool is_right{false};
  try {
    std::vector<std::uint32_t> want(begins.back());
    std::iota(want.begin(), want.end(), 1u);
    std::vector<std::uint32_t> sent(want.size(), 0);
    auto const first = begins[comm_->Rank()];
    std::copy_n(want.cbegin() + first, kWords, sent.begin() + first);
    DeviceBuffer<std::uint32_t> words{"the first message"};
    CopyFromHost(words.Reserve(want.size()), sent.data(), sent.size());
    this->AllGather(words.Data(), begins);
    is_right = ToHost(words.Data(), want.size()) == want;
  } catch (DeviceError const&) {
    if (of_one_process_) {
      throw;  // the others wait where this one should meet them
    }
    is_right = false;
  }
  deadline_ = deadline;
  return AllAgree(comm_, is_right);
}

void Mailbox::AllGather(std::uint32_t* inout, std::vector<std::uint64_t> const& begins) {
  if (begins.back() == 0) {
    return;
  }
  Call call{};
  call.rank = comm_->Rank();
  call.n_workers = comm_->Size();
  call.number = n_calls_ + 1;
  call.deadline_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds{deadline_}.count());
  call.missing = own_->missing.Data();
  std::copy(begins.cbegin(), begins.cend(), call.begins);
  std::uint64_t longest{0};
  for (std::int32_t rank = 0; rank < call.n_workers; ++rank) {
    call.boxes[rank] = rank == call.rank ? own_->words.Data() : others_[rank]->Words();
    longest = std::max(longest, begins[rank + 1] - begins[rank]);
  }
  std::uint64_t const grid = std::min<std::uint64_t>(CeilDiv(longest, kBlockWords), kMostBlocks);
  if (!of_one_process_) {
    try {
      Launch("Exchange", ExchangeKernel, grid, kThreads, call, inout);
    } catch (DeviceError const&) {
      this->Leave();
      throw;
    }
    ++n_calls_;
    return;
  }
  Launch("Write", WriteKernel, grid, kThreads, call, inout);
  own_->written.Record();
  comm_->AllGather(nullptr, 0);  // all have recorded; a later record would do as well
  ++n_calls_;                    // on all threads or, where one has not come, on none
  for (std::int32_t rank = 0; rank < call.n_workers; ++rank) {
    if (rank != call.rank) {
      others_[rank]->box->written.WaitBy(Stream());
    }
  }
  Launch("Read", ReadKernel, grid, kThreads, call, inout);
}

void Mailbox::Check() const {
  std::uint32_t const missing = *static_cast<std::uint32_t const volatile*>(own_->missing.Data());
  if (missing != 0) {
    throw WorkerError{"Rank " + std::to_string(comm_->Rank()) + " of " +
                      std::to_string(comm_->Size()) + ": rank " + std::to_string(missing - 1) +
                      " has failed, or has not answered for " + std::to_string(deadline_.count()) +
                      " s. Its own error may say why; GPU_EXACT_PEER_TIMEOUT sets the seconds."};
  }
}

void Mailbox::Leave() noexcept {
  if (of_one_process_) {
    return;  // who does not meet them is told by Communicator
  }
  cudaStream_t stream{nullptr};  // the thread's own may wait for the others
  if (!Succeeds(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) {
    return;
  }
  for (auto const& other : others_) {
    if (other != nullptr) {
      auto* const head = reinterpret_cast<BoxHead*>(other->Words());
      Succeeds(cudaMemsetAsync(&head->has_left[comm_->Rank()], 1, sizeof(std::uint32_t), stream));
    }
  }
  Succeeds(cudaStreamSynchronize(stream));
  Succeeds(cudaStreamDestroy(stream));
}
}  // namespace gpu_exact
