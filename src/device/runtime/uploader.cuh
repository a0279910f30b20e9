/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Uploads arrays that the host makes anew for each level.
 */
#pragma once

#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "device/runtime/runtime.cuh"
#include "device/runtime/stream_event.cuh"

namespace gpu_exact {
/**
 * @brief Uploads one array, or several that were added, in one copy. Does not wait.
 *
 * More than 1 KiB, and what is not of whole words, goes through page-locked memory, which the next upload
 * overwrites: between two uploads the host has waited for the stream, or for an event after the first
 * one. Builds with GPU_EXACT_CHECKS throw std::logic_error where it has not.
 */
class Uploader {
 public:
  explicit Uploader(char const* what) : host_{what}, device_{what} {}

  /**
   * @brief Upload an array.
   * @param clear Become zero: with a short array in the same launch.
   * @return Device memory, in the order of the stream.
   */
  template <typename T>
  T const* Upload(std::vector<T> const& values, WordsToClear const& clear = {}) {
    this->Send(values.data(), values.size() * sizeof(T), clear);
    uploaded_.assign(1, 0);
    return this->Data<T>();
  }
  /** @brief Add an array to those of the next Upload(). @return Its number. */
  template <typename T>
  std::size_t Add(std::vector<T> const& values) {
    this->Pad();
    added_.push_back(staged_.size());
    auto const* bytes = reinterpret_cast<unsigned char const*>(values.data());
    staged_.insert(staged_.end(), bytes, bytes + values.size() * sizeof(T));
    return added_.size() - 1;
  }
  /** @brief Upload what was added. */
  void Upload() {
    this->Pad();
    this->Send(staged_.data(), staged_.size(), {});
    uploaded_.swap(added_);
    added_.clear();
    staged_.clear();
  }
  /** @brief Give the device memory of an array of the last upload. */
  template <typename T>
  [[nodiscard]] T const* Data(std::size_t number = 0) const {
    return reinterpret_cast<T const*>(device_.Data() + uploaded_[number]);
  }

 private:
  static constexpr std::size_t kAligned = 16;

  /** @brief Pad, so that arrays begin, and the last one ends, at a multiple of kAligned. */
  void Pad() { staged_.resize((staged_.size() + kAligned - 1) / kAligned * kAligned); }

  void Send(void const* from, std::size_t n_bytes, WordsToClear const& clear) {
    unsigned char* const to = device_.Reserve(n_bytes);
    if (SendBytes(to, from, n_bytes, clear)) {
      return;
    }
    ZeroAsync(clear.words, clear.n);
    unsigned char* const locked = host_.Reserve(n_bytes);
    if (kChecks && read_ && !read_->IsReached()) {
      throw std::logic_error{"Memory is written that the device has not read yet."};
    }
    std::memcpy(locked, from, n_bytes);
    CopyPinned(to, locked, n_bytes);
    if (kChecks) {
      read_.emplace().Record();
    }
  }

  std::vector<unsigned char> staged_;     // added, but not uploaded
  std::vector<std::size_t> added_;        // where each begins
  std::vector<std::size_t> uploaded_{0};  // the same of the last upload
  std::optional<StreamEvent> read_;       // the device has read host_, in builds with checks
  PinnedBuffer<unsigned char> host_;
  DeviceBuffer<unsigned char> device_;
};
}  // namespace gpu_exact
