#include "records/pack.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

Packer::Packer(const PackOptions& options) : options_(options) {
  if (options.length < 1) throw UsageError(fmt::format("{}: expected at least 1", field("length")));
}

void Packer::append(const Record& document, std::size_t begin, std::size_t end) {
  if (open_.ids.empty()) {
    for (Numbers* list : {&open_.pos, &open_.doc, &open_.cu_seqlens}) list->present = true;
    open_.cu_seqlens.values.push_back(0);
    open_.labels.present = document.labels.present;
  }
  if (open_.labels.present != document.labels.present) {
    throw InputError("only some records have labels, expected all or none");
  }
  for (std::size_t i = begin; i < end; ++i) {
    open_.ids.push_back(document.ids[i]);
    open_.pos.values.push_back(options_.pos_start + (document.pos.present
                                                         ? document.pos.values[i]
                                                         : static_cast<std::int32_t>(i - begin)));
    open_.doc.values.push_back(documents_);
    if (document.labels.present) open_.labels.values.push_back(document.labels.values[i]);
  }
  open_.cu_seqlens.values.push_back(static_cast<std::int32_t>(open_.ids.size()));
  ++documents_;
}

void Packer::close(const Emit& emit) {
  if (open_.ids.empty()) return;
  std::string mask = "document(";
  for (std::size_t i = 1; i < open_.cu_seqlens.values.size(); ++i) {
    mask += fmt::format("{}{}", i == 1 ? "" : ",",
                        open_.cu_seqlens.values[i] - open_.cu_seqlens.values[i - 1]);
  }
  open_.mask = mask + ")";
  open_.number = sequences_++;
  emit(open_);
  open_.clear();
  documents_ = 0;
}

void Packer::add(const Record& document, const Emit& emit) {
  if (document.ids.empty()) return;
  if (document.has_weights) throw InputError("has weights, which cannot be packed");
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
  if (document.size() > options_.length) {
    throw InputError(fmt::format("{} tokens, expected at most {}, or {}", document.size(),
                                 options_.length, field("cut")));
  }
  if (open_.size() + document.size() > options_.length) close(emit);
  append(document, 0, document.size());
}

void Packer::finish(const Emit& emit) { close(emit); }

}  // namespace masque::records
