#include "surgery/convert/aliases.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "model/family_names.hpp"

namespace masque::surgery {

namespace {

/// By tensor: the first one that has its bytes in the input.
std::map<std::string, std::string> roots_of(const store::OutputWeights& weights) {
  std::map<std::string, std::string> roots;
  for (const auto& [info, source] : weights.tensors)
    roots[info.name] = info.alias_of.empty() ? info.name : info.alias_of;
  for (auto& [name, root] : roots) {
    // At most one step for each tensor, whatever they say about each other.
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto next = roots.find(root);
      if (next == roots.end() || next->second == root) break;
      root = next->second;
    }
  }
  return roots;
}

/// Which tensors a family ties to which when the config says so.
std::map<std::string, std::string> ties_of(const std::optional<store::ModelConfig>& config) {
  std::map<std::string, std::string> ties;
  const auto family = config ? model::family_names_of(*config) : nullptr;
  if (family == nullptr || !config->flag(family->tie_field).value_or(family->tied_by_default))
    return ties;
  ties[family->decoder_weight] = model::with_prefix(family->input_table, family->prefix);
  for (const model::HeadCopy& copy : family->head_copies) ties[copy.name] = copy.source;
  return ties;
}

}  // namespace

bool share_bytes(const store::TensorInfo& a, const store::TensorInfo& b) {
  // A tensor may have no name, which is what alias_of says where there is no other one.
  const auto refers = [](const store::TensorInfo& from, const std::string& name) {
    return !from.alias_of.empty() && from.alias_of == name;
  };
  return a.file == b.file && (refers(a, b.name) || refers(b, a.name) || refers(a, b.alias_of));
}

void settle_aliases(store::OutputWeights& weights, const std::optional<store::ModelConfig>& config,
                    std::vector<std::string>& notes) {
  if (store::weights_writer(weights.writer).has_aliases) return;
  const auto roots = roots_of(weights);
  const auto ties = ties_of(config);
  const auto tied_to = [&](const std::string& name) {
    const auto tie = ties.find(name);
    if (tie == ties.end()) return ties.end();
    const auto other = roots.find(tie->second);
    return other != roots.end() && other->second == roots.at(name) ? tie : ties.end();
  };
  std::set<std::string> kept;
  std::erase_if(weights.tensors, [&](store::OutputTensor& tensor) {
    const std::string& name = tensor.info.name;
    if (const auto tie = tied_to(name); tie != ties.end()) {
      notes.push_back(fmt::format("'{}' is left out: config.json ties it to '{}'", escape(name),
                                  escape(tie->second)));
      return true;
    }
    const std::string& root = roots.at(name);
    if (!kept.insert(root).second) {
      notes.push_back(fmt::format(
          "'{}' shares its bytes with another tensor; stored as a separate copy", escape(name)));
    }
    tensor.info.alias_of.clear();
    return false;
  });
}

void order_aliases(store::OutputWeights& weights) {
  const auto roots = roots_of(weights);
  std::map<std::string, std::string> first;
  for (auto& [info, source] : weights.tensors) {
    const auto [at, added] = first.emplace(roots.at(info.name), info.name);
    info.alias_of = added ? std::string() : at->second;
  }
}

}  // namespace masque::surgery
