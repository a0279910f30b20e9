/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * The generator is that of Matsumoto and Nishimura, "Mersenne Twister" (ACM Transactions on
 * Modeling and Computer Simulation 8:1, 1998), with the constants of std::mt19937.
 */
#include "train/bernoulli_mt19937.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <locale>
#include <sstream>

// The default is for SSE2, which lacks a comparison of 64 bits: twice as slow.
// ThreadSanitizer cannot be told of the choice among them, which comes before it is ready.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define GPU_EXACT_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GPU_EXACT_VECTORISED
#endif

namespace gpu_exact {
namespace {
using Engine = std::mt19937;
constexpr std::size_t kWords = Engine::state_size;
constexpr std::size_t kShift = Engine::shift_size;
constexpr std::uint32_t kLowBits = 0x7fffffffu;
constexpr std::uint32_t kMatrix = Engine::xor_mask;

inline std::uint32_t Mix(std::uint32_t high, std::uint32_t low) {
  auto const y = (high & ~kLowBits) | (low & kLowBits);
  return (y >> 1) ^ ((0u - (y & 1u)) & kMatrix);
}

GPU_EXACT_VECTORISED void Twist(std::uint32_t* state) {
  constexpr auto kRest = kWords - kShift;
  for (std::size_t i = 0; i < kRest; ++i) {
    state[i] = state[i + kShift] ^ Mix(state[i], state[i + 1]);
  }
  for (std::size_t i = kRest; i < kWords - 1; ++i) {
    state[i] = state[i - kRest] ^ Mix(state[i], state[i + 1]);
  }
  state[kWords - 1] = state[kShift - 1] ^ Mix(state[kWords - 1], state[0]);
}

GPU_EXACT_VECTORISED void Temper(std::uint32_t const* state, std::uint32_t* words) {
  for (std::size_t i = 0; i < kWords; ++i) {
    auto y = state[i];
    y ^= y >> Engine::tempering_u;
    y ^= (y << Engine::tempering_s) & static_cast<std::uint32_t>(Engine::tempering_b);
    y ^= (y << Engine::tempering_t) & static_cast<std::uint32_t>(Engine::tempering_c);
    words[i] = y ^ (y >> Engine::tempering_l);
  }
}

/** @brief Compare pairs of words, the low one first as x86-64 has it, with the threshold. */
GPU_EXACT_VECTORISED void Compare(std::uint32_t const* words, std::uint64_t threshold,
                                  std::size_t n, std::uint8_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t v;
    std::memcpy(&v, words + 2 * i, sizeof(v));
    out[i] = v < threshold;
  }
}

/** @brief Make a stream of plain numbers, whatever the program has made of its locale. */
std::stringstream PlainText() {
  std::stringstream text;
  text.imbue(std::locale::classic());
  return text;
}

/** @brief Copies a std::mt19937, and refills and draws in vectors. */
class BlockEngine {
 public:
  explicit BlockEngine(Engine const& engine) {
    auto text = PlainText();  // in libstdc++: the state, then the position in it
    text << engine;
    for (auto& word : state_) {
      text >> word;
    }
    text >> position_;
    Temper(state_.data(), words_.data());
  }

  void Draw(std::uint64_t threshold, std::size_t n, std::uint8_t* out) {
    while (n != 0) {
      auto const n_pairs = std::min(n, (kWords - position_) / 2);
      Compare(words_.data() + position_, threshold, n_pairs, out);
      position_ += 2 * n_pairs;
      n -= n_pairs;
      out += n_pairs;
      if (n != 0) {  // the next pair ends in the next block, and may begin in this one
        std::uint64_t const low = this->NextWord();
        std::uint64_t const high = this->NextWord();
        *out++ = (high << 32 | low) < threshold;
        --n;
      }
    }
  }

  void Store(Engine* out_engine) const {
    auto text = PlainText();
    for (auto word : state_) {
      text << word << ' ';
    }
    text << position_;
    text >> *out_engine;
  }

 private:
  std::uint32_t NextWord() {
    if (position_ == kWords) {
      Twist(state_.data());
      Temper(state_.data(), words_.data());
      position_ = 0;
    }
    return words_[position_++];
  }

  std::array<std::uint32_t, kWords> state_;
  std::array<std::uint32_t, kWords> words_;  // what the state gives, tempered
  std::size_t position_;
};
}  // namespace

std::uint64_t BernoulliThreshold(double p) {
  constexpr double kScale = 18446744073709551616.0;  // 2^64
  std::uint64_t low = 0;
  auto high = std::numeric_limits<std::uint64_t>::max();
  while (low < high) {
    auto const middle = low + (high - low) / 2;
    if (static_cast<double>(middle) / kScale < p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void DrawBernoulli(double p, std::size_t n, std::mt19937* engine, std::uint8_t* out) {
  constexpr std::size_t kWorthBlocks = 1 << 13;  // draws that take as long as going through text
  auto const threshold = BernoulliThreshold(p);
  if (n >= kWorthBlocks) {
    BlockEngine blocks{*engine};
    blocks.Draw(threshold, n, out);
    blocks.Store(engine);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t const low = (*engine)();
    std::uint64_t const high = (*engine)();
    out[i] = (high << 32 | low) < threshold;
  }
}
}  // namespace gpu_exact
