#include "data/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "data/catalogue.h"
#include "data/file.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLocales = "/usr/share/locale";
constexpr std::string_view kBom = "\xEF\xBB\xBF";
constexpr std::size_t kNone = std::string_view::npos;

// A file, or standard input for "-", opened for reading.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path == "-") return;
    if (fs::is_directory(fs::status(path))) throw Error(fmt::format("{}: a folder; expected a file", path));
    file_.open(path, std::ios::binary);
    if (!file_) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  std::istream& stream() { return file_.is_open() ? file_ : std::cin; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::ifstream file_;
};

void Note(Occurrence& what, std::int64_t line, const std::string& file) {
  if (what.count++ == 0) {
    what.first_line = line;
    what.first_file = file;
  }
}

// Collects pairs up to the limit, and what is said of the rest.
class Collector {
 public:
  explicit Collector(const PairOptions& options) : options_(options) {
    if (options.limit < 0) throw UsageError(fmt::format("limit {}; expected 0 (all) or more", options.limit));
  }

  bool full() const { return options_.limit > 0 && data_.report.pairs == options_.limit; }
  PairReport& report() { return data_.report; }

  void Add(std::string_view source, std::string_view target, std::int64_t line, const std::string& file) {
    if (IsBlank(source) || IsBlank(target)) {
      Note(data_.report.empty_side, line, file);
      return;
    }
    if (options_.reverse) std::swap(source, target);
    data_.pairs.push_back({std::string(source), std::string(target)});
    ++data_.report.pairs;
  }

  // expected: what a line should have looked like.
  PairData Finish(const std::string& name, const std::string& expected) {
    if (data_.report.lines == 0) throw Error(fmt::format("{}: empty; expected {}", name, expected));
    if (data_.pairs.empty()) {
      std::string why;
      for (const std::string& message : data_.report.Messages()) why += (why.empty() ? ": " : "; ") + message;
      throw Error(fmt::format("{}: no sentence pair; expected {}{}", name, expected, why));
    }
    return std::move(data_);
  }

 private:
  const PairOptions& options_;
  PairData data_;
};

// A catalogue's text on one line of UTF-8.
std::string CleanMessage(std::string text, const PairOptions& options, std::int64_t entry,
                         const std::string& path, bool& replaced) {
  if (const std::size_t at = FindInvalidUtf8(text); at != kNone) {
    if (options.utf8 == Utf8Policy::kError) {
      throw Error(fmt::format("{}: entry {}: not UTF-8 at byte {} of its text (0x{:02X})", path, entry, at,
                              static_cast<unsigned char>(text[at])));
    }
    text = ReplaceInvalidUtf8(text);
    replaced = true;
  }
  return CollapseSpace(text);
}

using SeenPairs = std::set<std::pair<std::string, std::string>>;

struct Message {
  std::string id, translation;
  std::int64_t entry;
};

// The sure translations of one catalogue. Nothing is kept of a catalogue that throws.
std::vector<Message> CatalogueMessages(const std::vector<CatalogueEntry>& entries, const std::string& path,
                                       const PairOptions& options, PairReport& report) {
  std::vector<Message> messages;
  PairReport noted = report;
  std::int64_t number = 0;
  for (const CatalogueEntry& entry : entries) {
    ++number;
    bool replaced = false, kept = false;
    const auto add = [&](const std::string& id, const std::string& translation) {
      Message message{CleanMessage(id, options, number, path, replaced),
                      CleanMessage(translation, options, number, path, replaced), number};
      if (message.id.empty() || message.translation.empty()) return;
      kept = true;
      messages.push_back(std::move(message));
    };
    if (!entry.fuzzy) {
      add(entry.id, entry.translations.front());
      if (!entry.id_plural.empty()) add(entry.id_plural, entry.translations.back());
    }
    if (!kept) Note(noted.untranslated, number, path);
    if (replaced) Note(noted.replaced, number, path);
  }
  noted.lines += number;
  ++noted.files;
  report = noted;
  return messages;
}

