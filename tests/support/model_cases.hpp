// The tiny checkpoints of tests/data/model and tests/data/encoder_decoder with what transformers
// computes for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque::test {

/// A line of records.jsonl.
struct ModelLine {
  std::vector<TokenId> ids;
  std::vector<Index> positions, segments;
  std::string mask;
  std::vector<TokenId> source;  ///< of encoder–decoders
};

/// One folder with a checkpoint.
struct ModelCase {
  std::string name;
  std::string folder;
  std::vector<ModelLine> lines;
};

std::vector<ModelCase> model_cases();

/// The encoder–decoders of tests/data/encoder_decoder.
std::vector<ModelCase> encoder_decoder_cases();

/// A tensor of a case's expected.safetensors; nothing if it is not there.
struct Expected {
  Shape shape;
  std::vector<double> values;
};
std::optional<Expected> expected(const ModelCase& model, const std::string& name);

}  // namespace masque::test
