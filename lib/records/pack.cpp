#include "records/pack.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::records {

Packer::Packer(const PackOptions& options) : options_(options) {
  if (options.length < 1) throw UsageError(fmt::format("{}: expected at least 1", field("length")));
}

namespace {

/// The lists that stay, with a value for each token.
using List = std::pair<const char*, Numbers Record::*>;
constexpr std::array<List, 4> kLists{{{"labels", &Record::labels},
                                      {"original", &Record::original},
                                      {"seg", &Record::seg},
                                      {"words", &Record::words}}};

/// Throws InputError for what would be lost in a packed sequence.
void check_packable(const Record& document) {
  if (document.cu_seqlens.present || document.doc.present)
    throw InputError("is packed already: it has doc or cu_seqlens");
  if (document.has_weights) throw InputError("has weights, which cannot be packed");
  if (document.source.present) throw InputError("has source_ids, which cannot be packed");
  if (document.mask && *document.mask != "full") {
    throw InputError(fmt::format("has the mask '{}', which cannot be packed: pack documents first",
                                 escape(*document.mask)));
  }
  if (document.pos.present && !document.hidden.empty()) {
    throw InputError(
        "has tokens in front of others that attention_mask hides, which cannot be packed: put "
        "padding at the end");
  }
  // Without labels the original is a target of its own (bart), not one id for each token.
  if (document.original.present &&
      (!document.labels.present || document.original.values.size() != document.size()))
    throw InputError("has an original that is a target, which cannot be packed");
}

}  // namespace

/// All before the first change: a record that is refused leaves nothing in the open sequence.
void Packer::check(const Record& document) {
  check_packable(document);
  if (!fields_) {
    fields_.emplace();
    for (const auto& [name, list] : kLists) ((*fields_).*list).present = (document.*list).present;
    fields_->has_dropped = document.has_dropped;
    fields_->position_ids = document.position_ids;
  }
  const auto refuse = [](const char* name) {
    throw InputError(fmt::format("only some records have {}, expected all or none", name));
  };
  for (const auto& [name, list] : kLists) {
    if (((*fields_).*list).present != (document.*list).present) refuse(name);
  }
  if (fields_->has_dropped != document.has_dropped) refuse("dropped");
  if (fields_->position_ids != document.position_ids) refuse("position_ids");
  const auto check_position = [&](std::int32_t pos) {
    if (pos > std::numeric_limits<std::int32_t>::max() - options_.pos_start)
      throw InputError(fmt::format("position {}, expected a smaller one", pos));
  };
  std::ranges::for_each(document.pos.values, check_position);
  for (const DroppedToken& token : document.dropped) check_position(token.pos);
}

void Packer::append_lists(const Record& document, std::size_t begin, std::size_t end) {
  for (const auto& [name, list] : kLists) {
    (open_.*list).present = (document.*list).present;
    if (!(document.*list).present || list == &Record::words) continue;
    const auto first = (document.*list).values.begin();
    std::vector<std::int32_t>& values = (open_.*list).values;
    values.insert(values.end(), first + static_cast<std::ptrdiff_t>(begin),
                  first + static_cast<std::ptrdiff_t>(end));
  }
}

void Packer::append_words(const Record& document, std::size_t begin, std::size_t end) {
  // The last word of a document and the first of the next one are two.
  std::vector<std::int32_t>& words = open_.words.values;
  for (std::size_t i = begin; i < end; ++i) {
    const bool goes_on = i > begin && document.words.values[i] == document.words.values[i - 1];
    words.push_back(words.empty() ? 0 : words.back() + (goes_on ? 0 : 1));
  }
}

void Packer::append_dropped(const Record& document, std::size_t begin, std::size_t end) {
  open_.has_dropped = document.has_dropped;
  const auto outside = [&](std::int32_t pos) {
    return (begin > 0 && pos < document.position(begin)) ||
           (end < document.size() && pos >= document.position(end));
  };
  for (const DroppedToken& token : document.dropped) {
    if (outside(token.pos)) continue;
    open_.dropped.push_back({options_.pos_start + token.pos, token.id});
  }
}

void Packer::append(const Record& document, std::size_t begin, std::size_t end) {
  if (open_.ids.empty()) {
    for (Numbers* list : {&open_.pos, &open_.doc, &open_.cu_seqlens}) list->present = true;
    open_.cu_seqlens.values.push_back(0);
    open_.position_ids = document.position_ids;
  }
  append_lists(document, begin, end);
  if (document.words.present) append_words(document, begin, end);
  append_dropped(document, begin, end);
  for (std::size_t i = begin; i < end; ++i) {
    open_.ids.push_back(document.ids[i]);
    open_.pos.values.push_back(options_.pos_start + (document.pos.present
                                                         ? document.pos.values[i]
                                                         : static_cast<std::int32_t>(i - begin)));
    open_.doc.values.push_back(documents_);
  }
  open_.cu_seqlens.values.push_back(static_cast<std::int32_t>(open_.ids.size()));
  ++documents_;
}

void Packer::close(const Emit& emit) {
  if (open_.ids.empty()) return;
  open_.mask = document_mask(open_.cu_seqlens.values);
  open_.number = sequences_++;
  emit(open_);
  open_.clear();
  documents_ = 0;
}

void Packer::add(const Record& document, const Emit& emit) {
  if (document.ids.empty()) return;
  if (!options_.cut && document.size() > options_.length) {
    throw InputError(fmt::format("{} tokens, expected at most {}, or {}", document.size(),
                                 options_.length, field("cut")));
  }
  check(document);
  if (options_.cut) {
    for (std::size_t begin = 0; begin < document.size();) {
      const std::size_t room = options_.length - open_.size();
      const std::size_t end = std::min(document.size(), begin + room);
      append(document, begin, end);
      begin = end;
      if (open_.size() == options_.length) close(emit);
    }
    return;
  }
  if (open_.size() + document.size() > options_.length) close(emit);
  append(document, 0, document.size());
}

void Packer::finish(const Emit& emit) { close(emit); }

}  // namespace masque::records