void AddCatalogue(const std::string& path, const PairOptions& options, SeenPairs& seen, Collector& out) {
  const std::string bytes = ReadFile(path);
  if (bytes.empty()) throw Error(fmt::format("{}: empty; expected a gettext catalogue", path));
  const auto entries = fs::path(path).extension() == ".po" ? ParsePo(bytes, path) : ParseMo(bytes, path);
  for (const Message& message : CatalogueMessages(entries, path, options, out.report())) {
    if (out.full()) return;
    if (seen.emplace(message.id, message.translation).second) {
      out.Add(message.id, message.translation, message.entry, path);
    }
  }
}

std::vector<std::string> CataloguesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path extension = it->path().extension();
    if (extension == ".mo" || extension == ".po") paths.push_back(it->path().string());
  }
  if (error) throw Error(fmt::format("{}: cannot be read: {}", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool IsCatalogue(const std::string& name) { return name.ends_with(".mo") || name.ends_with(".po"); }

// "fr", "pt_BR", "sr@latin".
bool LooksLikeLanguage(std::string_view name) {
  const auto all = [](std::string_view text, char first, char last) {
    return std::all_of(text.begin(), text.end(), [&](char c) { return c >= first && c <= last; });
  };
  if (const std::size_t at = name.find('@'); at != kNone) {
    if (!all(name.substr(at + 1), 'a', 'z')) return false;
    name = name.substr(0, at);
  }
  if (const std::size_t at = name.find('_'); at != kNone) {
    if (name.size() != at + 3 || !all(name.substr(at + 1), 'A', 'Z')) return false;
    name = name.substr(0, at);
  }
  return (name.size() == 2 || name.size() == 3) && all(name, 'a', 'z');
}

}  // namespace

std::vector<std::string> PairReport::Messages() const {
  std::vector<std::string> messages;
  const auto say = [&](const Occurrence& what, std::string_view unit, std::string_view units,
                       std::string_view done) {
    if (what.count == 1) {
      messages.push_back(
          fmt::format("{}: 1 {} {}: {} {}", what.first_file, unit, done, unit, what.first_line));
    } else if (what.count > 1) {
      messages.push_back(fmt::format("{}: {} {} {}, the first is {} {}", what.first_file, what.count, units,
                                     done, unit, what.first_line));
    }
  };
  const char *unit = catalogue ? "entry" : "line", *units = catalogue ? "entries" : "lines";
  say(one_column, unit, units, "with one column skipped");
  say(empty_side, unit, units, "with an empty side skipped");
  say(replaced, unit, units, "with bytes that are not UTF-8 replaced");
  say(untranslated, unit, units, "without a sure translation skipped");
  if (unreadable.count > 0) {
    messages.push_back(
        fmt::format("{}: not a catalogue that can be read, skipped{}", unreadable.first_file,
                    unreadable.count > 1 ? fmt::format(" ({} such files)", unreadable.count) : ""));
  }
  return messages;
}

bool LineReader::Next(std::string* line) {
  const std::int64_t start = byte_offset;
  if (!std::getline(in, *line)) {
    if (in.bad()) throw Error(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
    return false;
  }
  const bool ended = !in.eof();  // by LF
  byte_offset += static_cast<std::int64_t>(line->size()) + (ended ? 1 : 0);
  std::int64_t dropped = 0;
  if (start == 0 && line->starts_with(kBom)) {
    dropped = static_cast<std::int64_t>(kBom.size());
    line->erase(0, kBom.size());
    if (line->empty() && !ended) return false;  // a file of a mark alone has no line
  }
  ++line_number;
  if (ended && line->ends_with('\r')) line->pop_back();
  std::replace(line->begin(), line->end(), '\r', ' ');
  const std::size_t bad = FindInvalidUtf8(*line);
  if (bad == kNone) return true;
  if (utf8 == Utf8Policy::kError) {
    throw Error(fmt::format("{}: line {}: not UTF-8 at byte {} of the file (0x{:02X})", name, line_number,
                            start + dropped + static_cast<std::int64_t>(bad),
                            static_cast<unsigned char>((*line)[bad])));
  }
  *line = ReplaceInvalidUtf8(*line);
  ++replaced;
  return true;
}

PairData ReadTsv(const std::string& path, const PairOptions& options) {
  Input input(path);
  Collector out(options);
  out.report().files = 1;
  LineReader lines{input.stream(), input.name(), options.utf8};
  std::string line;
  while (!out.full() && lines.Next(&line)) {
    ++out.report().lines;
    if (lines.replaced > out.report().replaced.count)
      Note(out.report().replaced, lines.line_number, input.name());
    const std::string_view text = line;
    const std::size_t tab = text.find('\t');
    if (tab == kNone) {
      Note(out.report().one_column, lines.line_number, input.name());
      continue;
    }
    const std::string_view rest = text.substr(tab + 1);
    out.Add(text.substr(0, tab), rest.substr(0, rest.find('\t')), lines.line_number, input.name());
  }
  return out.Finish(input.name(), "lines of a source, a tab and a target");
}

PairData ReadParallel(const std::string& source_path, const std::string& target_path,
                      const PairOptions& options) {
  Input source_input(source_path), target_input(target_path);
  Collector out(options);
  out.report().files = 2;
  LineReader sources{source_input.stream(), source_input.name(), options.utf8};
  LineReader targets{target_input.stream(), target_input.name(), options.utf8};
  std::string source, target;
  while (!out.full()) {
    const std::int64_t replaced = sources.replaced + targets.replaced;
    const bool has_source = sources.Next(&source), has_target = targets.Next(&target);
    if (has_source != has_target) {
      const LineReader &more = has_source ? sources : targets, &fewer = has_source ? targets : sources;
      std::string rest;
      LineReader longer = more;
      while (longer.Next(&rest)) {
      }
      throw Error(fmt::format("{} has {} lines and {} has {}; expected as many", fewer.name,
                              fewer.line_number, more.name, longer.line_number));
    }
    if (!has_source) break;
    ++out.report().lines;
    if (sources.replaced + targets.replaced > replaced) {
      Note(out.report().replaced, sources.line_number, source_input.name());
    }
    out.Add(source, target, sources.line_number, source_input.name());
  }
  return out.Finish(source_input.name(), "a sentence on each line");
}

PairData ReadCatalogues(const std::string& name, const PairOptions& options) {
  Collector out(options);
  out.report().catalogue = true;
  SeenPairs seen;
  std::string folder = name;
  if (!fs::exists(name) && LooksLikeLanguage(name)) {
    folder = fmt::format("{}/{}/LC_MESSAGES", kLocales, name);
    if (!fs::is_directory(folder)) {
      throw Error(
          fmt::format("{}: neither a file nor an installed language (there is no folder {})", name, folder));
    }
  }
  if (!fs::is_directory(folder)) {
    AddCatalogue(name, options, seen, out);
    return out.Finish(name, "translated messages");
  }
  const std::vector<std::string> paths = CataloguesIn(folder);
  if (paths.empty()) throw Error(fmt::format("{}: no .mo or .po file in this folder", folder));
  for (const std::string& path : paths) {
    if (out.full()) break;
    try {
      AddCatalogue(path, options, seen, out);
    } catch (const Error&) {
      Note(out.report().unreadable, 0, path);
    }
  }
  return out.Finish(folder, "translated messages");
}

PairData ReadPairs(const std::string& name, const PairOptions& options) {
  const bool catalogue =
      IsCatalogue(name) || fs::is_directory(name) || (!fs::exists(name) && LooksLikeLanguage(name));
  return catalogue ? ReadCatalogues(name, options) : ReadTsv(name, options);
}

std::vector<std::string> ReadLines(std::istream& in, const std::string& name, Utf8Policy utf8) {
  std::vector<std::string> lines;
  LineReader reader{in, name, utf8};
  for (std::string line; reader.Next(&line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> ReadLines(const std::string& path, Utf8Policy utf8) {
  Input input(path);
  return ReadLines(input.stream(), input.name(), utf8);
}

}  // namespace regard::data
