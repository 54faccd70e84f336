#include "kernel/onednn/matmul_onednn.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/bfloat16.hpp"
#include "kernel/onednn/context.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel::onednn {
namespace {

using Type = dnnl::memory::data_type;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

Index round_up(Index n, Index step) { return (n + step - 1) / step * step; }

/// Shape of one call into the library.
struct Key {
  Index rows;
  Index columns;
  Index inputs;
  Type type;
  auto operator<=>(const Key&) const = default;
};

Desc plain(Index rows, Index columns, Type type) {
  return {Dims{rows, columns}, type, dnnl::memory::format_tag::ab};
}

/// The layout of packed weights (inputs, columns): chosen for a full panel, then used for all.
Desc packed_desc(Index columns, Index inputs, Type type) {
  const OneThread alone;
  const auto descriptor =
      matmul_descriptor(engine(), plain(kPanelRows, inputs, type),
                        Desc(Dims{inputs, columns}, type, dnnl::memory::format_tag::any),
                        plain(kPanelRows, columns, Type::f32));
  return descriptor.get(true) != nullptr ? descriptor.weights_desc() : Desc();
}

bool has_bf16() {
  static const bool has = packed_desc(64, 64, Type::bf16).get_size() > 0;
  return has;
}

/// A primitive, shared by all threads.
struct Product {
  dnnl::matmul primitive;
  Desc scratchpad;
};

Product make_product(const Key& key) {
  const OneThread alone;
  const auto descriptor = matmul_descriptor(engine(), plain(key.rows, key.inputs, key.type),
                                            packed_desc(key.columns, key.inputs, key.type),
                                            plain(key.rows, key.columns, Type::f32));
  MASQUE_CHECK(descriptor.get(true) != nullptr);
  return {dnnl::matmul(descriptor), descriptor.scratchpad_desc()};
}

const Product& product(const Key& key) {
  static std::mutex mutex;
  static std::map<Key, Product> products;  // never shrinks: references stay
  const std::lock_guard lock(mutex);
  const auto found = products.find(key);
  if (found != products.end()) return found->second;
  return products.emplace(key, make_product(key)).first->second;
}

/// A primitive with the calling thread's own memory objects, whose pointers change with each call.
struct Call {
  explicit Call(const Key& key)
      : shared(&product(key)),
        src(plain(key.rows, key.inputs, key.type), engine(), DNNL_MEMORY_NONE),
        dst(plain(key.rows, key.columns, Type::f32), engine(), DNNL_MEMORY_NONE),
        scratchpad(shared->scratchpad, engine(), DNNL_MEMORY_NONE) {}

  const Product* shared;
  dnnl::memory src;
  dnnl::memory dst;
  dnnl::memory scratchpad;
};

Call& call_of_thread(const Key& key) {
  thread_local std::map<Key, Call> calls;
  const auto found = calls.find(key);
  if (found != calls.end()) return found->second;
  return calls.emplace(key, Call(key)).first->second;
}

void check(dnnl_status_t status, const char* what) { dnnl::error::wrap_c_api(status, what); }

}  // namespace

struct PackedWeights::State {
  Index inputs = 0;
  Index outputs = 0;
  bool round_to_bf16 = false;  ///< operands are rounded to bf16 …
  Type type = Type::f32;       ///< … but multiplied as this
  Matrix<std::byte> bytes;
  std::vector<dnnl::memory> blocks;  ///< into bytes
};

