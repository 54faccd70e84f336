#include "text/roles.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace masque::text {

namespace {

/// Names that tokens of a role have in published models, most telling first.
std::vector<std::string_view> usual_names(std::string_view role) {
  if (role == "mask") return {"[MASK]", "<mask>"};
  if (role == "cls") return {"[CLS]", "<cls>", "<s>"};
  if (role == "sep") return {"[SEP]", "<sep>", "</s>"};
  if (role == "pad") return {"[PAD]", "<pad>"};
  if (role == "unk") return {"[UNK]", "<unk>"};
  if (role == "bos") return {"<s>", "[BOS]", "<|endoftext|>"};
  return {"</s>", "[EOS]", "<|endoftext|>"};
}

auto find_name(const RoleNames& names, std::string_view role) {
  return std::find_if(names.begin(), names.end(),
                      [role](const auto& entry) { return entry.first == role; });
}

}  // namespace

void read_role_names(const JsonValue& json, RoleNames& names) {
  for (const auto& field : kRoleFields) {
    const std::string_view role = field.first;
    if (find_name(names, role) != names.end()) continue;
    const JsonValue* value = json.find(fmt::format("{}_token", role));
    if (value != nullptr && value->is(JsonKind::kObject)) value = value->find("content");
    if (value != nullptr && value->is(JsonKind::kString))
      names.emplace_back(std::string(role), value->text);
  }
}

Roles find_roles(const std::function<std::optional<TokenId>(std::string_view)>& find,
                 const RoleNames& names) {
  Roles roles;
  for (const auto& [role, member] : kRoleFields) {
    const auto named = find_name(names, role);
    if (named != names.end()) {
      roles.*member = find(named->second);
      continue;
    }
    for (const std::string_view name : usual_names(role)) {
      if (roles.*member = find(name); roles.*member) break;
    }
  }
  return roles;
}

}  // namespace masque::text
