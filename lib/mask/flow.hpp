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
// question to a model that runs: evaluate/check/check_leak.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/string/name_table.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::mask {

/// What later layers read as keys and values.
enum class KeySource {
  kLayer,  ///< the states of the layer before
  kInput   ///< the token embeddings
};
/// "layer", "input". The table is static.
NameTable<KeySource> key_source_names();
/// What the query stream starts with.
enum class QueryStart {
  kToken,    ///< the token and its position
  kPosition  ///< the position alone
};
/// "token", "position". The table is static.
NameTable<QueryStart> query_start_names();
/// Without a residual a row that sees no key loses what its query carried.
enum class Residual { kOn, kOff };
/// Which token a position predicts, and so must not have read.
enum class Prediction {
  kNone,   ///< nothing is forbidden
  kSelf,   ///< its own token
  kNext,   ///< the token after its own
  kClean,  ///< position i of the first half predicts token i of the second half (block diffusion:
           ///< the noised half predicts the clean one)
};
/// Offset from a position to the token that it predicts by `prediction`, among `length` positions.
/// Throws UsageError for kClean and an odd length; std::logic_error for kNone.
Index prediction_offset(Prediction prediction, Index length);

/// Tokens that must not reach positions.
struct Forbidden {
  Range tokens;     ///< not beyond the last token
  Range positions;  ///< not beyond the last position
};

/// A stack of layers, and what must not pass through it.
struct FlowRequest {
  std::vector<Mask> layers;   ///< of the query stream (the only one, or XLNet's g); all n × n
  std::vector<Mask> content;  ///< of the content stream; empty: one stream
  KeySource keys = KeySource::kLayer;     ///< of layers after the first; kLayer with two streams
  QueryStart query = QueryStart::kToken;  ///< what rows depend on before the first layer
  /// `layers` are those of two towers, half of them each.
  bool towers = false;
  Residual residual = Residual::kOn;          ///< of every layer
  Prediction prediction = Prediction::kNone;  ///< of all positions; towers take kClean as kSelf
  std::vector<Forbidden> forbidden;           ///< besides what `prediction` forbids
  int threads = 0;                            ///< 0: all processors; results are the same
};

/// One stop of a path: a token at layer 0, then a row of a stream at each layer.
struct FlowStep {
  Index layer = 0;       ///< 0: the token embedding
  Index position = 0;    ///< the token, or the row
  bool content = false;  ///< a row of the content stream, or the token
};

/// A token that reaches a position which must not have read it.
struct Leak {
  Index layer = 0;          ///< the first at which one shows
  std::uint64_t pairs = 0;  ///< token and position pairs that leak at some layer
  /// From a token to the position that must not have read it: of the shortest paths the one with
  /// the smallest numbers.
  std::vector<FlowStep> path;
};

/// How many tokens the rows of a layer depend on.
struct ReceptiveField {
  Index layer = 0;     ///< from 1
  Index minimum = 0;   ///< fewest tokens of a row
  double mean = 0;     ///< over all rows
  Index maximum = 0;   ///< most tokens of a row
  Index farthest = 0;  ///< largest |i − j| of a token j that row i depends on
};

/// What follow_flow found.
struct FlowResult {
  std::optional<Leak> leak;            ///< the first one; none: nothing forbidden passes
  std::vector<ReceptiveField> fields;  ///< one a layer, from 1
  BitMatrix reach;                     ///< row i, token j: after the last layer, or both towers
};

/// Follows the tokens through the layers of `request`. Cost O(layers · n · Σ n_i / 64) word
/// operations, so n³ for dense masks; memory 6 n² bits. Throws UsageError if there is no layer, if
/// a mask is not square, if the lists differ in length, if a forbidden range ends beyond the last
/// position, for two streams with keys from the input, and for towers of an odd number of layers,
/// with content, keys from the input or queries without tokens; InputError for what BitMatrix
/// refuses. Fields and paths of towers refer to their own rows, layer by layer.
FlowResult follow_flow(const FlowRequest& request);

/// `path` in words: "token 3 -> layer 1 position 5 -> layer 2 position 3"; with `two_streams`
/// "layer 1 content 5 -> layer 2 query 3".
std::string path_text(const std::vector<FlowStep>& path, bool two_streams);

}  // namespace masque::mask
