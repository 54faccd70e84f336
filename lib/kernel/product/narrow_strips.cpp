#include "kernel/product/narrow_strips.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/product/narrow_strips.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::kernel {
namespace HWY_NAMESPACE {

inline constexpr Index kWide = kStripColumns<float>;
static_assert(kWide == kGroup<float>);

/// The floats of 16 bfloat16 or 16 whole numbers.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Group<float> widened(const std::uint16_t* x) {
  alignas(64) float wide[std::size_t{kWide}];
  for (Index i = 0; i < kWide; ++i)
    wide[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i]) << 16U);
  return load_group<float>(wide);
}
HWY_INLINE Group<float> widened(const std::int8_t* x) {
  alignas(64) float wide[std::size_t{kWide}];
  for (Index i = 0; i < kWide; ++i) wide[i] = static_cast<float>(x[i]);
  return load_group<float>(wide);
}
#else
HWY_INLINE Group<float> widened(const std::uint16_t* x) {
  const Native<float>::Tag floats;
  const hn::RebindToUnsigned<decltype(floats)> words;
  const hn::Rebind<std::uint16_t, decltype(floats)> halves;
  return group_of<float>([&](int p) {
    const auto wide = hn::PromoteTo(words, hn::LoadU(halves, x + p * Native<float>::kLanes));
    return hn::BitCast(floats, hn::ShiftLeft<16>(wide));
  });
}
HWY_INLINE Group<float> widened(const std::int8_t* x) {
  const Native<float>::Tag floats;
  const hn::RebindToSigned<decltype(floats)> words;
  const hn::Rebind<std::int8_t, decltype(floats)> bytes;
  return group_of<float>([&](int p) {
    return hn::ConvertTo(floats,
                         hn::PromoteTo(words, hn::LoadU(bytes, x + p * Native<float>::kLanes)));
  });
}
#endif

/// The rows of a strip, one after the other.
class BfloatRows {
 public:
  BfloatRows(const std::byte* at, const NarrowForm& /*form*/)
      : at_(reinterpret_cast<const std::uint16_t*>(at)) {}
  static constexpr bool kHasParts = false;
  HWY_INLINE void begin_part() {}
  HWY_INLINE Group<float> next() {
    const auto row = widened(at_);
    at_ += kWide;
    return row;
  }

 private:
  const std::uint16_t* at_;
};

template <bool kMinima>
class CodeRows {
 public:
  CodeRows(const std::byte* at, const NarrowForm& /*form*/) : at_(at) {}
  static constexpr bool kHasParts = true;
  HWY_INLINE void begin_part() {
    scales_ = load_group(reinterpret_cast<const float*>(at_));
    at_ += kWide * static_cast<Index>(sizeof(float));
    if constexpr (kMinima) {
      minima_ = load_group(reinterpret_cast<const float*>(at_));
      at_ += kWide * static_cast<Index>(sizeof(float));
    }
  }
  HWY_INLINE Group<float> next() {
    const auto row = widened(reinterpret_cast<const std::int8_t*>(at_)) * scales_;
    at_ += kWide;
    if constexpr (kMinima) return row - minima_;
    return row;
  }

 private:
  const std::byte* at_;
  Group<float> scales_ = {};
  Group<float> minima_ = {};
};

template <class Rows>
HWY_NOINLINE void widen_rows(const std::byte* from, const NarrowForm& form, Index count,
                             float* out) {
  Rows rows(from, form);
  const Index part = form.step();
  for (Index k = 0; k < count; k += part) {
    rows.begin_part();
    for (Index i = 0; i < part; ++i, out += kWide) store_group(rows.next(), out);
  }
}

/// One row times kStrips strips: as many chains at once as hide the time of an addition.
template <class Rows, int kStrips>
HWY_NOINLINE void multiply_row(const float* x, const NarrowStrips& strips, Index column,
                               Index depth, Index count, bool onto_sum, float* y) {
  const auto rows_of = [&](Index s) {
    return Rows(strips.at(column + s * kWide, depth), strips.form);
  };
  if constexpr (kStrips == 4) {
    Rows a = rows_of(0), b = rows_of(1), c = rows_of(2), d = rows_of(3);
    auto sum_a = zero_group<float>(), sum_b = sum_a, sum_c = sum_a, sum_d = sum_a;
    const Index part = Rows::kHasParts ? strips.form.part : count;
    for (Index k = 0; k < count; k += part) {
      a.begin_part(), b.begin_part(), c.begin_part(), d.begin_part();
      for (Index i = k; i < k + part; ++i) {
        const auto own = set_group(x[i]);
        sum_a = mul_add(own, a.next(), sum_a);
        sum_b = mul_add(own, b.next(), sum_b);
        sum_c = mul_add(own, c.next(), sum_c);
        sum_d = mul_add(own, d.next(), sum_d);
      }
    }
    const auto put = [&](const Group<float>& sum, float* to) {
      store_group(onto_sum ? load_group<float>(to) + sum : sum, to);
    };
    put(sum_a, y), put(sum_b, y + kWide), put(sum_c, y + 2 * kWide), put(sum_d, y + 3 * kWide);
  } else {
    Rows a = rows_of(0);
    auto sum = zero_group<float>();
    const Index part = Rows::kHasParts ? strips.form.part : count;
    for (Index k = 0; k < count; k += part) {
      a.begin_part();
      for (Index i = k; i < k + part; ++i) sum = mul_add(set_group(x[i]), a.next(), sum);
    }
    store_group(onto_sum ? load_group<float>(y) + sum : sum, y);
  }
}

