// The fields of attn-probe stats: of heads, and of the states after their layer.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "probe/attention/attention_totals.hpp"

namespace masque::attn_probe {

/// A field of a head, or of the states after its layer.
struct Column {
  std::string_view name;
  std::optional<probe::HeadField> head;
  probe::Moments probe::StateTotals::*state = nullptr;
  probe::MeasuredPer per = probe::MeasuredPer::kSentence;  ///< what it is measured of
  std::string_view formula;
};

/// All fields, those of heads first.
std::vector<Column> all_columns();

}  // namespace masque::attn_probe
