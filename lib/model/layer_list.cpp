#include "model/layer_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"

namespace masque::model {
namespace {

struct Item {
  Index count = 1;
  std::string_view text;
  bool counted = false;  ///< the count is written
};

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

Item item_of(std::string_view text) {
  const auto [count, rest] = split_at_first(text, '*');
  if (!rest) return {1, trim(text)};
  const auto number = parse_number<Index>(trim(count));
  return number ? Item{*number, trim(*rest), true} : Item{1, trim(text)};
}

std::vector<Item> items_of(std::string_view text) {
  std::vector<Item> items;
  for (const std::string_view part : split_outside_parentheses(bare(text), ','))
    items.push_back(item_of(part));
  return items;
}

bool is_list(const std::vector<Item>& items) { return items.size() > 1 || items[0].counted; }

}  // namespace

bool is_layer_list(std::string_view text) { return is_list(items_of(text)); }

std::vector<std::string> listed_choices(std::string_view text) {
  std::vector<std::string> choices;
  for (const Item& item : items_of(text)) choices.emplace_back(item.text);
  return choices;
}

std::vector<std::string> layer_choices(std::string_view text, Index layers) {
  const std::vector<Item> items = items_of(text);
  for (const Item& item : items) {
    if (item.text.empty())
      throw UsageError(fmt::format("'{}' has an empty item, expected a name", escape(text)));
  }
  if (!is_list(items))
    return std::vector(static_cast<std::size_t>(layers), std::string(items.front().text));
  std::vector<std::string> choices;
  Index count = 0;
  for (const Item& item : items) {
    if (item.count < 1)
      throw UsageError(
          fmt::format("'{}': {} layers, expected at least 1", escape(text), item.count));
    count += std::min(item.count, layers + 1);  // more are too many as well
    if (count <= layers)
      choices.insert(choices.end(), static_cast<std::size_t>(item.count), std::string(item.text));
  }
  if (count != layers) {
    throw UsageError(fmt::format(
        "'{}' is a list for {}{}, expected {}, the model's number of layers", escape(text),
        count > layers ? "more than " : "", counted(std::min(count, layers), "layer"), layers));
  }
  return choices;
}

std::string layer_list_text(const std::vector<std::string>& choices) {
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
    return item.count == 1 ? std::string(item.text) : fmt::format("{}*{}", item.count, item.text);
  });
}

}  // namespace masque::model
