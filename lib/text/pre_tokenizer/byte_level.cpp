// GPT-2's words, in the characters of byte-level BPE.
#include "text/byte_level.hpp"

#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/rewriter.hpp"
#include "text/split.hpp"

namespace masque::text {

namespace {

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    if (add_prefix_space_) {
      for (AlignedText& word : words) {
        if (!word.text.starts_with(' ')) prepend(word, " ");
      }
    }
    if (use_regex_) split_words(words, find_gpt2_words, false, SplitBehavior::kIsolated);
    for (AlignedText& word : words) byte_level(word);
  }

 private:
  bool add_prefix_space_;
  bool use_regex_;
};

const PreTokenizerRegistration kRegistration{
    {"ByteLevel", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       fields.flag("trim_offsets");  // of the post-processor, but the reference wants it here too
       return std::make_shared<ByteLevel>(fields.flag("add_prefix_space"),
                                          fields.optional_flag("use_regex").value_or(true));
     }}};

}  // namespace

}  // namespace masque::text