PackedWeights::PackedWeights(std::span<const MatrixView<const float>> weights, Precision precision)
    : state_(std::make_unique<State>()) {
  MASQUE_CHECK(!weights.empty() && precision != Precision::kF64);
  State& s = *state_;
  s.inputs = weights[0].columns;
  std::vector<const float*> rows;
  for (const auto& weight : weights) {
    MASQUE_CHECK(weight.columns == s.inputs);
    s.outputs += weight.rows;
    for (Index i = 0; i < weight.rows; ++i) rows.push_back(weight.row(i));
  }
  s.round_to_bf16 = precision == Precision::kBf16;
  if (s.round_to_bf16 && has_bf16()) s.type = Type::bf16;
  const Index count = (s.outputs + kBlockColumns - 1) / kBlockColumns;
  std::vector<Desc> descs;
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (Index b = 0; b < count; ++b) {
    descs.push_back(b > 0 && block_stride(b) == kBlockColumns
                        ? descs[0]
                        : packed_desc(block_stride(b), s.inputs, s.type));
    offsets.push_back(total);
    total += (descs.back().get_size() + 63) / 64 * 64;
  }
  s.bytes.resize(1, static_cast<Index>(total));
  for (std::size_t b = 0; b < descs.size(); ++b) {
    s.blocks.emplace_back(descs[b], engine(), s.bytes.data() + offsets[b]);
  }
  parallel_ranges(count, 1, [&](Index begin, Index end) {
    const OneThread alone;
    Matrix<float> gathered;
    for (Index b = begin; b < end; ++b) {
      const Index first = b * kBlockColumns, columns = block_columns(b), stride = block_stride(b);
      gathered.resize(stride, s.inputs);
      for (Index j = 0; j < stride; ++j) {
        float* to = gathered.view().row(j);
        if (j >= columns) {
          std::fill_n(to, s.inputs, 0.0F);
        } else if (s.round_to_bf16) {
          round_row_to_bf16(rows[static_cast<std::size_t>(first + j)], s.inputs, to);
        } else {
          std::copy_n(rows[static_cast<std::size_t>(first + j)], s.inputs, to);
        }
      }
      const Desc from(Dims{s.inputs, stride}, Type::f32, Dims{1, s.inputs});
      dnnl::memory source(from, engine(), gathered.data());
      dnnl::memory& target = s.blocks[static_cast<std::size_t>(b)];
      dnnl::reorder(source, target).execute(stream(), source, target);
      stream().wait();
    }
  });
}

PackedWeights::~PackedWeights() = default;

Index PackedWeights::blocks() const { return static_cast<Index>(state_->blocks.size()); }

Index PackedWeights::block_columns(Index block) const {
  return std::min(kBlockColumns, state_->outputs - block * kBlockColumns);
}

Index PackedWeights::block_stride(Index block) const { return round_up(block_columns(block), 16); }

Panel PackedWeights::panel(MatrixView<const float> x) const {
  const State& s = *state_;
  MASQUE_CHECK(x.columns == s.inputs && x.rows > 0 && x.rows <= kPanelRows);
  const Index padded = round_up(x.rows, 8);
  const bool dense = x.stride == x.columns && padded == x.rows;
  if (dense && !s.round_to_bf16) return {x.data, x.rows, padded};
  const auto count = static_cast<std::size_t>(padded * s.inputs);
  if (s.type == Type::bf16) {
    auto* to =
        reinterpret_cast<std::uint16_t*>(scratch(Scratch::kOperand, count * sizeof(std::uint16_t)));
    for (Index i = 0; i < x.rows; ++i) to_bf16_row(x.row(i), s.inputs, to + i * s.inputs);
    std::fill(to + x.rows * s.inputs, to + padded * s.inputs, std::uint16_t{0});
    return {to, x.rows, padded};
  }
  auto* to = reinterpret_cast<float*>(scratch(Scratch::kOperand, count * sizeof(float)));
  for (Index i = 0; i < x.rows; ++i) {
    if (s.round_to_bf16) {
      round_row_to_bf16(x.row(i), s.inputs, to + i * s.inputs);
    } else {
      std::copy_n(x.row(i), s.inputs, to + i * s.inputs);
    }
  }
  std::fill(to + x.rows * s.inputs, to + padded * s.inputs, 0.0F);
  return {to, x.rows, padded};
}

const float* PackedWeights::multiply(const Panel& panel, Index block) const {
  const State& s = *state_;
  const Index columns = block_stride(block);
  const OneThread alone;
  Call& call = call_of_thread({panel.padded_rows, columns, s.inputs, s.type});
  std::byte* out = scratch(Scratch::kProduct,
                           sizeof(float) * static_cast<std::size_t>(panel.padded_rows * columns));
  std::byte* work = scratch(Scratch::kLibrary, call.shared->scratchpad.get_size() + 1);
  call.src.set_data_handle(const_cast<void*>(panel.data));  // the library only reads it
  call.dst.set_data_handle(out);
  call.scratchpad.set_data_handle(work);
  const std::array<dnnl_exec_arg_t, 4> arguments{{
      {DNNL_ARG_SRC, call.src.get()},
      {DNNL_ARG_WEIGHTS, s.blocks[static_cast<std::size_t>(block)].get()},
      {DNNL_ARG_DST, call.dst.get()},
      {DNNL_ARG_SCRATCHPAD, call.scratchpad.get()},
  }};
  check(dnnl_primitive_execute(call.shared->primitive.get(), stream().get(),
                               static_cast<int>(arguments.size()), arguments.data()),
        "matrix product");
  return reinterpret_cast<const float*>(out);
}

void gemm(const Gemm& g) {
  const OneThread alone;
  check(dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0F, g.a,
                   g.a_stride, g.b, g.b_stride, g.beta, g.c, g.c_stride),
        "matrix product");
}

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace masque::kernel::onednn
