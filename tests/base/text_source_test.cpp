// Text of packed files, in other encodings, and with byte-order marks.
#include "base/input/text_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_filter.hpp"
#include "base/input/line_input.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using namespace std::string_literals;

/// What a TextSource gives of `bytes` that come through a pipe, `step` at a time; "!" and the
/// message if it refuses them.
std::string through_pipe(const std::string& bytes, std::size_t step) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  std::jthread writer([&bytes, step, fd = ends[1]] {
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      const std::string piece = bytes.substr(i, step);
      if (::write(fd, piece.data(), piece.size()) < 0) break;
    }
    ::close(fd);
  });
  std::string out, buffer(1000, ' ');
  try {
    TextSource source(ends[0], "pipe");
    while (const std::size_t count = source.read(buffer.data(), buffer.size()))
      out.append(buffer, 0, count);
  } catch (const InputError& error) {
    out = "!"s + error.what();
  }
  while (::read(ends[0], buffer.data(), buffer.size()) > 0) continue;  // the writer ends
  ::close(ends[0]);
  return out;
}

/// What comes of `bytes`, which must not depend on how they are cut.
std::string text_of(const std::string& bytes) {
  std::string whole = through_pipe(bytes, std::max<std::size_t>(bytes.size(), 1));
  for (const std::size_t step : {1U, 7U, 4096U}) {
    if (bytes.size() / step < 20000) CHECK(through_pipe(bytes, step) == whole);
  }
  return whole;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), ' ');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), ' ');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  REQUIRE(context != nullptr);
  // As the command zstd does: only then damage is sure to be found.
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

/// The path of a new file.
std::string put(const test::TempFolder& folder, const std::string& name, const std::string& bytes) {
  test::write_file(folder / name, bytes);
  return folder / name;
}

std::string many_lines() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "line " + std::to_string(i * 7919 % 1000003) + "\n";
  return text;
}

/// `text` of ASCII and Cyrillic in UTF-16 or UTF-32.
std::string encoded(const std::u32string& text, int bytes, bool little) {
  std::string out;
  for (const char32_t c : text) {
    for (int i = 0; i < bytes; ++i) {
      const int place = little ? i : bytes - 1 - i;
      out += static_cast<char>((static_cast<std::uint32_t>(c) >> (8 * place)) & 0xFF);
    }
  }
  return out;
}

TEST_CASE("text comes as it is, however it is cut") {
  for (const std::string& text : {""s, "a"s, "(\n"s, "\x1F"s, "the cat\nP*M sat\n"s, many_lines()})
    CHECK(text_of(text) == text);
}

TEST_CASE("a byte-order mark of UTF-8 at the begin is no text") {
  CHECK(text_of("\xEF\xBB\xBFthe cat\n") == "the cat\n");
  CHECK(text_of("\xEF\xBB\xBF") == "");
  CHECK(text_of("\xEF\xBB") == "\xEF\xBB");
  // Only the first one, and only at the begin.
  CHECK(text_of("\xEF\xBB\xBF\xEF\xBB\xBFx") == "\xEF\xBB\xBFx");
  CHECK(text_of("x\xEF\xBB\xBF") == "x\xEF\xBB\xBF");
  CHECK(text_of(gzip("\xEF\xBB\xBFthe cat\n")) == "the cat\n");
}

TEST_CASE("gzip and zstd are unpacked, also in several parts") {
  const std::string text = many_lines();
  CHECK(text_of(gzip(text)) == text);
  CHECK(text_of(zstd(text)) == text);
  CHECK(text_of(gzip("a\n") + gzip("") + gzip("b\n")) == "a\nb\n");
  CHECK(text_of(zstd("a\n") + zstd("") + zstd("b\n")) == "a\nb\n");
  CHECK(text_of(gzip("a\n") + std::string(1000, '\0')) == "a\n");
  // A frame that is to be skipped, of three bytes, as pzstd writes.
  CHECK(text_of("\x50\x2A\x4D\x18\x03\0\0\0abc"s + zstd("a\n")) == "a\n");
  CHECK(text_of(gzip(std::string())) == "");
}

