#include "text/step/normal_form.hpp"

#include <algorithm>
#include <vector>

#include "base/thread/interrupt.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

/// A character of the result; `change` as in Rewriter::put.
struct Item {
  char32_t c;
  std::uint8_t combining_class;
  std::int64_t change;
};

bool is_compatible(NormalForm form) {
  return form == NormalForm::kNfkc || form == NormalForm::kNfkd;
}

bool is_composed(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }

std::u32string_view decomposition(char32_t c, NormalForm form) {
  return is_compatible(form) ? compatible_decomposition(c) : canonical_decomposition(c);
}

/// Whether the character stays as it is and nothing before it can touch it.
bool is_inert(char32_t c, NormalForm form) {
  if (c < 0x80) return true;
  const CharProperties& p = properties(c);
  if (form == NormalForm::kNfc) return p.has(kNfcInert);
  if (form == NormalForm::kNfkc) return p.has(kNfkcInert);
  return p.combining_class == 0 && !is_hangul_syllable(c) && decomposition(c, form).empty();
}

void decompose(char32_t c, NormalForm form, std::vector<Item>& out) {
  const auto push = [&](char32_t part, bool first) {
    out.push_back({part, properties(part).combining_class, first ? 0 : 1});
  };
  if (is_hangul_syllable(c)) {
    const char32_t index = c - kHangulBase;
    push(kHangulL + index / (kHangulVCount * kHangulTCount), true);
    push(kHangulV + index / kHangulTCount % kHangulVCount, false);
    if (index % kHangulTCount != 0) push(kHangulT + index % kHangulTCount, false);
    return;
  }
  const std::u32string_view parts = decomposition(c, form);
  if (parts.empty()) push(c, true);
  for (std::size_t i = 0; i < parts.size(); ++i) push(parts[i], i == 0);
}

/// Brings every run of marks into canonical order.
void order(std::vector<Item>& items) {
  const auto is_starter = [](const Item& item) { return item.combining_class == 0; };
  const auto by_class = [](const Item& a, const Item& b) {
    return a.combining_class < b.combining_class;
  };
  for (auto i = items.begin(); i != items.end();) {
    if (is_starter(*i)) {
      ++i;
      continue;
    }
    const auto end = std::find_if(i, items.end(), is_starter);
    if (end - i > 1 && !std::is_sorted(i, end, by_class)) std::stable_sort(i, end, by_class);
    i = end;
  }
}

/// Composes, in place.
void recompose(std::vector<Item>& items) {
  std::size_t to = 0;
  std::size_t starter = items.size();  // index of the last one in the result; none yet
  std::uint8_t last_class = 0;         // of the mark before, if it stayed; 0 after the starter
  for (const Item item : items) {
    if (starter < to && (last_class == 0 || last_class < item.combining_class)) {
      if (const char32_t composed = compose(items[starter].c, item.c); composed != 0) {
        items[starter].c = composed;
        items[starter].change += item.change - 1;
        continue;
      }
    }
    if (item.combining_class == 0) starter = to;
    last_class = item.combining_class;
    items[to++] = item;
  }
  items.resize(to);
}

}  // namespace

void normalize(AlignedText& text, NormalForm form) {
  const std::string_view old = text.text;
  // Begin of the first stretch that may change, its last inert character included.
  std::size_t inert = 0;
  std::size_t i = 0;
  SparseLooks looks;
  const auto skip_inert = [&] {
    while (i < old.size()) {
      looks.step();
      std::size_t next = i;
      if (!is_inert(next_char(old, next), form)) return;
      inert = i;
      i = next;
    }
    inert = i;
  };
  skip_inert();
  if (inert == old.size()) return;
  Rewriter rewriter(text);
  std::vector<Item> items;
  while (inert < old.size()) {
    rewriter.keep(inert);
    items.clear();
    for (i = inert; i < old.size();) {
      std::size_t next = i;
      const char32_t c = next_char(old, next);
      looks.step();
      if (i > inert && is_inert(c, form)) break;
      decompose(c, form, items);
      i = next;
    }
    order(items);
    if (is_composed(form)) recompose(items);
    for (const Item& item : items) rewriter.put(item.c, item.change);
    inert = i;
    skip_inert();
  }
  rewriter.keep(old.size());
  rewriter.finish();
}

}  // namespace masque::text
