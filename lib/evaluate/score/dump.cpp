#include "evaluate/score/dump.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/string/name_table.hpp"
#include "base/string/split.hpp"
#include "mask/expression.hpp"
#include "model/variants.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/transfer.hpp"

namespace masque::evaluate {

namespace {

/// Where the tensors of an item begin in the file.
struct ItemTensors {
  std::uint64_t hidden_states = 0;
  std::uint64_t query_states = 0;
  std::uint64_t logits = 0;
  std::uint64_t attentions = 0;
  std::uint64_t encoder_states = 0;
  std::uint64_t encoder_attentions = 0;
  std::uint64_t cross_attentions = 0;
};

/// Names, sizes and offsets of everything, before anything is computed.
class Layout {
 public:
  Layout(const model::Model& model, DType dtype, const DumpRequest& request)
      : design_(model.design()),
        encoder_(model.encoder() != nullptr ? &model.encoder()->design() : nullptr),
        dtype_(dtype),
        request_(request) {}

  void add(const Sequence& item) {
    const auto length = static_cast<std::uint64_t>(item.ids.size());
    const auto layers = static_cast<std::uint64_t>(design_.num_hidden_layers);
    const auto hidden = static_cast<std::uint64_t>(design_.hidden_size);
    const auto heads = static_cast<std::uint64_t>(value_heads(design_));
    const std::string name = fmt::format("{}.", item.number);
    ItemTensors& of_item = items_.emplace_back();
    if (request_.attentions)
      of_item.attentions = tensor(name + "attentions", {layers, heads, length, length});
    if (request_.hidden_states)
      of_item.hidden_states = tensor(name + "hidden_states", {layers + 1, length, hidden});
    if (request_.logits) of_item.logits = tensor(name + "logits", {length, columns()});
    if (request_.hidden_states && design_.streams == model::Streams::kTwo)
      of_item.query_states = tensor(name + "query_states", {layers + 1, length, hidden});
    if (encoder_ == nullptr) return;
    const auto source = static_cast<std::uint64_t>(item.source.size());
    const auto deep = static_cast<std::uint64_t>(encoder_->num_hidden_layers);
    if (request_.attentions) {
      const auto own = static_cast<std::uint64_t>(value_heads(*encoder_));
      of_item.encoder_attentions = tensor(name + "encoder_attentions", {deep, own, source, source});
      of_item.cross_attentions = tensor(name + "cross_attentions", {layers, heads, length, source});
    }
    if (request_.hidden_states) {
      of_item.encoder_states =
          tensor(name + "encoder_hidden_states",
                 {deep + 1, source, static_cast<std::uint64_t>(encoder_->hidden_size)});
    }
  }

  /// The header, after which offsets count from the start of the file.
  std::string finish() {
    std::string header = store::write_safetensors_header(tensors_, request_.metadata);
    for (ItemTensors& p : items_) {
      for (std::uint64_t* offset : {&p.hidden_states, &p.query_states, &p.logits, &p.attentions,
                                    &p.encoder_states, &p.encoder_attentions, &p.cross_attentions})
        *offset += header.size();
    }
    return header;
  }

  const std::vector<ItemTensors>& items() const { return items_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t columns() const {
    const bool one = model::has_one_number(design_.head.kind);
    return one ? 1 : static_cast<std::uint64_t>(design_.vocab_size);
  }

  std::uint64_t tensor(std::string name, Shape shape) {
    const auto count = element_count(shape);
    const auto size =
        count ? checked_multiply(*count, dtype_ == DType::kF64 ? 8 : 4) : std::nullopt;
    const auto end = size ? checked_add(bytes_, *size) : std::nullopt;
    if (!end) throw InputError(fmt::format("{} is too large for a file", name));
    const std::uint64_t begin = bytes_;
    tensors_.push_back({std::move(name), dtype_, std::move(shape), begin, *end, 0});
    bytes_ = *end;
    return begin;
  }

  const model::Design& design_;
  const model::Design* encoder_;  ///< nullptr: the model has none
  DType dtype_;
  const DumpRequest& request_;
  std::vector<store::TensorInfo> tensors_;
  std::vector<ItemTensors> items_;
  std::uint64_t bytes_ = 0;
};

/// Puts the results of one run into the file: of the model, or of the encoder that it reads.
class FileWriter : public model::Observer {
 public:
  FileWriter(const model::Model& model, const OutputFile& file, const model::Batch& batch,
             std::span<const ItemTensors> tensors, bool encoder = false)
      : model_(model), file_(file), batch_(batch), items_(tensors), encoder_(encoder) {}

  void hidden_states(Index s, Index state, MatrixView<const float> rows) override {
    put(states_of(s), state * rows.rows, rows);
  }
  void hidden_states(Index s, Index state, MatrixView<const double> rows) override {
    put(states_of(s), state * rows.rows, rows);
  }
  void query_states(Index s, Index state, MatrixView<const float> rows) override {
    put(item(s).query_states, state * rows.rows, rows);
  }
  void query_states(Index s, Index state, MatrixView<const double> rows) override {
    put(item(s).query_states, state * rows.rows, rows);
  }
  void attention(Index s, Index layer, Index head, MatrixView<const float> weights) override {
    put_attention(attentions_of(s), layer, head, weights);
  }
  void attention(Index s, Index layer, Index head, MatrixView<const double> weights) override {
    put_attention(attentions_of(s), layer, head, weights);
  }
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const float> weights) override {
    put_attention(item(s).cross_attentions, layer, head, weights);
  }
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const double> weights) override {
    put_attention(item(s).cross_attentions, layer, head, weights);
  }
  void logits(Index s, Index first, MatrixView<const float> rows) override {
    put(item(s).logits, first - begin_of(s), rows);
  }
  void logits(Index s, Index first, MatrixView<const double> rows) override {
    put(item(s).logits, first - begin_of(s), rows);
  }

