// Snappy streams and protobuf messages, good and damaged.
#include <doctest/doctest.h>

#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"
#include "store/values.hpp"
#include "support/make_bundle.hpp"

namespace masque::store {
namespace {

using test::number;
using test::varint;

/// A literal, in the form with `bytes` bytes of length after the tag, or none.
std::string literal(const std::string& text, int bytes = 0) {
  const std::uint64_t size = text.size() - 1;
  const std::uint64_t tag = bytes == 0 ? size : static_cast<std::uint64_t>(59 + bytes);
  return number(tag << 2, 1) + number(size, bytes) + text;
}

/// A copy of each of the three forms.
std::string copy(int form, std::uint64_t back, std::uint64_t length) {
  if (form == 1) return number(1 | (length - 4) << 2 | (back >> 8) << 5, 1) + number(back, 1);
  return number(static_cast<std::uint64_t>(form) | (length - 1) << 2, 1) +
         number(back, form == 2 ? 2 : 4);
}

TEST_CASE("literals and copies of every form") {
  CHECK(unpack_snappy(varint(0)) == "");
  CHECK(unpack_snappy(varint(3) + literal("abc")) == "abc");
  for (int bytes = 1; bytes <= 4; ++bytes) {
    const std::string text = random_bytes(1, 200);
    CHECK(unpack_snappy(varint(200) + literal(text, bytes)) == text);
  }
  for (int form = 1; form <= 3; ++form) {
    CAPTURE(form);
    CHECK(unpack_snappy(varint(14) + literal("abc") + copy(form, 3, 11)) == "abcabcabcabcab");
    CHECK(unpack_snappy(varint(7) + literal("abc") + copy(form, 1, 4)) == "abccccc");
    CHECK(unpack_snappy(varint(7) + literal("abc") + copy(form, 2, 4)) == "abcbcbc");
    const std::string far = random_bytes(2, 2047);
    CHECK(unpack_snappy(varint(2055) + literal(far, 2) + copy(form, 2047, 8)) ==
          far + far.substr(0, 8));
  }
  CHECK(unpack_snappy(varint(65) + literal("a") + copy(2, 1, 64)) == std::string(65, 'a'));
}

TEST_CASE("random streams of literals and copies") {
  const RandomStream stream(3, "snappy");
  for (std::uint64_t run = 0; run < 50; ++run) {
    std::string text;
    std::string packed;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const PhiloxBlock block = stream.block(run * 40 + i);
      if (text.empty() || block[0] % 3 == 0) {
        const std::string part = random_bytes(run * 40 + i, 1 + block[1] % 60);
        text += part;
        packed += literal(part);
        continue;
      }
      const int form = 1 + static_cast<int>(block[1] % 3);
      const std::uint64_t back = 1 + block[2] % std::min<std::size_t>(text.size(), 2047);
      const std::uint64_t length = form == 1 ? 4 + block[3] % 8 : 1 + block[3] % 64;
      packed += copy(form, back, length);
      for (std::uint64_t k = 0; k < length; ++k) text += text[text.size() - back];
    }
    packed.insert(0, varint(text.size()));
    CHECK(unpack_snappy(packed) == text);
    for (std::size_t end = 0; end < packed.size(); ++end)
      CHECK_FALSE(unpack_snappy(packed.substr(0, end)).has_value());
  }
}

TEST_CASE("what is no Snappy stream") {
  const std::vector<std::string> bad = {
      "",
      "\x80",
      varint(1),
      varint(2) + literal("abc"),
      varint(4) + literal("abc"),
      varint(3) + literal("abc").substr(0, 3),
      varint(200) + literal(std::string(200, 'x'), 1).substr(0, 1),
      varint(7) + copy(1, 1, 7),
      varint(7) + literal("abc") + copy(1, 4, 4),
      varint(7) + literal("abc") + copy(2, 0, 4),
      varint(6) + literal("abc") + copy(3, 1, 4),
      varint(7) + literal("abc") + copy(3, 1, 4).substr(0, 4),
      varint(std::uint64_t{1} << 62) + literal("abc"),
      varint(1000) + literal("abc") + copy(2, 1, 64),
      varint(3) + literal("abc", 4).substr(0, 4),
      varint(3) + std::string("\xFC\xFF\xFF\xFF\xFF", 5),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(unpack_snappy(bad[i]).has_value());
  }
}

TEST_CASE("numbers of protobuf") {
  for (const std::uint64_t value : {0ULL, 1ULL, 127ULL, 128ULL, 16'384ULL, 1ULL << 63, ~0ULL}) {
    std::size_t at = 1;
    const std::string text = "x" + varint(value) + "y";
    CHECK(read_varint(text, at) == value);
    CHECK(at == text.size() - 1);
  }
  for (const std::string& bad : {std::string(), std::string("\x80"), std::string(10, '\xFF'),
                                 std::string(9, '\x80') + "\x02", std::string(11, '\x80')}) {
    std::size_t at = 0;
    CHECK_FALSE(read_varint(bad, at).has_value());
  }
}

TEST_CASE("messages of protobuf are walked through to their end") {
  const std::string message = test::field(1, std::uint64_t{300}) +
                              test::field(2, std::string("text")) +
                              test::fixed_field(3, 0x01020304) + varint(4 << 3 | 1) + number(5, 8) +
                              test::field(536'870'911, std::uint64_t{7});
  WireReader reader(message);
  auto next = reader.next();
  CHECK((next && next->is_number(1) && next->value == 300));
  next = reader.next();
  CHECK((next && next->is_bytes(2) && next->bytes == "text"));
  next = reader.next();
  CHECK((next && next->type == WireType::kFixed32 && next->value == 0x01020304));
  next = reader.next();
  CHECK((next && next->type == WireType::kFixed64 && next->value == 5));
  next = reader.next();
  CHECK((next && next->is_number(536'870'911)));
  CHECK_FALSE(reader.next().has_value());
  CHECK_FALSE(reader.broken());
  for (const std::string& bad :
       {std::string("\x00\x01", 2), std::string("\x0B"), std::string("\x0C"), std::string("\x0E"),
        std::string("\x0F"), std::string("\x08"), std::string("\x0A\x02x"),
        std::string("\x0D\x01\x02\x03"), std::string("\x09\x01"),
        varint(std::uint64_t{1} << 32) + "x"}) {
    WireReader broken(bad);
    CHECK_FALSE(broken.next().has_value());
    CHECK(broken.broken());
    CHECK_FALSE(broken.next().has_value());
  }
}

}  // namespace
}  // namespace masque::store