TEST_CASE("packed text that is damaged or cut off is refused") {
  const std::string text = many_lines();
  const std::string cut_gzip = "!pipe: ends in the middle of its gzip data, expected all of it";
  const std::string cut_zstd = "!pipe: ends in the middle of its zstd data, expected all of it";
  for (const std::size_t lost : {1U, 8U, 5000U}) {
    const std::string one = gzip(text), other = zstd(text);
    CHECK(through_pipe(one.substr(0, one.size() - lost), 4096) == cut_gzip);
    CHECK(through_pipe(other.substr(0, other.size() - lost), 4096) == cut_zstd);
  }
  CHECK(text_of("\x1F\x8B") == cut_gzip);
  CHECK(text_of("\x28\xB5\x2F\xFD") == cut_zstd);
  CHECK(text_of(gzip("a\n") + "\x1F") == cut_gzip);
  CHECK(text_of(gzip("a\n") + "rest") ==
        "!pipe: other bytes after the gzip data, expected more of it or the end");
  std::string damaged = gzip(text);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  CHECK(through_pipe(damaged, 4096) == "!pipe: damaged gzip data, expected what gzip wrote");
  damaged = gzip("a\n");
  damaged[damaged.size() - 5] = static_cast<char>(damaged[damaged.size() - 5] ^ 1);  // the CRC
  CHECK(text_of(damaged) == "!pipe: damaged gzip data, expected what gzip wrote");
  damaged = zstd(text);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  CHECK(through_pipe(damaged, 4096).starts_with("!pipe: damaged zstd data"));
  CHECK(text_of(gzip(gzip(text))) == "!pipe: compressed by gzip: unpack it first, expected a text");
}

TEST_CASE("other encodings are refused by name") {
  const auto refused = [](std::string_view encoding, std::string_view how) {
    return "!pipe: " + std::string(encoding) + std::string(how) + ", expected UTF-8: iconv -f " +
           std::string(encoding) + " -t UTF-8 converts it";
  };
  constexpr std::string_view kWithoutMark = " without a byte-order mark";
  for (const std::u32string& text :
       {U"the cat sat\non the mat\n"s, U"привет мир\nещё одна\n"s, U"κόσμε\nδύο\n"s,
        U"中文字符上下文\n第二行文字\n第三\n"s, U"한국어 문장\n둘째 줄\n"s,
        U"日本語のテキスト\nふたつめ\n"s, U"שלום עולם\nשורה\n"s, U"नमस्ते दुनिया\nपंक्ति\n"s,
        U"ਸਤ ਸ੍ਰੀ ਅਕਾਲ\nਦੂਜੀ\n"s, U"一切都是一样的，一个人一只猫和一条狗，一天一夜都在一起。\n一\n"s,
        U"一旦她跳的过程中有任何失误，她就需要将整个舞蹈再跳一遍并且不能停下来\n上一次\n"s,
        U"😀 hello 😀\nworld 🎉\n"s}) {
    CHECK(text_of("\xFF\xFE"s + encoded(text, 2, true)) == refused("UTF-16", ""));
    CHECK(text_of("\xFE\xFF"s + encoded(text, 2, false)) == refused("UTF-16", ""));
    CHECK(text_of("\xFF\xFE\0\0"s + encoded(text, 4, true)) == refused("UTF-32", ""));
    CHECK(text_of("\0\0\xFE\xFF"s + encoded(text, 4, false)) == refused("UTF-32", ""));
    CHECK(text_of(encoded(text, 2, true)) == refused("UTF-16LE", kWithoutMark));
    CHECK(text_of(encoded(text, 2, false)) == refused("UTF-16BE", kWithoutMark));
    CHECK(text_of(encoded(text, 4, true)) == refused("UTF-32LE", kWithoutMark));
    CHECK(text_of(encoded(text, 4, false)) == refused("UTF-32BE", kWithoutMark));
    CHECK(text_of(gzip(encoded(text, 2, true))) == refused("UTF-16LE", kWithoutMark));
  }
  // Nothing stands between words that tells the order.
  std::u32string words;
  for (int i = 0; i < 20; ++i) words += U"中文一字";
  for (const bool little : {false, true}) {
    CHECK(text_of(encoded(words, 2, little)) ==
          "!pipe: UTF-16 without a byte-order mark, expected UTF-8: iconv -f UTF-16LE -t UTF-8, or "
          "-f UTF-16BE, converts it");
  }
  // Numbers of two bytes.
  std::u32string numbers;
  for (char32_t i = 0; i < 3000; ++i) numbers += i * 7919 % 30000;
  CHECK(text_of(encoded(numbers, 2, true)) == "!pipe: NUL bytes, expected a text in UTF-8");
  CHECK(text_of(std::string(100, '\0')) == "!pipe: NUL bytes, expected a text in UTF-8");
}

