#include "text/open/spiece_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "text/model/byte_pieces.hpp"
#include "text/model/vocabulary.hpp"

namespace masque::text {

namespace {

/// The fields of one protobuf message, read from a stretch of the file.
class Message {
 public:
  Message(std::string_view file, std::size_t begin, std::size_t end, const std::string& path)
      : file_(file), at_(begin), end_(end), path_(path) {}

  /// Goes to the next field; false at the end.
  bool next() {
    if (at_ == end_) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    wire_ = static_cast<int>(tag & 7);
    if (field_ == 0 || field_ > 0x1FFFFFFF) fail("a field number out of range");
    switch (wire_) {
      case 0: value_ = varint(); break;
      case 1: fixed(8); break;
      case 2:
        value_ = varint();
        if (value_ > end_ - at_) fail("a length beyond the end");
        begin_ = at_;
        at_ += static_cast<std::size_t>(value_);
        break;
      case 5: fixed(4); break;
      default: fail("a field of unknown kind");
    }
    return true;
  }

  std::uint64_t field() const { return field_; }
  std::uint64_t number() const {
    expect(0);
    return value_;
  }
  bool flag() const { return number() != 0; }
  /// int32: ten bytes if negative.
  TokenId id() const { return static_cast<TokenId>(static_cast<std::uint32_t>(number())); }
  float real() const {
    expect(5);
    return std::bit_cast<float>(static_cast<std::uint32_t>(value_));
  }
  std::string_view bytes() const {
    expect(2);
    return file_.substr(begin_, static_cast<std::size_t>(value_));
  }
  Message message() const {
    expect(2);
    return {file_, begin_, begin_ + static_cast<std::size_t>(value_), path_};
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(path_, fmt::format("byte {}: {}, expected a SentencePiece model", at_, what));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) fail("ends inside a number");
      const auto byte = static_cast<unsigned char>(file_[at_++]);
      if (shift == 63 && byte > 1) break;
      out |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return out;
    }
    fail("a number of more than 64 bits");
  }
  void fixed(std::size_t bytes) {
    if (end_ - at_ < bytes) fail("ends inside a number");
    value_ = 0;
    for (std::size_t i = bytes; i-- > 0;) {
      value_ = value_ << 8 | static_cast<unsigned char>(file_[at_ + i]);
    }
    at_ += bytes;
  }
  void expect(int wire) const {
    if (wire_ != wire) fail(fmt::format("field {} has the wrong kind", field_));
  }

  std::string_view file_;
  std::size_t at_;
  std::size_t end_;
  const std::string& path_;
  std::uint64_t field_ = 0;
  int wire_ = 0;
  std::uint64_t value_ = 0;  // a number, or the length of what begins at begin_
  std::size_t begin_ = 0;
};

ScoredPiece read_piece(Message message) {
  ScoredPiece out;
  while (message.next()) {
    switch (message.field()) {
      case 1: out.text = message.bytes(); break;
      case 2: out.score = static_cast<double>(message.real()); break;
      case 3:
        if (message.number() < 1 || message.number() > 6) message.fail("an unknown type of piece");
        out.type = static_cast<PieceType>(message.number());
        break;
      default: break;
    }
  }
  return out;
}

void read_trainer(Message message, SpieceModel& out) {
  while (message.next()) {
    switch (message.field()) {
      case 3:
        if (message.number() < 1 || message.number() > 4) message.fail("an unknown type of model");
        out.type = static_cast<SpieceModel::Type>(message.number());
        break;
      case 24: out.treat_whitespace_as_suffix = message.flag(); break;
      case 35: out.byte_fallback = message.flag(); break;
      case 41: out.bos_id = message.id(); break;
      case 42: out.eos_id = message.id(); break;
      case 43: out.pad_id = message.id(); break;
      case 44: out.unk_surface = message.bytes(); break;
      default: break;
    }
  }
}

void read_normalizer(Message message, SpieceModel& out) {
  while (message.next()) {
    switch (message.field()) {
      case 1: out.normalizer = message.bytes(); break;
      case 2: out.precompiled_charsmap = message.bytes(); break;
      case 3: out.add_dummy_prefix = message.flag(); break;
      case 4: out.remove_extra_whitespaces = message.flag(); break;
      case 5: out.escape_whitespaces = message.flag(); break;
      default: break;
    }
  }
}

