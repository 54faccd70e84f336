#include "grow/grow_width.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "model/checkpoint/load.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "tensor/convert.hpp"

namespace masque::grow {

namespace {

/// The keys of config.json that say a size, by all families.
constexpr std::array<std::string_view, 13> kWidths = {
    "hidden_size",    "n_embd",  "d_model",   "dim",     "intermediate_size",
    "n_inner",        "d_ff",    "d_inner",   "ffn_dim", "hidden_dim",
    "embedding_size", "n_embed", "inner_size"};
constexpr std::array<std::string_view, 5> kHeads = {"num_attention_heads", "n_head", "num_heads",
                                                    "n_heads", "num_key_value_heads"};

/// Elements of a tensor of the file, grown, from its rows before.
class GrownElements {
 public:
  GrownElements(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                const TensorGrowth& growth)
      : checkpoint_(checkpoint),
        tensor_(tensor),
        scale_(growth.scale),
        outer_(growth.transposed ? growth.columns : growth.rows),
        inner_(growth.transposed ? growth.rows : growth.columns),
        width_(tensor.elements() / outer_before()) {}

  store::Source source() && {
    const std::uint64_t row = static_cast<std::uint64_t>(inner_.size()) * size();
    constexpr std::uint64_t kAbout = 1 << 20;
    store::Computed computed;
    computed.chunk_bytes = std::max<std::uint64_t>(1, kAbout / row) * row;
    computed.fill = [own = std::move(*this), row](std::uint64_t offset, MutableBytes out) {
      own.fill(offset / row, out);
    };
    return computed;
  }

 private:
  std::uint64_t size() const { return dtype_bits(tensor_.dtype) / 8; }
  std::uint64_t outer_before() const {
    Index rows = 0;
    for (const Index from : outer_.from) rows = std::max(rows, from + 1);
    return static_cast<std::uint64_t>(rows);
  }

  void fill(std::uint64_t first, MutableBytes out) const {
    const std::size_t row_bytes = static_cast<std::size_t>(inner_.size()) * size();
    std::vector<std::byte> bytes(width_ * size());
    std::vector<double> before(width_);
    std::vector<double> after(static_cast<std::size_t>(inner_.size()));
    Index loaded = -1;
    for (std::size_t at = 0; at < out.size(); at += row_bytes, ++first) {
      const auto row = static_cast<std::size_t>(first);
      if (outer_.from[row] != loaded) {
        loaded = outer_.from[row];
        checkpoint_.read(tensor_, static_cast<std::uint64_t>(loaded) * width_ * size(), bytes);
        to_double(tensor_.dtype, bytes, before);
      }
      const double scale = scale_ * (outer_.share.empty() ? 1 : outer_.share[row]);
      for (std::size_t i = 0; i < after.size(); ++i) {
        const double share = inner_.share.empty() ? 1 : inner_.share[i];
        after[i] = before[static_cast<std::size_t>(inner_.from[i])] * share * scale;
      }
      from_double(tensor_.dtype, after, out.subspan(at, row_bytes));
    }
  }

  const store::Checkpoint& checkpoint_;
  const store::TensorInfo& tensor_;
  double scale_;
  UnitCopies outer_, inner_;
  std::uint64_t width_;  ///< elements of a row of the file, before
};

class Growth {
 public:
  Growth(const std::string& in, const WidthRequest& request)
      : request_(request),
        checkpoint_(store::open_checkpoint(in)),
        config_(config_of(checkpoint_)),
        names_(checkpoint_, config_),
        family_(model::choose_family(config_, "")),
        plan_(family_.plan(model::FamilyConfig(config_))),
        found_(model::find_tensors(plan_, checkpoint_, names_)),
        edit_(checkpoint_) {
    if (request.factor < 2)
      throw UsageError(fmt::format("{} {}, expected 2 or more", field("factor"), request.factor));
    store::check_whole_gguf(checkpoint_);
    settings_ = {found_.design, wider_design(found_.design, request.factor), request.factor,
                 request.rule, request.seed};
  }

  WidthReport run(const std::string& out) {
    change_config();
    for (const model::TensorPlan& tensor : found_.tensors) {
      replace(*tensor.info, grow_tensor(settings_, tensor.placed, tensor.info->name));
      known_.insert(tensor.info->name);
    }
    for (const store::TensorInfo& tensor : checkpoint_.tensors()) {
      if (!known_.contains(tensor.name)) grow_unused(tensor);
    }
    if (checkpoint_.is_folder() && exists(join(checkpoint_.folder(), kTrainingState))) {
      edit_.drop_file(kTrainingState);
      report_.notes.push_back(
          fmt::format("{}: the optimizer's moments are left out", kTrainingState));
    }
    report_.before = settings_.before;
    report_.after = settings_.after;
    report_.exact = request_.rule == WidthRule::kEqual &&
                    std::has_single_bit(static_cast<std::uint64_t>(request_.factor)) &&
                    settings_.before.head.scale == settings_.after.head.scale;
    for (std::string& note : surgery::write_edit(edit_, out, request_.write))
      report_.notes.push_back(std::move(note));
    return std::move(report_);
  }

