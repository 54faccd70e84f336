#include "grow/spelled_name.hpp"

#include <vector>

#include "base/error.hpp"

namespace masque::grow {

std::string spelled_as(const model::TensorPlan& known, const model::PlacedTensor& wanted,
                       const std::string& prefix_of_base, const store::NamedTensors& names) {
  std::vector<std::string> spellings;
  model::for_spellings(wanted.names, [&](std::string_view name) { spellings.emplace_back(name); });
  std::size_t at = 0;
  std::string found;
  model::for_spellings(known.placed.names, [&](std::string_view name) {
    const std::string& own = spellings.at(at++);
    for (const std::string& prefix : {prefix_of_base, std::string()}) {
      const auto full = [&](std::string_view one) {
        return one.starts_with('~') ? prefix + std::string(one.substr(1)) : std::string(one);
      };
      for (const bool old : {false, true}) {
        const auto spelled = [&](std::string_view one) {
          return old ? model::old_norm_name(full(one)) : full(one);
        };
        const std::string before = spelled(name);
        if (!found.empty() || before.empty()) continue;
        if (names.own_name(before) == known.info->name) found = names.own_name(spelled(own));
      }
    }
  });
  MASQUE_CHECK(!found.empty());
  return found;
}

}  // namespace masque::grow