void check_pieces(SpieceModel& model, const std::string& path) {
  const auto fail = [&](std::size_t piece, std::string_view what) {
    throw InputError(
        path, fmt::format("piece {} ({}) {}", piece, escape(model.pieces[piece].text), what));
  };
  if (model.pieces.empty()) throw InputError(path, "no pieces, expected a SentencePiece model");
  std::optional<std::size_t> unknown;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const ScoredPiece& piece = model.pieces[i];
    if (piece.text.empty()) fail(i, "is empty");
    if (!valid_utf8(piece.text)) fail(i, "is not UTF-8");
    if (!std::isfinite(piece.score)) fail(i, "has a score that is not finite");
    if (piece.type == PieceType::kUnknown) {
      if (unknown) fail(i, "is a second unknown piece");
      unknown = i;
    }
    texts.push_back(piece.text);
  }
  if (!unknown) throw InputError(path, "no piece is of type unknown");
  model.unk_id = static_cast<TokenId>(*unknown);
  const std::vector<VocabEntry> entries = numbered(std::move(texts));
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (i >= entries.size() || static_cast<std::size_t>(entries[i].second) != i) {
      fail(i, "occurs twice");
    }
  }
  if (!model.byte_fallback) return;
  const Vocabulary vocabulary(entries);
  const BytePieces bytes([&](const std::string& token) { return vocabulary.find(token); });
  for (int byte = 0; byte < 256; ++byte) {
    const TokenId id = bytes[static_cast<char>(byte)];
    if (id < 0 || model.pieces[static_cast<std::size_t>(id)].type != PieceType::kByte) {
      throw InputError(path,
                       fmt::format("byte_fallback is set, but there is no piece <0x{:02X}>", byte));
    }
  }
}

}  // namespace

SpieceModel read_spiece_model(std::string_view bytes, const std::string& path) {
  SpieceModel out;
  Message message(bytes, 0, bytes.size(), path);
  while (message.next()) {
    switch (message.field()) {
      case 1: out.pieces.push_back(read_piece(message.message())); break;
      case 2: read_trainer(message.message(), out); break;
      case 3: read_normalizer(message.message(), out); break;
      default: break;
    }
  }
  check_pieces(out, path);
  return out;
}

namespace {

/// A protobuf message being written.
class MessageWriter {
 public:
  void number(std::uint64_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void id(std::uint64_t field, TokenId value) {
    // As read: negative ones have ten bytes.
    number(field, static_cast<std::uint64_t>(std::int64_t{value}));
  }
  void real(std::uint64_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(bits >> shift & 0xFFU);
  }
  void bytes(std::uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    out_ += value;
  }
  std::string take() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>((value & 0x7FU) | 0x80U);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

}  // namespace

std::string write_spiece_model(const SpieceModel& spiece) {
  MessageWriter model;
  for (const ScoredPiece& piece : spiece.pieces) {
    MessageWriter own;
    own.bytes(1, piece.text);
    own.real(2, static_cast<float>(piece.score));
    own.number(3, static_cast<std::uint64_t>(piece.type));
    model.bytes(1, own.take());
  }
  MessageWriter trainer;
  trainer.number(3, static_cast<std::uint64_t>(spiece.type));
  trainer.number(24, spiece.treat_whitespace_as_suffix ? 1 : 0);
  trainer.number(35, spiece.byte_fallback ? 1 : 0);
  trainer.id(40, spiece.unk_id);
  trainer.id(41, spiece.bos_id);
  trainer.id(42, spiece.eos_id);
  trainer.id(43, spiece.pad_id);
  model.bytes(2, trainer.take());
  MessageWriter normalizer;
  normalizer.bytes(1, spiece.normalizer.empty() ? "identity" : spiece.normalizer);
  normalizer.bytes(2, spiece.precompiled_charsmap);
  normalizer.number(3, spiece.add_dummy_prefix ? 1 : 0);
  normalizer.number(4, spiece.remove_extra_whitespaces ? 1 : 0);
  normalizer.number(5, spiece.escape_whitespaces ? 1 : 0);
  model.bytes(3, normalizer.take());
  return model.take();
}

std::shared_ptr<const TokenModel> make_spiece(const SpieceModel& spiece, PieceRules rules,
                                              const std::string& path) {
  switch (spiece.type) {
    case SpieceModel::Type::kUnigram:
      return make_unigram(spiece.pieces, {spiece.unk_id, spiece.byte_fallback, rules}, path);
    case SpieceModel::Type::kBpe:
      return make_sentencepiece_bpe(spiece.pieces, spiece.unk_id, spiece.byte_fallback, path);
    default:
      throw InputError(path,
                       "a SentencePiece model of words or characters, expected Unigram or BPE");
  }
}

}  // namespace masque::text