 private:
  const ItemTensors& item(Index s) const { return items_[static_cast<std::size_t>(s)]; }
  Index begin_of(Index s) const { return batch_.begins[static_cast<std::size_t>(s)]; }

  std::uint64_t states_of(Index s) const {
    return encoder_ ? item(s).encoder_states : item(s).hidden_states;
  }
  std::uint64_t attentions_of(Index s) const {
    return encoder_ ? item(s).encoder_attentions : item(s).attentions;
  }

  template <class T>
  void put_attention(std::uint64_t begin, Index layer, Index head, MatrixView<const T> weights) {
    const Index heads = value_heads(model_.design());
    put(begin, (layer * heads + head) * weights.rows, weights);
  }

  /// Rows of a tensor whose first element stands at `begin`, from row `first`.
  template <class T>
  void put(std::uint64_t begin, Index first, MatrixView<const T> rows) {
    const auto width = static_cast<std::size_t>(rows.columns) * sizeof(T);
    std::vector<std::byte> bytes(width * static_cast<std::size_t>(rows.rows));
    for (Index i = 0; i < rows.rows; ++i) {
      const Bytes row = std::as_bytes(rows.row_span(i));
      std::copy(row.begin(), row.end(), bytes.begin() + static_cast<std::ptrdiff_t>(width) * i);
    }
    write_at(file_.descriptor(), begin + static_cast<std::uint64_t>(first) * width, bytes,
             file_.path());
  }

  const model::Model& model_;
  const OutputFile& file_;
  const model::Batch& batch_;
  std::span<const ItemTensors> items_;
  bool encoder_;
};

mask::Mask all_but_itself(Index length) { return mask::parse_mask("tta").bind({length, length}); }

void run_items(const model::Model& model, std::span<const Sequence> items,
               std::span<const ItemTensors> tensors, const DumpRequest& request,
               const OutputFile& file) {
  const bool two_streams = model.design().streams == model::Streams::kTwo;
  model::Batch batch = batch_of(items, two_streams);
  // Two streams without a mask: logits come from the content stream, as in transformers.
  const bool apart = two_streams && !items.front().mask && request.logits;
  FileWriter writer(model, file, batch, tensors);
  model::Request wanted{.hidden_states = request.hidden_states,
                        .attentions = request.attentions,
                        .source_attentions = request.attentions && model.encoder() != nullptr,
                        .logits = request.logits && !apart,
                        .all_rows = two_streams || request.logits};
  model.run(batch, wanted, &writer);
  if (model.encoder() != nullptr && (request.hidden_states || request.attentions)) {
    model::Batch sources;
    for (const Sequence& item : items) sources.add(item.source);
    FileWriter of_encoder(*model.encoder(), file, sources, tensors, true);
    model.encoder()->run(sources,
                         {.hidden_states = request.hidden_states, .attentions = request.attentions},
                         &of_encoder);
  }
  if (!apart) return;
  batch.query_masks.clear();
  model.run(batch, {.logits = true, .all_rows = true}, &writer);
}

}  // namespace

model::Batch batch_of(std::span<const Sequence> items, bool two_streams) {
  model::Batch batch;
  for (const Sequence& item : items) {
    // What a record says replaces the model's mask.
    batch.masks_join = two_streams && !item.mask;
    model::SequenceParts parts{item.positions, item.segments, item.mask, {}};
    if (two_streams) {
      const mask::Lengths lengths{item.size(), item.size()};
      parts.query_mask = item.mask ? *item.mask : all_but_itself(item.size());
      if (item.mask) parts.mask = *item.mask | mask::parse_mask("diagonal").bind(lengths);
    }
    parts.source = item.source;
    batch.add(item.ids, parts);
  }
  return batch;
}

void parse_dump_parts(std::string_view list, DumpRequest& request) {
  using Part = bool DumpRequest::*;
  static constexpr std::array<std::pair<std::string_view, Part>, 3> kParts{
      {{"hidden_states", &DumpRequest::hidden_states},
       {"logits", &DumpRequest::logits},
       {"attentions", &DumpRequest::attentions}}};
  const std::vector<std::string_view> names = split(list, ',');
  for (const Part part : named_values("what", std::span(names), NameTable<Part>(kParts)))
    request.*part = true;
}

void dump(const model::Model& model, std::span<const Sequence> items, const DumpRequest& request,
          const std::string& path) {
  const bool wide = model.precision() == kernel::Precision::kF64;
  const bool two_streams = model.design().streams == model::Streams::kTwo;
  Layout layout(model, wide ? DType::kF64 : DType::kF32, request);
  for (const Sequence& item : items) layout.add(item);
  const std::string header = layout.finish();
  OutputFile file(path);
  store::reserve_space(file.descriptor(), header.size() + layout.bytes(), path);
  write_at(file.descriptor(), 0, as_bytes(header), path);
  for (std::size_t begin = 0; begin < items.size();) {
    // Items with and without a mask of their own are run apart where that changes the run.
    std::size_t end = begin;
    Index tokens = 0;
    while (end < items.size() &&
           (end == begin ||
            (tokens + std::ssize(items[end].ids) <= request.batch_tokens &&
             (!two_streams || items[end].mask.has_value() == items[begin].mask.has_value())))) {
      tokens += std::ssize(items[end++].ids);
    }
    if (tokens > 0) {
      run_items(model, items.subspan(begin, end - begin),
                std::span(layout.items()).subspan(begin, end - begin), request, file);
    }
    begin = end;
    if (request.progress) request.progress(begin, items.size());
  }
  file.commit();
}

}  // namespace masque::evaluate
