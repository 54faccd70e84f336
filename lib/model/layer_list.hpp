// Choices for each layer of a model in one text: "3*softmax, log_n".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::model {

/// Whether `text` is a list: items with commas between them, an item perhaps with the number of its
/// layers in front, "3*rope, none". Parentheses around the whole list count for nothing; commas in
/// those of an item are its own.
bool is_layer_list(std::string_view text);

/// The items of `text`, without their counts; the text itself if it is no list.
std::vector<std::string> listed_choices(std::string_view text);

/// What `text` says for each of `layers` layers: all of it for each if it is no list. Throws
/// UsageError for a list of another length, and for nothing where a name is expected.
std::vector<std::string> layer_choices(std::string_view text, Index layers);

/// The shortest text that gives the layers these `choices`, of which there is at least one: one
/// item if all are the same.
std::string layer_list_text(const std::vector<std::string>& choices);

}  // namespace masque::model
