// What a stack of masked layers lets through: which tokens each output depends on, whether that
// breaks the objective, and by which path.
//
// A set per row and layer. Layer l of the query stream holds
//     Q_l(i) = Q_{l−1}(i) ∪ ⋃ over visible k of KV_l(k)
// where KV_1(k) = {k} (token embeddings), and KV_l(k) is {k} again (KeySource::kInput, T-TA), the
// row's own stream of the layer before (KeySource::kLayer), or the content stream's (two streams,
// XLNet). Q_0(i) is {i} or, for a query that starts with its position only, empty. Of two towers
// (TwoTower) each is a stack of its own, and position i has what row i − 1 of the first and row
// i + 1 of the second depend on. The same
// question to a model that runs: probe/check/check_leak.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/name_table.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::mask {

/// What later layers read as keys and values.
enum class KeySource { kLayer, kInput };
/// "layer", "input".
NameTable<KeySource> key_source_names();
/// What the query stream starts with.
enum class QueryStart { kToken, kPosition };
/// "token", "position".
NameTable<QueryStart> query_start_names();
/// Without a residual a row that sees no key loses what its query carried.
enum class Residual { kOn, kOff };
/// Which token a position predicts, and so must not have read.
enum class Prediction {
  kNone,
  kSelf,
  kNext,
  kClean,  ///< position i of the first half predicts token i of the second half (block diffusion:
           ///< the noised half predicts the clean one)
};
/// Offset from a position to the token that it predicts, among `length` positions. Throws
/// UsageError for kClean and an odd length. Not defined for kNone.
Index prediction_offset(Prediction prediction, Index length);

/// Tokens that must not reach positions.
struct Forbidden {
  Range tokens;
  Range positions;
};

struct FlowRequest {
  std::vector<Mask> layers;   ///< of the query stream (the only one, or XLNet's g); all n × n
  std::vector<Mask> content;  ///< of the content stream; empty: one stream
  KeySource keys = KeySource::kLayer;
  QueryStart query = QueryStart::kToken;
  /// `layers` are those of two towers, half of them each.
  bool towers = false;
  Residual residual = Residual::kOn;
  Prediction prediction = Prediction::kNone;
  std::vector<Forbidden> forbidden;
  int threads = 0;
};

/// One stop of a path: a token at layer 0, then a row of a stream at each layer.
struct FlowStep {
  Index layer = 0;
  Index position = 0;
  bool content = false;
};

struct Leak {
  Index layer = 0;          ///< the first at which one shows
  std::uint64_t pairs = 0;  ///< token and position pairs that leak at some layer
  /// From a token to the position that must not have read it: of the shortest paths the one with
  /// the smallest numbers.
  std::vector<FlowStep> path;
};

/// How many tokens the rows of a layer depend on.
struct ReceptiveField {
  Index layer = 0;
  Index minimum = 0;
  double mean = 0;
  Index maximum = 0;
  Index farthest = 0;  ///< largest |i − j| of a token j that row i depends on
};

struct FlowResult {
  std::optional<Leak> leak;
  std::vector<ReceptiveField> fields;  ///< one a layer, from 1
  BitMatrix reach;                     ///< row i, token j: after the last layer, or both towers
};

/// Follows the tokens through the layers. Cost O(layers · n · Σ n_i / 64) word operations, so n³
/// for dense masks; memory 6 n² bits. Throws UsageError
/// if a mask is not square or the lists differ in length, and for towers with content or keys from
/// the input. Fields and paths of towers refer to their own rows, layer by layer.
FlowResult follow_flow(const FlowRequest& request);

/// "token 3 -> layer 1 position 5 -> layer 2 position 3"; with two streams "layer 1 content 5 ->
/// layer 2 query 3".
std::string path_text(const std::vector<FlowStep>& path, bool two_streams);

}  // namespace masque::mask
