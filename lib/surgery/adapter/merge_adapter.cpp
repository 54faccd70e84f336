#include "surgery/adapter/merge_adapter.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "store/names/family.hpp"
#include "store/names/scaled_weights.hpp"
#include "surgery/adapter/adapter_config.hpp"
#include "surgery/edit/edit_report.hpp"
#include "surgery/rows/new_rows.hpp"
#include "surgery/rows/row_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

constexpr std::string_view kWrapper = "base_model.model.";

/// A matrix of an adapter.
struct LowRank {
  std::uint64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< row by row
};

/// The two matrices of a module, and how its weight is changed.
struct Pair {
  const store::TensorInfo* a = nullptr;
  const store::TensorInfo* b = nullptr;
  bool embedding = false;  ///< a table, whose A has a column for each row of it
};

store::Checkpoint open_adapter(const std::string& folder) {
  for (const char* name : {"adapter_model.safetensors", "adapter_model.bin"}) {
    const std::string path = join(folder, name);
    if (exists(path)) return store::open_checkpoint(path);
  }
  throw InputError(folder, "no adapter_model.safetensors, expected a PEFT adapter");
}

LowRank read_matrix(const store::Checkpoint& adapter, const store::TensorInfo& tensor) {
  if (tensor.shape.size() != 2 || !is_float(tensor.dtype)) {
    throw InputError(
        adapter.path(),
        fmt::format("'{}' is {} {}, expected a matrix of floating-point numbers",
                    escape(tensor.name), dtype_name(tensor.dtype), shape_text(tensor.shape)));
  }
  LowRank matrix{tensor.shape[0], tensor.shape[1], {}};
  std::vector<std::byte> bytes(tensor.bytes());
  adapter.read(tensor, 0, bytes);
  matrix.values.resize(tensor.elements());
  to_double(tensor.dtype, bytes, matrix.values);
  return matrix;
}

/// The tensors of a checkpoint by names without the base prefix of their family.
class BaseTensors {
 public:
  explicit BaseTensors(const store::Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const store::TensorInfo& tensor : checkpoint.tensors())
      by_name_.emplace(store::canonical_name(tensor.name), &tensor);
  }

  /// The tensor that an adapter calls `name`. Throws InputError if there is none.
  const store::TensorInfo& get(const std::string& name, const std::string& of) const {
    if (const store::TensorInfo* tensor = checkpoint_.find(name)) return *tensor;
    const auto found = by_name_.find(store::canonical_name(name));
    if (found != by_name_.end()) return *found->second;
    throw InputError(checkpoint_.path(), fmt::format("no tensor '{}', expected one for '{}' of the "
                                                     "adapter",
                                                     escape(name), escape(of)));
  }

 private:
  const store::Checkpoint& checkpoint_;
  std::map<std::string, const store::TensorInfo*> by_name_;
};

/// Whether a family keeps a square matrix as (in, out).
bool is_in_out(const std::optional<store::ModelConfig>& config, const std::string& name,
               bool fallback) {
  const auto family = config ? store::family_names_of(*config) : nullptr;
  if (family == nullptr) return fallback;
  return std::ranges::any_of(family->in_out.tensors, [&](const std::string& pattern) {
    // "~h.{x}.attn.c_attn.weight": what is after the number says which it is.
    const std::size_t number = pattern.rfind('}');
    const std::size_t begin = pattern.starts_with('~') ? 1 : 0;
    return name.ends_with(
        std::string_view(pattern).substr(number == std::string::npos ? begin : number + 1));
  });
}

class Merger {
 public:
  Merger(EditedCheckpoint& base, const std::string& folder)
      : base_(base), tensors_(base.checkpoint), config_(folder), adapter_(open_adapter(folder)) {}

  MergeReport merge() {
    for (const store::TensorInfo& tensor : adapter_.tensors()) sort(tensor);
    for (const store::OpaqueTensor& tensor : adapter_.opaque())
      static_cast<void>(adapter_.get(tensor.name));  // throws, naming its type
    for (const auto& [module, pair] : pairs_) add(module, pair);
    for (const std::string& key : config_.unknown())
      report_.notes.push_back(
          fmt::format("unknown key of adapter_config.json is not used: {}", escape(key)));
    if (pairs_.empty() && report_.replaced == 0)
      throw InputError(adapter_.path(), "no tensors of an adapter, expected pairs lora_A, lora_B");
    return std::move(report_);
  }

