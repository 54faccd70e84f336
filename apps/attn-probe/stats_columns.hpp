// The fields of attn-probe stats: of heads, and of the states after their layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/attention/attention_totals.hpp"

namespace masque::attn_probe {

/// A field of a head, or of the states after its layer.
struct Column {
  std::string name;
  std::optional<probe::HeadField> head;
  std::optional<std::size_t> token = {};  ///< of HeadTotals::tokens
  probe::Moments probe::StateTotals::*state = nullptr;
  probe::MeasuredPer per = probe::MeasuredPer::kSentence;  ///< what it is measured of
  std::string_view formula;

  /// Whether it is a field of heads, not of states.
  bool is_of_heads() const { return head || token; }
};

/// What the name of the field of a token begins with: "token:[SEP]".
inline constexpr std::string_view kTokenField = "token:";

/// All fields, those of heads first, with one for each of `tokens`.
std::vector<Column> all_columns(const std::vector<std::string>& tokens);

}  // namespace masque::attn_probe
