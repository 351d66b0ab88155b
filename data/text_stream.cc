#include "data/text_stream.h"

#include <algorithm>

#include "data/unicode.h"

namespace regard::data {
namespace {

// Bytes at the end of text that may be the beginning of a character: its lead byte and fewer continuation
// bytes than that asks for. Whether those fit does not matter here: a lead byte always starts anew.
std::size_t OpenBytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0u) == 0x80u) continue;  // a continuation byte
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return back < length ? back : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::Push(std::string_view bytes) {
  held_ += bytes;
  const std::size_t whole = held_.size() - OpenBytes(held_);
  std::string text = ReplaceInvalidUtf8(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  return text;
}

std::string Utf8Stream::Finish() {
  std::string text = ReplaceInvalidUtf8(held_);
  held_.clear();
  return text;
}

std::string TokenStream::Push(std::int64_t id) {
  const std::string bytes = tokenizer_.Bytes(id, first_);
  first_ = first_ && (id == kPad || id == kBos || id == kEos);
  return utf8_.Push(bytes);
}

}  // namespace regard::data