 private:
  /// Finds out what a tensor of the adapter is for.
  void sort(const store::TensorInfo& tensor) {
    std::string_view name = tensor.name;
    if (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
    for (const auto& [ending, b, embedding] :
         {std::tuple<std::string_view, bool, bool>{".lora_A.weight", false, false},
          {".lora_B.weight", true, false},
          {".lora_embedding_A", false, true},
          {".lora_embedding_B", true, true}}) {
      if (!name.ends_with(ending)) continue;
      Pair& pair = pairs_[std::string(name.substr(0, name.size() - ending.size()))];
      (b ? pair.b : pair.a) = &tensor;
      pair.embedding = embedding;
      return;
    }
    if (name.find("lora_") != std::string_view::npos ||
        name.find("trainable_tokens") != std::string_view::npos) {
      throw InputError(adapter_.path(),
                       fmt::format("'{}': expected lora_A.weight and lora_B.weight alone: such "
                                   "adapters cannot be merged",
                                   escape(tensor.name)));
    }
    replace(tensor, std::string(name));
  }

  /// A tensor that the adapter has whole.
  void replace(const store::TensorInfo& tensor, std::string name) {
    for (const std::string_view part : {".base_layer.", ".modules_to_save."}) {
      const std::size_t at = name.find(part);
      if (at != std::string::npos) name.replace(at, part.size(), ".");
    }
    const store::TensorInfo& own = tensors_.get(name, tensor.name);
    if (own.shape != tensor.shape) {
      throw InputError(
          adapter_.path(),
          fmt::format("'{}': shape {}, expected {} of the base's '{}'", escape(tensor.name),
                      shape_text(tensor.shape), shape_text(own.shape), escape(own.name)));
    }
    base_.edit.replace(own.name, own.shape, whole_source(tensor, own.dtype));
    ++report_.replaced;
  }

  /// The values of `tensor` of the adapter in the base's type.
  store::Source whole_source(const store::TensorInfo& tensor, DType to) const {
    if (!is_float(tensor.dtype) || !can_encode(to)) {
      throw InputError(adapter_.path(), fmt::format("'{}' is {}, expected a floating-point type",
                                                    escape(tensor.name), dtype_name(tensor.dtype)));
    }
    store::Computed source;
    source.fill = [this, &tensor, to](std::uint64_t offset, MutableBytes out) {
      const std::size_t width = dtype_bits(to) / 8;
      const std::size_t from = dtype_bits(tensor.dtype) / 8;
      std::vector<double> values(out.size() / width);
      std::vector<std::byte> bytes(values.size() * from);
      adapter_.read(tensor, offset / width * from, bytes);
      to_double(tensor.dtype, bytes, values);
      from_double(to, values, out);
      to_double(to, out, values);
      if (std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) return;
      throw InputError(adapter_.path(), fmt::format("'{}': a value is not finite in {}, expected "
                                                    "finite numbers",
                                                    escape(tensor.name), dtype_name(to)));
    };
    return source;
  }

  void add(const std::string& module, const Pair& pair) {
    if (pair.a == nullptr || pair.b == nullptr) {
      throw InputError(adapter_.path(), fmt::format("'{}' has one of lora_A and lora_B, expected "
                                                    "both",
                                                    escape(module)));
    }
    const auto a = std::make_shared<LowRank>(read_matrix(adapter_, *pair.a));
    const auto b = std::make_shared<LowRank>(read_matrix(adapter_, *pair.b));
    const store::TensorInfo& weight = tensors_.get(module + ".weight", pair.a->name);
    store::check_has_no_scale(base_.checkpoint, base_.config, weight);
    const Shape out_in{b->rows, a->columns};
    const Shape in_out{a->columns, b->rows};
    bool transposed = pair.embedding;
    if (!pair.embedding && weight.shape == in_out)
      transposed =
          in_out != out_in || is_in_out(base_.config, weight.name, config_.fan_in_fan_out());
    if (a->rows != b->columns || weight.shape != (transposed ? in_out : out_in)) {
      throw InputError(
          adapter_.path(),
          fmt::format("'{}' {} and '{}' {} do not fit the base's '{}' {}", escape(pair.a->name),
                      shape_text(pair.a->shape), escape(pair.b->name), shape_text(pair.b->shape),
                      escape(weight.name), shape_text(weight.shape)));
    }
    const double scale = config_.scale(module, a->rows);
    base_.edit.replace(
        weight.name, weight.shape,
        new_rows_source(
            base_.checkpoint, weight,
            [this, a, b, scale, transposed, &weight](std::uint64_t row, std::span<double> values) {
              add_product(*a, *b, transposed, row, values);
              const std::vector<double> own = read_row(base_.checkpoint, weight, row);
              for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = own[i] + scale * values[i];
              return kComputedRow;
            }));
    ++report_.merged;
  }

  /// `values` ← row `row` of B · A, or of its transpose.
  static void add_product(const LowRank& a, const LowRank& b, bool transposed, std::uint64_t row,
                          std::span<double> values) {
    std::ranges::fill(values, 0);
    for (std::uint64_t k = 0; k < a.rows; ++k) {
      const double factor =
          transposed ? a.values[k * a.columns + row] : b.values[row * b.columns + k];
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] +=
            factor * (transposed ? b.values[i * b.columns + k] : a.values[k * a.columns + i]);
      }
    }
  }

  EditedCheckpoint& base_;
  BaseTensors tensors_;
  AdapterConfig config_;
  store::Checkpoint adapter_;
  std::map<std::string, Pair> pairs_;  ///< by module
  MergeReport report_;
};

}  // namespace

MergeReport merge_adapter(const std::string& base, const std::string& adapter,
                          const std::string& out, const store::WriteOptions& options) {
  EditRequest request;
  request.write = options;
  EditedCheckpoint edited(base, request);
  Merger merger(edited, adapter);
  MergeReport report = merger.merge();
  EditReport written;
  finish_edit(edited, out, request, written);
  report.notes.insert(report.notes.end(), written.notes.begin(), written.notes.end());
  return report;
}

}  // namespace masque::surgery
