#include "base/random/philox.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/random/philox.cpp"
#include "base/processor/simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

constexpr std::size_t kBlocks = 1;

void vector_of_blocks(std::uint64_t first, std::uint64_t item, std::uint64_t key,
                      std::uint32_t* out) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  std::ranges::copy(philox({low(first), low(first >> 32), low(item), low(item >> 32)}, key), out);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::CappedTag<std::uint64_t, 8> kLong;
constexpr hn::Repartition<std::uint32_t, decltype(kLong)> kShort;
/// Of a vector: one in each element of 64 bits, whose upper half may hold anything.
constexpr std::size_t kBlocks = hn::MaxLanes(kLong);

/// Blocks first … first + kBlocks − 1. An even element has one of the first half of them, the next
/// element one of the second half, as InterleaveLower and InterleaveUpper take them apart.
HWY_INLINE void vector_of_blocks(std::uint64_t first, std::uint64_t item, std::uint64_t key,
                                 std::uint32_t* out) {
  alignas(64) static constexpr std::array<std::uint64_t, kBlocks> kNumbers = [] {
    std::array<std::uint64_t, kBlocks> numbers{};
    for (std::size_t i = 0; i < kBlocks; ++i) numbers[i] = i / 2 + i % 2 * (kBlocks / 2);
    return numbers;
  }();
  auto a = hn::Add(hn::Set(kLong, first), hn::Load(kLong, kNumbers.data()));
  auto b = hn::ShiftRight<32>(a);
  auto c = hn::Set(kLong, item);
  auto d = hn::Set(kLong, item >> 32);
  const auto multiplier0 = hn::Set(kShort, 0xD2511F53U);
  const auto multiplier1 = hn::Set(kShort, 0xCD9E8D57U);
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = hn::MulEven(hn::BitCast(kShort, a), multiplier0);
    const auto p1 = hn::MulEven(hn::BitCast(kShort, c), multiplier1);
    a = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(b, hn::Set(kLong, std::uint64_t{k0})));
    b = p1;
    c = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(d, hn::Set(kLong, std::uint64_t{k1})));
    d = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const auto pair = [&](auto low, auto high) {
    return hn::BitCast(
        kLong, hn::OddEven(hn::BitCast(kShort, hn::ShiftLeft<32>(high)), hn::BitCast(kShort, low)));
  };
  const auto ab = pair(a, b);
  const auto cd = pair(c, d);
  hn::StoreU(hn::BitCast(kShort, hn::InterleaveLower(kLong, ab, cd)), kShort, out);
  hn::StoreU(hn::BitCast(kShort, hn::InterleaveUpper(kLong, ab, cd)), kShort, out + 2 * kBlocks);
}

#endif

void philox_words_loop(std::uint64_t first, std::uint64_t item, std::uint64_t key, std::size_t n,
                       std::uint32_t* out) {
  constexpr std::size_t kWords = 4 * kBlocks;
  std::size_t done = 0;
  for (; done + kWords <= n; done += kWords)
    vector_of_blocks(first + done / 4, item, key, out + done);
  if (done == n) return;
  std::array<std::uint32_t, kWords> rest;
  vector_of_blocks(first + done / 4, item, key, rest.data());
  std::copy_n(rest.begin(), n - done, out + done);
}

}  // namespace HWY_NAMESPACE
}  // namespace masque
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque {

PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

HWY_EXPORT(philox_words_loop);

void philox_words(std::uint64_t first, std::uint64_t item, std::uint64_t key, std::size_t n,
                  std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(philox_words_loop)(first, item, key, n, out);
}

}  // namespace masque
#endif
