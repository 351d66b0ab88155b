#include "data/catalogue.h"

#include <fmt/format.h>
#include <unicode/ucnv.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

constexpr char kContextEnd = '\x04';

// The value of "Content-Type: text/plain; charset=NAME" in a header entry; empty when it has none, or the
// "CHARSET" of a template.
std::string Charset(std::string_view header) {
  constexpr std::string_view kKey = "charset=";
  const std::size_t at = header.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = header.substr(at + kKey.size());
  const std::string_view name = rest.substr(0, rest.find_first_of(" \t\r\n;"));
  return name == "CHARSET" ? "" : std::string(name);
}

// From the charset to UTF-8 in place; "" and UTF-8 are left as they are.
class Converter {
 public:
  Converter(const std::string& charset, const std::string& path) {
    if (charset.empty() || ucnv_compareNames(charset.c_str(), "UTF-8") == 0) return;
    UErrorCode status = U_ZERO_ERROR;
    from_ = ucnv_open(charset.c_str(), &status);
    if (U_FAILURE(status)) {
      throw Error(fmt::format("{}: charset \"{}\" is not known; expected UTF-8", path, charset));
    }
  }
  ~Converter() {
    if (from_ != nullptr) ucnv_close(from_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  void operator()(std::string& text) const {
    if (from_ == nullptr || text.empty()) return;
    const auto size = static_cast<std::int32_t>(text.size());
    std::u16string wide(2 * text.size() + 1, u'\0');
    UErrorCode status = U_ZERO_ERROR;
    const std::int32_t units =
        ucnv_toUChars(from_, wide.data(), static_cast<std::int32_t>(wide.size()), text.data(), size, &status);
    if (U_FAILURE(status))
      throw Error(fmt::format("ICU failed converting a catalogue: {}", u_errorName(status)));
    std::string out(3 * static_cast<std::size_t>(units), '\0');
    std::int32_t length = 0;
    u_strToUTF8WithSub(out.data(), static_cast<std::int32_t>(out.size()), &length, wide.data(), units, 0xFFFD,
                       nullptr, &status);
    out.resize(static_cast<std::size_t>(length));
    text = std::move(out);
  }

 private:
  UConverter* from_ = nullptr;
};

// Leaves out the header entry (empty id) and converts the rest by its charset.
std::vector<CatalogueEntry> Finish(std::vector<CatalogueEntry> entries, const std::string& path) {
  std::string charset;
  for (const CatalogueEntry& entry : entries) {
    if (entry.id.empty() && !entry.translations.empty()) charset = Charset(entry.translations[0]);
  }
  std::erase_if(entries, [](const CatalogueEntry& entry) { return entry.id.empty(); });
  const Converter convert(charset, path);
  for (CatalogueEntry& entry : entries) {
    convert(entry.id);
    convert(entry.id_plural);
    for (std::string& translation : entry.translations) convert(translation);
  }
  return entries;
}

// Bounds-checked numbers and strings of a .mo file.
class MoBytes {
 public:
  MoBytes(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {
    if (bytes.size() < 4) Fail("is too short for a .mo catalogue");
    const std::uint32_t magic = Number(0);
    if (magic == 0xde120495u) {
      big_ = true;
    } else if (magic != 0x950412deu) {
      Fail("is not a .mo catalogue (its first four bytes are not the magic number)");
    }
  }

  [[noreturn]] void Fail(const std::string& what) const { throw Error(fmt::format("{}: {}", path_, what)); }

  std::uint32_t Number(std::uint64_t offset) const {
    if (offset + 4 > bytes_.size()) Fail(fmt::format("is cut short: no number at byte {}", offset));
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[offset + static_cast<std::uint64_t>(i)]);
      value |= static_cast<std::uint32_t>(byte) << (8 * (big_ ? 3 - i : i));
    }
    return value;
  }

  // The string that entry `index` of the table at `table` describes: its length, then its offset.
  std::string_view Text(std::uint64_t table, std::uint64_t index) const {
    const std::uint64_t length = Number(table + 8 * index), offset = Number(table + 8 * index + 4);
    if (offset + length > bytes_.size()) {
      Fail(fmt::format("string {} reaches to byte {}, past the end at {}", index, offset + length,
                       bytes_.size()));
    }
    return bytes_.substr(offset, length);
  }

  std::uint64_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const std::string& path_;
  bool big_ = false;
};

// Splits off the context and the plural.
void SetId(std::string_view text, CatalogueEntry& entry) {
  const std::size_t context = text.find(kContextEnd);
  if (context != std::string_view::npos) text.remove_prefix(context + 1);
  const std::size_t zero = text.find('\0');
  entry.id = text.substr(0, zero);
  if (zero != std::string_view::npos) entry.id_plural = text.substr(zero + 1);
}

// A .po file line by line.
class PoParser {
 public:
  PoParser(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  std::vector<CatalogueEntry> Parse() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      line = Trim(line);
      if (line.empty()) continue;
      if (line.front() == '#') {
        Comment(line);
      } else {
        Statement(line);
      }
    }
    Flush();
    return std::move(entries_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("{}: line {}: {}", path_, line_, what));
  }

  static std::string_view Trim(std::string_view text) {
    const std::size_t from = text.find_first_not_of(" \t\r\f\v");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r\f\v") - from + 1);
  }