TEST_CASE("a NUL byte here and there is text") {
  const std::string text = "the first line of a text\nthe second\0one\nthe third\n"s;
  CHECK(text_of(text) == text);
  const std::string late = many_lines().substr(0, 70000) + std::string(50, '\0');
  CHECK(text_of(late) == late);
}

TEST_CASE("all readers of text read the same") {
  test::TempFolder folder;
  const std::string text = many_lines();
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"plain", text}, {"mark", "\xEF\xBB\xBF" + text}, {"gz", gzip(text)}, {"zst", zstd(text)}};
  for (const auto& [name, bytes] : kinds) {
    CAPTURE(name);
    const std::string path = put(folder, name, bytes);
    CHECK(read_text(path, 1 << 20) == text);
    std::string filtered;
    LineFilter filter;
    filter.threads = 2;
    filter.work = [](const LinePiece& piece, std::string& out) { out = piece.text; };
    filter.sink = [&](std::string_view out) { filtered += out; };
    filter_lines(path, filter);
    CHECK(filtered == text);
    const InputStream stream(path);
    LineInput input(stream.descriptor(), path, 100);
    LineBatch batch;
    std::string lines;
    while (input.read(batch)) lines += batch.text;
    CHECK(lines == text);
  }
  const std::string path = put(folder, "wide", encoded(U"the cat\nsat\n", 2, true));
  CHECK_THROWS_AS(read_text(path, 100), InputError);
  LineFilter filter;
  filter.work = [](const LinePiece&, std::string&) {};
  filter.sink = [](std::string_view) {};
  CHECK_THROWS_AS(filter_lines(path, filter), InputError);
  CHECK_THROWS_WITH_AS(read_text(folder / "gz", 1000),
                       doctest::Contains("has more than 1000 bytes"), InputError);
  CHECK(read_bytes(folder / "gz", 1 << 20) == kinds[2].second);
}

TEST_CASE("what is packed has no shards, and a shard of other text is what its file is") {
  test::TempFolder folder;
  const std::string text = "\xEF\xBB\xBF{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
  const auto lines_of = [](const std::string& path, std::uint64_t index, bool text_alone) {
    const InputStream stream(path);
    LineInput input(stream.descriptor(), path, 100);
    if (text_alone) input.refuse_json("do this");
    input.cut({index, 2});
    LineBatch batch;
    std::string lines;
    while (input.read(batch)) lines += batch.text;
    return lines;
  };
  const std::string plain = put(folder, "plain", text);
  CHECK(lines_of(plain, 1, false) + lines_of(plain, 2, false) == text.substr(3));
  for (const std::uint64_t index : {1U, 2U}) {
    CHECK_THROWS_WITH_AS(lines_of(plain, index, true),
                         doctest::Contains("JSON lines, expected a text: do this"), InputError);
    CHECK_THROWS_WITH_AS(lines_of(put(folder, "gz", gzip(text)), index, false),
                         doctest::Contains("gzip data cannot be cut into shards"), UsageError);
    CHECK_THROWS_WITH_AS(
        lines_of(put(folder, "wide", encoded(U"a\nb\nc\nd\n", 2, true)), index, false),
        doctest::Contains("UTF-16LE"), InputError);
    // The second part has no bracket that shows it.
    const std::string array = put(folder, "array", "[\n{\"a\":1},\n[1],\n2\n]\n");
    CHECK_THROWS_WITH_AS(lines_of(array, index, true), doctest::Contains("a JSON array"),
                         InputError);
  }
}

}  // namespace
}  // namespace masque
