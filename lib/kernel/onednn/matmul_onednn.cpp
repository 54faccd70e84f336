#include "kernel/onednn/matmul_onednn.hpp"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/large_pages.hpp"
#include "base/processor/processor.hpp"
#include "kernel/number/bfloat16.hpp"
#include "kernel/parallel.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel::onednn {

namespace {

// The differences between oneDNN 2.x and 3.x that reach us: nothing else asks for the version.

/// The product dst = src · weights on `engine`, from the layouts `src`, `weights` and `dst`; the
/// caller gives the scratchpad. Empty (`!descriptor.get(true)`) where this library has no
/// implementation on this processor.
inline dnnl::matmul::primitive_desc matmul_descriptor(const dnnl::engine& engine,
                                                      const dnnl::memory::desc& src,
                                                      const dnnl::memory::desc& weights,
                                                      const dnnl::memory::desc& dst) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, src, weights, dst, attributes, true};
#else
  return {dnnl::matmul::desc(src, weights, dst), attributes, engine, true};
#endif
}

// What every use of oneDNN needs: the engine, a stream and scratch memory of each thread.

/// Uses of scratch memory; each has its own.
enum class ScratchPurpose { kLibrary, kOperand, kProduct };

/// While it lives, the library does not start threads from this one: sums are never split, and all
/// parallelism is ours.
class OneThread {
 public:
  /// Keeps the library on one thread for calls of this thread.
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// A limit on the instruction set holds for the library, too. Before its first use.
dnnl::engine make_engine() {
  if (instruction_set_is_limited()) {
    const auto isa = [] {
      switch (instruction_set()) {
        case InstructionSet::kAvx2: return dnnl_cpu_isa_avx2;
        case InstructionSet::kAvx512: return dnnl_cpu_isa_avx512_core;
        case InstructionSet::kAvx512Bf16: return dnnl_cpu_isa_avx512_core_bf16;
        case InstructionSet::kAmx: return dnnl_cpu_isa_avx512_core_amx;
        default: return dnnl_cpu_isa_sse41;
      }
    };
    // If the library cannot be limited, it continues with its own choice.
    static_cast<void>(dnnl_set_max_cpu_isa(isa()));
  }
  return {dnnl::engine::kind::cpu, 0};
}

/// The processor. One per process; the first call applies a limit of the instruction set
/// (`MASQUE_CPU`).
const dnnl::engine& engine() {
  static const dnnl::engine kEngine = make_engine();
  return kEngine;
}

/// The stream of the calling thread.
dnnl::stream& stream() {
  thread_local dnnl::stream the_stream(engine());
  return the_stream;
}

/// Memory of the calling thread for `purpose`, aligned to 64 bytes, at least `bytes`; its content
/// is lost with the next call for this purpose.
std::byte* scratch(ScratchPurpose purpose, std::size_t bytes) {
  thread_local std::array<Matrix<std::byte>, 3> buffers;
  Matrix<std::byte>& buffer = buffers[static_cast<std::size_t>(purpose)];
  if (static_cast<std::size_t>(buffer.columns()) < bytes) {
    buffer = Matrix<std::byte>(1, static_cast<Index>(bytes));
  }
  return buffer.data();
}

using Type = dnnl::memory::data_type;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// Shape of one call into the library.
struct Key {
  Index rows;
  Index columns;
  Index inputs;
  Type type;
  bool operator<(const Key& other) const {
    return std::tie(rows, columns, inputs, type) <
           std::tie(other.rows, other.columns, other.inputs, other.type);
  }
};

Desc plain(Index rows, Index columns, Type type) {
  return {Dims{rows, columns}, type, dnnl::memory::format_tag::ab};
}

/// Rows for which layouts are chosen.
constexpr Index kManyRows = 64;
/// Rows of every call where results depend on the number of rows, and on a row's place in the last
/// tile: a multiple of every tile (4, 6, 8, 12).
constexpr Index kFixedRows = 24;

// What AMX needs for the same bits (oneDNN 2.6): no rest of a tile of weights, because for a few
// rows and columns it takes other kernels, and some rests end in an illegal instruction; and with
// many inputs one number of rows, because it cuts long sums by what fits into the cache.
constexpr Index kTileInputs = 32;
constexpr Index kTileColumns = 64;
constexpr Index kTileLongInputs = 3072;  // cut from 5,900 on, with 2 MiB
constexpr Index kTileFixedRows = 64;

/// How the library wants to multiply: chosen for a full panel, then used for all.
dnnl::matmul::primitive_desc preferred(Index columns, Index inputs, Type type) {
  const OneThread alone;
  return matmul_descriptor(engine(), plain(kManyRows, inputs, type),
                           Desc(Dims{inputs, columns}, type, dnnl::memory::format_tag::any),
                           plain(kManyRows, columns, Type::f32));
}

/// The layout of packed weights (inputs, columns).
Desc packed_desc(Index columns, Index inputs, Type type) {
  return preferred(columns, inputs, type).weights_desc();
}

/// The library's name of its kernel for packed weights of this type; empty if it has none.
std::string kernel_name(Type type) {
  const auto descriptor = preferred(64, 64, type);
  return descriptor.get(true) == nullptr ? "" : descriptor.impl_info_str();
}

/// Whether this is a fast kernel for packed weights ("brg:…": the sums of a row do not depend
/// on the other rows).
bool is_fast(const std::string& kernel) { return kernel.starts_with("brg"); }

const std::string& bf16_kernel() {
  static const std::string kName = kernel_name(Type::bf16);
  return kName;
}

bool has_fast_bf16() { return is_fast(bf16_kernel()); }

/// Whether bf16 is multiplied by AMX's tiles.
bool has_tiles() { return has_fast_bf16() && bf16_kernel().find("amx") != std::string::npos; }

bool has_fast_f32() {
  static const bool kHas = is_fast(kernel_name(Type::f32));
  return kHas;
}

/// A primitive, shared by all threads.
struct Product {
  dnnl::matmul primitive;
  Desc scratchpad;
};

/// The library does not look whether it was given the memory that it writes code into: without some
/// the program would end by a signal.
void need_memory_for_code() {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::munmap(memory, kBytes);
}

Product make_product(const Key& key) {
  need_memory_for_code();
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

/// Rows of weights, `stride` floats apart.
struct Rows {
  const float* data;
  Index stride;
};

/// The rows where they are if they are evenly apart and need nothing, else copied to `buffer`:
/// rounded, with zeros up to `padded` inputs, and followed by rows of zeros up to `count`.
Rows rows_of_block(std::span<const float* const> rows, Index count, Index inputs, Index padded,
                   bool round, Matrix<float>& buffer) {
  const Index step = rows.size() > 1 ? rows[1] - rows[0] : inputs;
  bool even =
      !round && step >= inputs && inputs == padded && count == static_cast<Index>(rows.size());
  for (std::size_t j = 1; even && j < rows.size(); ++j) even = rows[j] - rows[j - 1] == step;
  if (even) return {rows[0], step};
  buffer.resize(count, padded);
  for (Index j = 0; j < count; ++j) {
    float* to = buffer.view().row(j);
    if (j >= static_cast<Index>(rows.size())) {
      std::fill_n(to, padded, 0.0F);
      continue;
    }
    std::fill(to + inputs, to + padded, 0.0F);
    if (round) {
      round_row_to_bf16(rows[static_cast<std::size_t>(j)], inputs, to);
    } else {
      std::copy_n(rows[static_cast<std::size_t>(j)], inputs, to);
    }
  }
  return {buffer.data(), padded};
}

/// Transposes rows (columns, inputs) into the layout of `target` (inputs, columns).
void pack(Rows from, Index columns, Index inputs, dnnl::memory& target) {
  const Desc desc(Dims{inputs, columns}, Type::f32, Dims{1, from.stride});
  dnnl::memory source(desc, engine(), const_cast<float*>(from.data));  // only read
  dnnl::reorder(source, target).execute(stream(), source, target);
  stream().wait();
}

void check(dnnl_status_t status, const char* what) { dnnl::error::wrap_c_api(status, what); }

}  // namespace

struct PackedWeights::State {
  Index inputs = 0;
  Index padded_inputs = 0;  ///< of what is multiplied: zeros after the real ones
  Index outputs = 0;
  bool round_to_bf16 = false;  ///< operands are rounded to bf16 …
  Type type = Type::f32;       ///< … but multiplied as this
  bool tiles = false;          ///< by AMX
  std::shared_ptr<std::byte> bytes;
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
  if (s.round_to_bf16 && has_fast_bf16()) s.type = Type::bf16;
  s.tiles = s.type == Type::bf16 && has_tiles();
  s.padded_inputs = s.tiles ? round_up(s.inputs, kTileInputs) : s.inputs;
  const Index count = divide_up(s.outputs, kBlockColumns);
  std::vector<Desc> descs;
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (Index b = 0; b < count; ++b) {
    descs.push_back(b > 0 && block_stride(b) == kBlockColumns
                        ? descs[0]
                        : packed_desc(block_stride(b), s.padded_inputs, s.type));
    offsets.push_back(total);
    total += round_up(descs.back().get_size(), 64U);
  }
  s.bytes = large_pages(total);
  for (std::size_t b = 0; b < descs.size(); ++b) {
    s.blocks.emplace_back(descs[b], engine(), s.bytes.get() + offsets[b]);
  }
  parallel_ranges(count, 1, [&](Index begin, Index end) {
    const OneThread alone;
    Matrix<float> gathered;
    for (Index b = begin; b < end; ++b) {
      const std::span<const float* const> block(rows.data() + b * kBlockColumns,
                                                static_cast<std::size_t>(block_columns(b)));
      const Rows from = rows_of_block(block, block_stride(b), s.inputs, s.padded_inputs,
                                      s.round_to_bf16 && s.type == Type::f32, gathered);
      pack(from, block_stride(b), s.padded_inputs, s.blocks[static_cast<std::size_t>(b)]);
    }
  });
}

PackedWeights::~PackedWeights() = default;

PanelShape PackedWeights::panel_shape() const {
  if (state_->tiles && state_->padded_inputs > kTileLongInputs)
    return {kTileFixedRows, kTileFixedRows};
  if (state_->type == Type::bf16 || has_fast_f32()) return {128, 8};
  // Older processors: the library takes other paths for other numbers of rows, with other bits.
  return {kFixedRows, kFixedRows};
}

Index PackedWeights::blocks() const { return static_cast<Index>(state_->blocks.size()); }

Index PackedWeights::block_columns(Index block) const {
  return std::min(kBlockColumns, state_->outputs - block * kBlockColumns);
}

Index PackedWeights::block_stride(Index block) const {
  return round_up(block_columns(block), state_->tiles ? kTileColumns : 16);
}

WeightPanel PackedWeights::panel(MatrixView<const float> x) const {
  const State& s = *state_;
  MASQUE_CHECK(x.columns == s.inputs && x.rows > 0 && x.rows <= panel_shape().rows);
  const Index padded = round_up(x.rows, panel_shape().step);
  const bool dense = x.stride == x.columns && padded == x.rows;
  if (dense && !s.round_to_bf16) return {x.data, x.rows, padded};
  const auto count = static_cast<std::size_t>(padded * s.padded_inputs);
  if (s.type == Type::bf16) {
    auto* to = reinterpret_cast<std::uint16_t*>(
        scratch(ScratchPurpose::kOperand, count * sizeof(std::uint16_t)));
    for (Index i = 0; i < x.rows; ++i) {
      std::uint16_t* row = to + i * s.padded_inputs;
      to_bf16_row(x.row(i), s.inputs, row);
      std::fill(row + s.inputs, row + s.padded_inputs, std::uint16_t{0});
    }
    std::fill_n(to + x.rows * s.padded_inputs, (padded - x.rows) * s.padded_inputs,
                std::uint16_t{0});
    return {to, x.rows, padded};
  }
  auto* to = reinterpret_cast<float*>(scratch(ScratchPurpose::kOperand, count * sizeof(float)));
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

const float* PackedWeights::multiply(const WeightPanel& panel, Index block) const {
  const State& s = *state_;
  const Index columns = block_stride(block);
  const OneThread alone;
  Call& call = call_of_thread({panel.padded_rows, columns, s.padded_inputs, s.type});
  std::byte* out = scratch(ScratchPurpose::kProduct,
                           sizeof(float) * static_cast<std::size_t>(panel.padded_rows * columns));
  std::byte* work = scratch(ScratchPurpose::kLibrary, call.shared->scratchpad.get_size() + 1);
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
  engine();  // sets the library up
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