  void Comment(std::string_view line) {
    if (has_translation_) Flush();
    if (line.starts_with("#,") && line.find("fuzzy") != std::string_view::npos) entry_.fuzzy = true;
  }

  void Statement(std::string_view line) {
    const std::size_t quote = line.find('"');
    if (quote == std::string_view::npos)
      Fail("no quoted text; expected msgid or msgstr and a text in quotes");
    const std::string_view keyword = Trim(line.substr(0, quote));
    if (!keyword.empty()) Begin(keyword);
    if (target_ == nullptr) Fail("a text without msgid or msgstr before it");
    *target_ += Unquote(line.substr(quote));
  }

  void Begin(std::string_view keyword) {
    if (keyword == "msgctxt" || keyword == "msgid") {
      if (has_translation_) Flush();
      if (keyword == "msgid" && has_id_) Fail("a second msgid without a msgstr between");
      has_id_ = has_id_ || keyword == "msgid";
      target_ = keyword == "msgid" ? &entry_.id : &context_;
      return;
    }
    if (!has_id_) Fail(fmt::format("{} without a msgid before it", keyword));
    if (keyword == "msgid_plural") {
      target_ = &entry_.id_plural;
    } else if (keyword == "msgstr" || (keyword.starts_with("msgstr[") && keyword.ends_with("]"))) {
      has_translation_ = true;
      target_ = &entry_.translations.emplace_back();
    } else {
      Fail(fmt::format("\"{}\" is not a keyword of a .po file", ReplaceInvalidUtf8(keyword)));
    }
  }

  std::string Unquote(std::string_view text) const {
    std::string out;
    std::size_t i = 1;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\') {
        out += text[i];
      } else if (++i < text.size()) {
        out += Escape(text, i);
      }
    }
    if (i + 1 != text.size()) Fail("the quotes do not close at the end of the line");
    return out;
  }

  // The character after a backslash; i moves to its last byte.
  char Escape(std::string_view text, std::size_t& i) const {
    constexpr std::string_view kNames = "ntrabfv", kValues = "\n\t\r\a\b\f\v";
    if (const std::size_t at = kNames.find(text[i]); at != std::string_view::npos) return kValues[at];
    const bool hex = text[i] == 'x';
    if (!hex && (text[i] < '0' || text[i] > '7')) return text[i];  // \" and \\ .
    std::size_t last = hex ? i + 1 : i;
    const std::size_t limit = std::min(last + (hex ? 2 : 3), text.size());
    const std::string_view digits = hex ? "0123456789abcdefABCDEF" : "01234567";
    while (last < limit && digits.find(text[last]) != std::string_view::npos) ++last;
    const std::string number(text.substr(hex ? i + 1 : i, last - (hex ? i + 1 : i)));
    if (number.empty()) Fail("\\x without a hexadecimal digit");
    i = last - 1;
    return static_cast<char>(std::strtol(number.c_str(), nullptr, hex ? 16 : 8));
  }

  void Flush() {
    if (has_id_ && !has_translation_) Fail("a msgid without a msgstr");
    if (has_id_) entries_.push_back(std::move(entry_));
    entry_ = {};
    context_.clear();
    target_ = nullptr;
    has_id_ = has_translation_ = false;
  }

  std::string_view rest_;
  const std::string& path_;
  std::int64_t line_ = 0;
  std::vector<CatalogueEntry> entries_;
  CatalogueEntry entry_;
  std::string context_;            // read past, and dropped
  std::string* target_ = nullptr;  // what a text belongs to
  bool has_id_ = false, has_translation_ = false;
};

}  // namespace

std::vector<CatalogueEntry> ParseMo(std::string_view bytes, const std::string& path) {
  const MoBytes mo(bytes, path);
  const std::uint32_t revision = mo.Number(4);
  if (revision >> 16 > 1) mo.Fail(fmt::format("has revision {}; expected 0 or 1", revision >> 16));
  const std::uint64_t count = mo.Number(8), ids = mo.Number(12), translations = mo.Number(16);
  if (std::max(ids, translations) + 8 * count > mo.size()) {
    mo.Fail(fmt::format("is cut short: tables of {} strings do not fit in {} bytes", count, mo.size()));
  }
  std::vector<CatalogueEntry> entries;
  // Every string may name the same bytes, so a small hostile file could describe a huge catalogue.
  std::uint64_t budget = 4 * mo.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view id = mo.Text(ids, i);
    std::string_view text = mo.Text(translations, i);
    if (id.size() + text.size() > budget)
      mo.Fail("its strings overlap; expected each to have bytes of its own");
    budget -= id.size() + text.size();
    CatalogueEntry& entry = entries.emplace_back();
    SetId(id, entry);
    for (std::size_t zero = 0; zero != std::string_view::npos;) {
      zero = text.find('\0');
      entry.translations.emplace_back(text.substr(0, zero));
      if (zero != std::string_view::npos) text.remove_prefix(zero + 1);
    }
  }
  return Finish(std::move(entries), path);
}

std::vector<CatalogueEntry> ParsePo(std::string_view bytes, const std::string& path) {
  return Finish(PoParser(bytes, path).Parse(), path);
}

}  // namespace regard::data
