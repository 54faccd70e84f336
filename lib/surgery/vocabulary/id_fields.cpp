#include "surgery/vocabulary/id_fields.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/split.hpp"
#include "surgery/vocabulary/json_elements.hpp"

namespace masque::surgery {

namespace {

struct NamedForm {
  std::string_view name;
  IdForm form;
};

constexpr std::array kNamedForms{
    NamedForm{"suppress_tokens", IdForm::kList},
    NamedForm{"begin_suppress_tokens", IdForm::kList},
    NamedForm{"trainable_token_indices", IdForm::kList},
    NamedForm{"bad_words_ids", IdForm::kSequences},
    NamedForm{"force_words_ids", IdForm::kSequences},
    NamedForm{"forced_decoder_ids", IdForm::kPairs},
    NamedForm{"sequence_bias", IdForm::kBiases},
    NamedForm{"lang_to_id", IdForm::kByName},
    NamedForm{"task_to_id", IdForm::kByName},
    NamedForm{"lang_code_to_id", IdForm::kByName},
    NamedForm{"text_decoder_lang_to_code_id", IdForm::kByName},
};

/// Single ids, and lists of those that must all be there.
constexpr std::array<std::string_view, 4> kIdEndings{"_token_id", "_token_ids", "_token_index",
                                                     "_tokens_ids"};
/// Models of speech have codes of sound besides the tokens.
constexpr std::array<std::string_view, 5> kOtherVocabularies{"t2u_", "codec_", "codebook_",
                                                             "vocoder_", "tts_codec_"};

bool ends_with_one(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

bool holds_numbers(const JsonValue& value) {
  if (value.is(JsonKind::kNumber)) return value.integer().has_value();
  return value.is(JsonKind::kArray) && !value.items.empty() &&
         std::ranges::all_of(value.items, holds_numbers);
}

/// One member on its way.
class Renumbering {
 public:
  Renumbering(const std::string& text, const IdMap& ids, std::uint64_t rows, TextSplice& splice)
      : text_(text), ids_(ids), rows_(rows), splice_(splice) {}

  LostIds run(const JsonValue& value, IdForm form) {
    switch (form) {
      case IdForm::kList:
        elements(value, [&](const JsonValue& item) { return nested(item); });
        break;
      case IdForm::kSequences:
        elements(value, [&](const JsonValue& item) { return sequences(item); });
        break;
      case IdForm::kPairs:
        elements(value, [&](const JsonValue& item) {
          return item.items.size() == 2 ? part(item, 1) : text_of(text_, item);
        });
        break;
      case IdForm::kBiases:
        if (value.is(JsonKind::kObject)) {
          keys(value);
        } else {
          elements(value, [&](const JsonValue& item) {
            return item.items.size() == 2 ? part(item, 0) : text_of(text_, item);
          });
        }
        break;
      case IdForm::kByName: members(value); break;
      case IdForm::kId:
      case IdForm::kOther: break;
    }
    return std::move(lost_);
  }

 private:
  using Text = std::optional<std::string>;  ///< nothing: the entry is gone

  /// The new spelling of an id; other values stay.
  Text number(const JsonValue& value) {
    const auto id = value.integer();
    return id ? spelled(*id, text_of(text_, value)) : text_of(text_, value);
  }

  Text spelled(std::uint64_t id, std::string same) {
    if (id >= rows_) lost_.beyond.push_back(id);
    const auto now = ids_.after(id);
    if (now == id) return same;
    if (now) return fmt::format("{}", *now);
    lost_.gone.push_back(id);
    return std::nullopt;
  }

  /// `value`, a list, with `edits` of its items; nothing if an item is gone.
  template <class Edit>
  Text list(const JsonValue& value, Edit edit) {
    TextSplice inner;
    bool whole = true;
    for (const JsonValue& item : value.items) {
      const Text now = edit(item);
      whole = whole && now.has_value();
      if (now && *now != text_of(text_, item)) inner.replace(item.begin, item.end, *now);
    }
    if (!whole) return std::nullopt;
    return inner.empty() ? text_of(text_, value) : inner.apply(text_, value.begin, value.end);
  }

  /// A number, or a sequence of which all must stay.
  Text sequence(const JsonValue& value) {
    if (!value.is(JsonKind::kArray)) return number(value);
    return list(value, [&](const JsonValue& item) { return sequence(item); });
  }

  /// [5, 6], or of force_words_ids [[5], [6, 7]]: alternatives, of which one goes without others.
  Text sequences(const JsonValue& value) {
    const bool alternatives =
        value.is(JsonKind::kArray) && !value.items.empty() && value.items[0].is(JsonKind::kArray);
    if (!alternatives) return sequence(value);
    return kept(value, [&](const JsonValue& item) { return sequence(item); });
  }

  /// An id, or a list without those that are gone.
  Text nested(const JsonValue& value) {
    if (!value.is(JsonKind::kArray)) return number(value);
    return kept(value, [&](const JsonValue& item) { return nested(item); });
  }

  /// The pair `value` with its item `at` as a sequence.
  Text part(const JsonValue& value, std::size_t at) {
    return list(value, [&](const JsonValue& item) {
      return &item == &value.items[at] ? sequence(item) : Text(text_of(text_, item));
    });
  }

  /// `value` with what `edit` makes of its items; nothing if none of several is left.
  template <class Edit>
  Text kept(const JsonValue& value, Edit edit) {
    std::vector<std::string> wanted;
    for (const JsonValue& item : value.items)
      if (Text now = edit(item)) wanted.push_back(*std::move(now));
    if (wanted.empty() && !value.items.empty()) return std::nullopt;
    TextSplice inner;
    set_elements(text_, value, wanted, inner);
    return inner.empty() ? text_of(text_, value) : inner.apply(text_, value.begin, value.end);
  }

  template <class Edit>
  void elements(const JsonValue& value, Edit edit) {
    if (value.is(JsonKind::kObject)) {  // trainable_token_indices of several tables
      for (const JsonMember& member : value.members) elements(member.value, edit);
      return;
    }
    if (value.is(JsonKind::kArray)) replace(value, kept(value, edit));
  }

  void replace(const JsonValue& value, const Text& now) {
    const std::string text = now.value_or("null");
    if (text != text_of(text_, value)) splice_.replace(value.begin, value.end, text);
  }

  /// {"(5, 6)": -10.0}: tuples of Python as keys.
  void keys(const JsonValue& value) {
    std::vector<std::string> wanted;
    for (const JsonMember& member : value.members) {
      const std::string_view name = member.name;
      std::vector<std::uint64_t> now;
      bool known = name.size() > 2 && name.starts_with('(') && name.ends_with(')');
      bool gone = false;
      if (known) {
        for (std::string_view item : split(name.substr(1, name.size() - 2), ',')) {
          while (item.starts_with(' ')) item.remove_prefix(1);
          if (item.empty()) continue;  // the end of "(5,)"
          const auto id = parse_unsigned(item);
          known = known && id.has_value();
          if (!id) break;
          const Text next = spelled(*id, std::string(item));
          gone = gone || !next;
          if (next) now.push_back(*parse_unsigned(*next));
        }
      }
      if (known && gone) continue;
      const std::string key =
          known ? fmt::format("({}{})", fmt::join(now, ", "), now.size() == 1 ? "," : "")
                : member.name;
      wanted.push_back(member_text(text_, member, key, text_of(text_, member.value)));
    }
    set_members(value, wanted);
  }

  void members(const JsonValue& value) {
    std::vector<std::string> wanted;
    for (const JsonMember& member : value.members)
      if (const Text now = sequence(member.value))
        wanted.push_back(member_text(text_, member, member.name, *now));
    set_members(value, wanted);
  }

  void set_members(const JsonValue& value, const std::vector<std::string>& wanted) {
    if (!value.is(JsonKind::kObject)) return;
    if (wanted.empty() && !value.members.empty()) return replace(value, std::nullopt);
    set_elements(text_, value, wanted, splice_);
  }

  const std::string& text_;
  const IdMap& ids_;
  std::uint64_t rows_;
  TextSplice& splice_;
  LostIds lost_;
};

}  // namespace

std::optional<IdForm> id_form_of(std::string_view name) {
  const auto named = std::ranges::find(kNamedForms, name, &NamedForm::name);
  if (named != kNamedForms.end()) return named->form;
  if (!ends_with_one(name, kIdEndings)) return std::nullopt;
  const bool other = std::ranges::any_of(
      kOtherVocabularies, [&](std::string_view start) { return name.starts_with(start); });
  return other ? IdForm::kOther : IdForm::kId;
}

bool may_hold_ids(std::string_view name, const JsonValue& value) {
  const bool named = name.ends_with("_ids") || name.find("token") != std::string_view::npos;
  return named && value.is(JsonKind::kArray) && holds_numbers(value);
}

LostIds renumber_ids(const std::string& text, const JsonValue& value, IdForm form, const IdMap& ids,
                     std::uint64_t rows, TextSplice& splice) {
  return Renumbering(text, ids, rows, splice).run(value, form);
}

}  // namespace masque::surgery