 private:
  static constexpr const char* kTrainingState = "training.safetensors";

  static store::ModelConfig config_of(const store::Checkpoint& checkpoint) {
    auto config = store::find_config(checkpoint);
    if (!config || !checkpoint.is_folder())
      throw InputError(checkpoint.path(), "no config.json, expected a folder with one");
    return *std::move(config);
  }

  void change_config() {
    const auto multiply = [&](std::string_view key) {
      const auto size = config_.size(key);
      if (!size) return;
      edit_.set_config(key, fmt::format("{}", *size * factor()));
    };
    for (const std::string_view key : kWidths) {
      if (key != "embedding_size" ||
          settings_.before.embedding_size == settings_.before.hidden_size)
        multiply(key);
    }
    if (settings_.before.layer_kind == model::LayerKind::kTransformer) {
      for (const std::string_view key : kHeads) multiply(key);
    }
    const auto text = edit_.file_text(store::config_name(checkpoint_.folder()));
    const model::ModelPlan wider =
        family_.plan(model::FamilyConfig(store::ModelConfig::parse(text.value(), config_.path())));
    model::Design expected = settings_.after;
    expected.head = wider.design.head;
    expected.notes = wider.design.notes;
    if (!same_design(wider.design, expected)) {
      throw InputError(config_.path(),
                       fmt::format("family {} cannot say the wider model: {} × {}, {} heads of {}",
                                   family_.name, expected.hidden_size, expected.intermediate_size,
                                   expected.num_attention_heads, expected.head_size));
    }
    const model::HeadPlan* head = same_head(wider);
    if (head != nullptr) settings_.after.head.scale = head->design.scale;
  }

  /// The wider plan's head of the same kind.
  const model::HeadPlan* same_head(const model::ModelPlan& plan) const {
    const auto found = std::ranges::find_if(plan.heads, [&](const model::HeadPlan& head) {
      return head.design.kind == found_.design.head.kind;
    });
    return found == plan.heads.end() ? nullptr : &*found;
  }

  void replace(const store::TensorInfo& tensor, const TensorGrowth& growth) {
    if (growth.shape == tensor.shape && growth.scale == 1) {
      ++report_.kept;
      return;
    }
    ++report_.grown;
    edit_.replace(tensor.name, growth.shape, GrownElements(checkpoint_, tensor, growth).source());
  }

  /// What no part of the model reads: copies of what it reads, poolers, classifiers, buffers.
  void grow_unused(const store::TensorInfo& tensor) {
    if (!is_float(tensor.dtype)) {
      ++report_.kept;
      return;
    }
    for (const model::TensorPlan& known : found_.tensors) {
      if (known.info->shape != tensor.shape || known.info->dtype != tensor.dtype ||
          !store::same_values(checkpoint_, *known.info, tensor))
        continue;
      replace(tensor, grow_tensor(settings_, known.placed, known.info->name));
      return;
    }
    const auto width = static_cast<std::uint64_t>(settings_.before.hidden_size);
    const bool reads = tensor.shape.size() == 2 && tensor.shape[1] == width;
    const bool pooler = tensor.name.find("pooler.") != std::string::npos;
    TensorGrowth growth;
    growth.shape = tensor.shape;
    if (reads && (pooler || tensor.shape[0] != width)) {
      const auto rows = static_cast<Index>(tensor.shape[0]);
      growth.rows = pooler ? repeated_units(rows, 1, request_.factor) : kept_units(rows);
      growth.columns = repeated_units(settings_.before.hidden_size, 1, request_.factor);
      share_equally(growth.columns, request_.factor);
      growth.shape = {static_cast<std::uint64_t>(growth.rows.size()), width * factor()};
    } else if (pooler && tensor.shape == Shape{width}) {
      growth.rows = kept_units(1);
      growth.columns = repeated_units(settings_.before.hidden_size, 1, request_.factor);
      growth.shape = {width * factor()};
    } else if (std::ranges::find(tensor.shape, width) != tensor.shape.end()) {
      edit_.remove(tensor.name);
      report_.notes.push_back(
          fmt::format("'{}' is left out: no part of the model reads it", escape(tensor.name)));
      return;
    }
    replace(tensor, growth);
  }

  std::uint64_t factor() const { return static_cast<std::uint64_t>(request_.factor); }

  const WidthRequest& request_;
  store::Checkpoint checkpoint_;
  store::ModelConfig config_;
  store::NamedTensors names_;
  const model::Family& family_;
  model::ModelPlan plan_;
  model::LoadPlan found_;
  surgery::CheckpointEdit edit_;
  WidthSettings settings_;
  std::set<std::string> known_;
  WidthReport report_;
};

}  // namespace

WidthReport grow_width(const std::string& in, const std::string& out, const WidthRequest& request) {
  WidthRequest own = request;
  own.write.input = in;
  Growth growth(in, own);
  return growth.run(out);
}

}  // namespace masque::grow
