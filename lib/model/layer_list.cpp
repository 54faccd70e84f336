#include "model/layer_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::model {
namespace {

/// Without blanks, and without parentheses around all of it.
std::string_view bare(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('(')) return text;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth == 0) return i + 1 == text.size() ? trim(text.substr(1, i - 1)) : text;
  }
  return text;
}

}  // namespace

LayerList::Item LayerList::item_of(std::string_view text) {
  const auto [count, rest] = split_at_first(text, '*');
  if (rest) {
    const auto number = parse_number<Index>(trim(count));
    if (number) return {*number, std::string(trim(*rest)), true};
  }
  return {1, std::string(trim(text))};
}

LayerList::LayerList(std::string text) : text_(std::move(text)) {
  for (const std::string_view part : split_outside_parentheses(bare(text_), ','))
    items_.push_back(item_of(part));
  is_list_ = items_.size() > 1 || items_[0].counted;
}

LayerList LayerList::of(const std::vector<std::string>& choices) {
  std::vector<Item> items;
  for (const std::string& choice : choices) {
    if (!items.empty() && items.back().text == choice) {
      ++items.back().count;
    } else {
      items.push_back({1, choice});
    }
  }
  if (items.size() == 1) return choices.front();
  return comma_list(items, [](const Item& item) {
    return item.count == 1 ? item.text : fmt::format("{}*{}", item.count, item.text);
  });
}

std::vector<std::string> LayerList::choices() const {
  std::vector<std::string> choices;
  for (const Item& item : items_) choices.push_back(item.text);
  return choices;
}

void LayerList::check_items() const {
  for (const Item& item : items_) {
    if (item.text.empty())
      throw UsageError(fmt::format("'{}' has an empty item, expected a name", escape(text_)));
    if (item.count < 1)
      throw UsageError(
          fmt::format("'{}': {} layers, expected at least 1", escape(text_), item.count));
  }
}

std::vector<std::string> LayerList::of_layers(Index layers) const {
  check_items();
  if (!is_list_)
    return std::vector(static_cast<std::size_t>(layers),
                       items_.empty() ? std::string() : items_.front().text);
  std::vector<std::string> choices;
  Index count = 0;
  for (const Item& item : items_) {
    count += std::min(item.count, layers + 1);  // more are too many as well
    if (count <= layers)
      choices.insert(choices.end(), static_cast<std::size_t>(item.count), item.text);
  }
  if (count != layers) {
    throw UsageError(fmt::format(
        "'{}' is a list for {}{}, expected {}, the model's number of layers", escape(text_),
        count > layers ? "more than " : "", counted(std::min(count, layers), "layer"), layers));
  }
  return choices;
}

NormalizerList::NormalizerList(std::string text) : LayerList(std::move(text)), names_(choices()) {
  check_items();
  for (auto name = names_.begin(); name != names_.end(); ++name) {
    const auto before = std::find(names_.begin(), name, *name);
    parsed_.push_back(before == name ? nn::parse_normalizer(*name)
                                     : parsed_[static_cast<std::size_t>(before - names_.begin())]);
  }
}

std::vector<std::shared_ptr<const nn::AttentionNormalizer>> NormalizerList::normalizers(
    Index layers) const {
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> out;
  for (const std::string& name : of_layers(layers)) {
    const auto at = std::ranges::find(names_, name) - names_.begin();
    out.push_back(parsed_[static_cast<std::size_t>(at)]);
  }
  return out;
}

PositionList::PositionList(std::string given) : LayerList(std::move(given)) {
  constexpr std::string_view kNone = "none";
  if (empty()) return;
  if (!is_list()) {
    scheme_ = nn::parse_position(text());
    return;
  }
  check_items();
  std::vector<std::string> names = choices();
  std::erase(names, kNone);
  if (names.empty()) names.emplace_back(kNone);
  for (const std::string& name : names) {
    if (name != names.front()) {
      throw UsageError(fmt::format("'{}' combines {} and {}, expected one scheme and none",
                                   escape(text()), escape(names.front()), escape(name)));
    }
  }
  scheme_ = nn::parse_position(names.front());
  if (scheme_->facts().input) {
    throw UsageError(
        fmt::format("'{}': {} acts on the input of the first layer and cannot be part of a list",
                    escape(text()), escape(names.front())));
  }
}

}  // namespace masque::model
