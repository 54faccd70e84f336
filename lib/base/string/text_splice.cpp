#include "base/string/text_splice.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque {

void TextSplice::replace(std::size_t begin, std::size_t end, std::string with) {
  MASQUE_CHECK(begin <= end);
  edits_.push_back({begin, end, std::move(with)});
}

std::string TextSplice::apply(const std::string& text) const { return apply(text, 0, text.size()); }

std::string TextSplice::apply(const std::string& text, std::size_t begin, std::size_t end) const {
  std::vector<const Edit*> order;
  order.reserve(edits_.size());
  std::size_t size = end - begin;
  for (const Edit& edit : edits_) {
    order.push_back(&edit);
    size += edit.with.size();
  }
  std::ranges::stable_sort(order, [](const Edit* a, const Edit* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::string out;
  out.reserve(size);
  std::size_t done = begin;
  for (const Edit* edit : order) {
    MASQUE_CHECK(edit->begin >= done && edit->end <= end);
    out.append(text, done, edit->begin - done);
    out += edit->with;
    done = edit->end;
  }
  out.append(text, done, end - done);
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done);
    out += to;
    done = at + from.size();
  }
  out.append(text, done);
  text = std::move(out);
}

}  // namespace masque
