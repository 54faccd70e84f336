// Model families as data: from config.json to a design and a table of tensor names. One file per
// family under model/family/ registers itself. Other files know tensor names of classifiers alone
// (text_head, starting_model).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "model/family_config.hpp"
#include "model/role.hpp"
#include "model/start_value.hpp"
#include "tensor/dtype.hpp"

namespace masque::model {

/// A tensor of files that holds no weights: readers make it themselves.
struct BufferTensor {
  /// What a buffer holds.
  enum class Content {
    kCount,   ///< [1, P] with P positions: 0, 1, 2 …
    kZero,    ///< [1, P]: 0
    kCausal,  ///< [1, 1, P, P]: 1 up to the diagonal, 0 after it
    kOther,   ///< nothing that depends on P
  };
  std::string ending;                 ///< ending of its name: "embeddings.position_ids"
  Content content = Content::kOther;  ///< how a longer one is made
};

/// How a tensor lies in the file.
enum class TensorLayout {
  kOutIn,       ///< (out, in), as masque has it; a vector: its elements
  kInOut,       ///< (in, out)
  kHeadGroups,  ///< (out, in) by heads of keys: of each in turn its queries, its key, its value
  /// (parts, in, out), outputs of the roles in turn; a bias: (parts, out). gpt-oss's experts.
  kParts,
  kNextRow,      ///< a vector, the next row of its place: GAU's γ and β
  kNextColumns,  ///< a vector, the next head_size columns of its place: a norm of each head
};

/// Which tensors a row names.
enum class Parts {
  kBoth,        ///< NAME.weight and NAME.bias
  kWeight,      ///< NAME.weight
  kTensor,      ///< NAME is the weight
  kBiasTensor,  ///< NAME is the bias
};

/// One row of a family's table.
struct TensorRow {
  /// A leading "~" stands for the base model's prefix, "{l}" for the number of a layer (then there
  /// is one row for each). Further spellings stand after "|"; the first that is there counts, the
  /// last is written.
  std::string name;
  /// What it is for; several: stacked by rows in this order.
  std::vector<Role> roles;
  Parts parts = Parts::kBoth;                  ///< which tensors `name` stands for
  TensorLayout layout = TensorLayout::kOutIn;  ///< layout of the weight in the file
  /// The weight's shape in the file; empty: (out, in), or (in, out) of kInOut.
  Shape shape = {};
  std::optional<Index> layer = {};  ///< index in ModelWeights::layers, for names without "{l}"
  Index part = 0;                   ///< number of the tensor, for roles that have several
  Index parts_stacked = 1;          ///< of kParts: how many, from `part` on
  bool detector = false;            ///< the role is one of VariantDesign::detector
  bool fixed = false;               ///< a buffer of its class, which training leaves as it is
};

/// A head that a checkpoint of the family may hold.
struct HeadPlan {
  HeadDesign design;     ///< what it computes
  std::string what;      ///< "masked-LM head"
  std::string evidence;  ///< the head is there if one of these tensors is; empty: it always is
  std::string decoder;   ///< the vocabulary matrix; may be absent if it is tied
  std::vector<TensorRow> rows;  ///< its tensors, but for `decoder`
  /// Where config.json ties it, the class has no other decoder: one in the file is an error.
  bool always_tied = false;
};

/// Tensors that are left out on purpose.
struct Skipped {
  std::string prefix;  ///< prefix of their names
  std::string what;    ///< "the decoder", for a note; empty: there is none
  /// Their sizes follow the number of layers: a deeper model cannot have them.
  bool by_layer = false;
};

/// A tensor that holds no weights, and that transformers saves and expects all the same.
struct ComputedTensor {
  std::string name;  ///< as TensorRow::name, without "{l}"
  Shape shape;       ///< in the file
  StartValue start;  ///< its elements
};

/// A model as config.json describes it.
struct ModelPlan {
  Design design;  ///< without a head: that follows from the tensors
  /// Prefix of the base model's tensors, "bert."; exports may lack it.
  std::string prefix;
  std::vector<TensorRow> rows;        ///< all tensors but those of heads
  std::vector<HeadPlan> heads;        ///< the first that is there counts
  bool headless = false;              ///< config.json says that none of them is there
  std::vector<Skipped> skipped;       ///< noted, not listed as unused
  std::vector<BufferTensor> buffers;  ///< tensors without weights, not listed as unused
  /// Names, "a|b", under which files may have the word table alone: tables that are tied to it.
  std::string tied_tables;
  /// Computed tensors of new checkpoints, among `buffers` when read.
  std::vector<ComputedTensor> computed;
};

/// How the name of the class ends that has a head: "ForMaskedLM".
struct HeadClass {
  HeadKind kind;            ///< kind of the head
  std::string_view ending;  ///< ending of the class name, after the family's part
};

/// What files of a family hold that its plan does not say, for changes that need no model
/// (FamilyNames).
struct FamilyFiles {
  /// Configs, members of a JSON object, whose plans have tensors that the class's defaults lack:
  /// together with that of the defaults they name every tensor of the family.
  std::vector<std::string_view> wide_configs = {};
  /// Ends of further class names that save the vocabulary's matrix: "ForPreTraining".
  std::vector<std::string_view> lm_classes = {};
  /// Fields of config.json with the size of the vocabulary.
  std::vector<std::string_view> vocab_fields = {"vocab_size"};
  std::string_view position_field = "max_position_embeddings";  ///< rows of the position table
  /// Field of config.json that ties the output matrix to the word table.
  std::string_view tie_field = "tie_word_embeddings";
  /// Members that every config has, beside model_type: without them the class has no model.
  std::string_view least_config = {};
  /// The output matrix of whole models, of which the plan takes a part; else the first head's.
  std::string_view decoder_weight = {};
  std::vector<std::string_view> vocabulary = {};  ///< further tensors with a row for each token
  bool tied_head_differs = false;                 ///< see FamilyNames
};

/// A family. Strings live as long as the program.
struct Family {
  std::string_view name;                      ///< stem: "bert"
  std::vector<std::string_view> model_types;  ///< values of config.json's model_type
  /// How class names begin, "Bert" of BertForMaskedLM: one for each of model_types, or none.
  std::vector<std::string_view> classes;
  std::vector<HeadClass> heads;  ///< which classes there are; of kNone "Model" if it is not listed
  std::string_view loads;        ///< one line: which checkpoints, which heads
  /// Throws InputError for options that masque does not have.
  ModelPlan (*plan)(const FamilyConfig& config);
  /// Which tensors of a new checkpoint do not start as StartValues says; nullptr: padded_starts.
  std::vector<StartRule> (*starts)(const FamilyConfig& config, const Design& design) = nullptr;
  /// What changes to checkpoints need to know that is not in the plan.
  FamilyFiles files = {};
  /// Further values of model_type, between spaces, that compute the same with the same names, if
  /// the user names the family and no key says otherwise (known_keys.hpp).
  std::string_view also_reads = {};
  /// Names of the classes without a head, one for each of model_types, between spaces, where they
  /// are not the beginning and "Model"; empty: they are.
  std::string_view base_classes = {};
  /// The name of a family whose files have the same names for most tensors: without a config.json
  /// both are one.
  std::string_view like = {};
  /// Of encoder–decoders, whose encoder `plan` gives: the plan of the decoder, with Design::source.
  /// nullptr: there is none. Throws as `plan`.
  ModelPlan (*decoder)(const FamilyConfig& config) = nullptr;
};

/// The rule of a word table that is normal with the initializer_range of `config`, the row of the
/// padding token of `design` 0; of a `pad_token_id` null no row is.
std::vector<StartRule> padded_starts(const FamilyConfig& config, const Design& design);
/// No rules, whatever `config` and `design` are: padding has no row of its own.
std::vector<StartRule> unpadded_starts(const FamilyConfig& config, const Design& design);
/// The initializer_range of `config`, 0.02 without one. Throws InputError if it is negative.
double start_range(const FamilyConfig& config);

/// The class of transformers that has a `head` of this kind (of kNone: no head) for a `model_type`
/// of `family`, of an unknown type for the family's first: "BertForMaskedLM". Empty if there is
/// none.
std::string class_name(const Family& family, std::string_view model_type, HeadKind head);
/// Whether `family` has a class for what its `plan` describes: always, but for encoder–decoders
/// whose encoder is no class of its own. What trains or grows an encoder alone needs one.
bool has_class_of_plan(const Family& family);
/// Whether a checkpoint of `family` with this `config` has encoder and decoder: where a class asks
/// for both, or none has the encoder alone.
bool makes_decoder(const Family& family, const store::ModelConfig& config);
/// Whether transformers has `family`; else masque alone has it.
bool in_transformers(const Family& family);

/// Calls visit(name) for each spelling of `names`, "a|b", in order; a name is a view into them.
template <class F>
void for_spellings(std::string_view names, F visit) {
  while (true) {
    const std::size_t bar = names.find('|');
    visit(names.substr(0, bar));
    if (bar == std::string_view::npos) return;
    names.remove_prefix(bar + 1);
  }
}

/// All registered families, sorted by name. They live as long as the program.
std::span<const Family* const> families();

/// The family with the name or model_type `name`; nullptr if none.
const Family* find_family(std::string_view name);

/// The family of `config`: `wanted`, a name or model_type, if not empty, else by model_type, else
/// by architectures. Throws InputError, or UsageError for a wrong `wanted`, listing what there is;
/// InputError too if the model_type of `config` is one that the family `wanted` does not compute.
const Family& choose_family(const store::ModelConfig& config, std::string_view wanted);

/// `config` with the model_type of the family `family`, if it has none: `wanted` if it is
/// one of them, else that of its architectures' class, else the first. A family
/// computes what the model_type says.
store::ModelConfig typed_config(const store::ModelConfig& config, const Family& family,
                                std::string_view wanted);

/// typed_config() for the family of `config` (choose_family with `wanted`), if it computes several
/// model_types. Throws as choose_family.
store::ModelConfig with_family_type(const store::ModelConfig& config, std::string_view wanted);

/// Adds a family at program start.
struct FamilyRegistration {
  /// Keeps the address of `family`, which must live as long as the program.
  explicit FamilyRegistration(const Family& family);
};

}  // namespace masque::model
