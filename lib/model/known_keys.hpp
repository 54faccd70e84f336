// What the keys of a config.json mean that a family does not read: they change nothing, or the file
// is refused.
#pragma once

#include <string>
#include <vector>

#include "model/family.hpp"
#include "model/family_config.hpp"

namespace masque::model {

/// Judges the keys of `config` that nothing has asked for, by the table in known_keys.cpp; `design`
/// is what its `family` made of it. Throws InputError naming the first key with a value that would
/// change what the model computes, and what it would change. Returns the names of keys that the
/// table does not have, in the order of the text.
std::vector<std::string> check_unused_keys(const FamilyConfig& config, const Family& family,
                                           const Design& design);

/// One line for people about the keys `unknown`, at least one, of check_unused_keys.
std::string unknown_keys_note(const std::vector<std::string>& unknown);

/// The plan that `family` makes of `config`, if the keys that it does not read change nothing: see
/// check_unused_keys. Unknown ones become one line of Design::notes. Throws InputError as
/// check_unused_keys and Family::plan.
ModelPlan read_plan(const Family& family, const FamilyConfig& config);

}  // namespace masque::model
