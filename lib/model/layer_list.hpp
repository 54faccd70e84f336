// Choices for the layers of a model in one text, "3*softmax, log_n", read once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::nn {
class AttentionNormalizer;
class PositionScheme;
}  // namespace masque::nn

namespace masque::model {

/// A text that is one choice for all layers, or a list: items with commas between them, an item
/// perhaps with the number of its layers in front, "3*rope, none". Parentheses around the whole
/// list count for nothing; commas in those of an item are its own.
class LayerList {
 public:
  LayerList() = default;
  /// Reads `text`; what the items mean is not looked at.
  LayerList(std::string text);  // NOLINT(google-explicit-constructor)
  /// Reads `text`.
  LayerList(const char* text) : LayerList(std::string(text)) {}  // NOLINT: a text
  /// The shortest text that gives the layers these `choices`, of which there is at least one: one
  /// item if all are the same.
  static LayerList of(const std::vector<std::string>& choices);

  const std::string& text() const { return text_; }  ///< as it was given
  bool empty() const { return text_.empty(); }       ///< without a text
  bool is_list() const { return is_list_; }          ///< several items, or a count
  /// The items, without their counts; of no list the text itself.
  std::vector<std::string> choices() const;
  /// The choice of each of `layers` layers. Throws UsageError for a list of another length, and for
  /// nothing where a name is expected.
  std::vector<std::string> of_layers(Index layers) const;

  /// Whether the texts are the same.
  bool operator==(const LayerList& other) const { return text_ == other.text_; }

 private:
  struct Item {
    Index count = 1;
    std::string text;
    bool counted = false;  ///< the count is written
  };
  static Item item_of(std::string_view text);

 protected:
  /// Throws UsageError for nothing where a name is expected, and for a count below 1.
  void check_items() const;

 private:
  std::string text_;
  std::vector<Item> items_;
  bool is_list_ = false;
};

/// Attention normalizers (nn/normalizer.hpp), for all layers or by layer.
class NormalizerList : public LayerList {
 public:
  NormalizerList() = default;
  /// Parses `text`. Throws UsageError for an unknown normalizer or parameter.
  NormalizerList(std::string text);  // NOLINT(google-explicit-constructor): a text
  /// Parses `text`.
  NormalizerList(const char* text) : NormalizerList(std::string(text)) {}  // NOLINT: a text
  /// The normalizer of each of `layers` layers; equal items are one object. Throws UsageError
  /// as of_layers() does.
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers(Index layers) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> parsed_;
};

/// A position scheme (nn/position/position_scheme.hpp) for all layers, or a list of one scheme and
/// `none`.
class PositionList : public LayerList {
 public:
  PositionList() = default;
  /// Parses `text`. Throws UsageError for an unknown scheme, and for lists of several, or of one
  /// that acts on the input.
  PositionList(std::string text);  // NOLINT(google-explicit-constructor): a text
  /// Parses `text`.
  PositionList(const char* text) : PositionList(std::string(text)) {}  // NOLINT: a text
  /// The scheme; of a list the one besides `none`; nullptr without a text.
  const std::shared_ptr<const nn::PositionScheme>& scheme() const { return scheme_; }

 private:
  std::shared_ptr<const nn::PositionScheme> scheme_;
};

}  // namespace masque::model