template <class Rows>
void multiply_row_of(const float* x, const NarrowStrips& strips, Index column, Index columns,
                     Index depth, Index count, bool onto_sum, float* y) {
  Index done = 0;
  // The sums of four strips need 16 of the registers of SSE, which has no more.
  if constexpr (Group<float>::kParts < 4) {
    for (; done + 4 * kWide <= columns; done += 4 * kWide)
      multiply_row<Rows, 4>(x, strips, column + done, depth, count, onto_sum, y + done);
  }
  for (; done < columns; done += kWide)
    multiply_row<Rows, 1>(x, strips, column + done, depth, count, onto_sum, y + done);
}

void widen_bf16(const std::byte* from, const NarrowForm& form, Index count, float* out) {
  widen_rows<BfloatRows>(from, form, count, out);
}
void widen_codes(const std::byte* from, const NarrowForm& form, Index count, float* out) {
  form.minima ? widen_rows<CodeRows<true>>(from, form, count, out)
              : widen_rows<CodeRows<false>>(from, form, count, out);
}
void multiply_row_any(const float* x, const NarrowStrips& strips, Index column, Index columns,
                      Index depth, Index count, bool onto_sum, float* y) {
  const NarrowForm& form = strips.form;
  const auto multiply = form.part == 0 ? multiply_row_of<BfloatRows>
                        : form.minima  ? multiply_row_of<CodeRows<true>>
                                       : multiply_row_of<CodeRows<false>>;
  multiply(x, strips, column, columns, depth, count, onto_sum, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::kernel {

namespace {
HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_codes);
HWY_EXPORT(multiply_row_any);
}  // namespace

void widen_strips(const NarrowStrips& strips, Index column, Index columns, Index depth, Index count,
                  const Strips<float>& out) {
  for (Index c = 0; c < columns; c += kStripColumns<float>) {
    float* const to = out.from_column(c).data;
    if (strips.form.part == 0) {
      HWY_DYNAMIC_DISPATCH(widen_bf16)
      (strips.at(column + c, depth), strips.form, count, to);
    } else {
      HWY_DYNAMIC_DISPATCH(widen_codes)
      (strips.at(column + c, depth), strips.form, count, to);
    }
  }
}

void multiply_narrow_row(const float* x, const NarrowStrips& strips, Index column, Index columns,
                         Index depth, Index count, bool onto_sum, float* y) {
  HWY_DYNAMIC_DISPATCH(multiply_row_any)
  (x, strips, column, columns, depth, count, onto_sum, y);
}

bool narrow_to_bf16(std::span<const float> wide, std::uint16_t* out) {
  // A number that is none shows soon where there are many.
  constexpr std::size_t kPart = 4096;
  for (std::size_t first = 0; first < wide.size(); first += kPart) {
    const std::size_t end = std::min(first + kPart, wide.size());
    std::uint32_t lost = 0;
    for (std::size_t i = first; i < end; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(wide[i]);
      lost |= bits;
      out[i] = static_cast<std::uint16_t>(bits >> 16U);
    }
    if ((lost & 0xFFFFU) != 0) return false;
  }
  return true;
}

void pack_code_strip(const NarrowForm& form, const std::int8_t* const* codes,
                     const float* const* scales, const float* const* minima, Index depth,
                     std::byte* out) {
  constexpr Index kColumns = kStripColumns<float>;
  for (Index first = 0, p = 0; first < depth; first += form.part, ++p) {
    const auto put = [&](const float* const* numbers) {
      float own[std::size_t{kColumns}];
      for (Index r = 0; r < kColumns; ++r) own[r] = numbers[r][p];
      std::memcpy(out, own, sizeof own);
      out += sizeof own;
    };
    put(scales);
    if (form.minima) put(minima);
    auto* const to = reinterpret_cast<std::int8_t*>(out);
    for (Index r = 0; r < kColumns; ++r) {
      for (Index k = 0; k < form.part; ++k) to[k * kColumns + r] = codes[r][first + k];
    }
    out += form.part * kColumns;
  }
}

}  // namespace masque::kernel
#endif
