// Sentence pairs from a TSV, from two parallel files and from gettext catalogues; lines to translate.
//
// Text rules. Only LF or CR LF ends a line: U+2028, U+0085 and form feed are ordinary characters. A
// byte-order mark at the start is dropped, a lone CR becomes a space. Files are UTF-8.
#ifndef REGARD_DATA_PAIRS_H_
#define REGARD_DATA_PAIRS_H_

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

struct Pair {
  std::string source, target;
};

enum class Utf8Policy {
  kError,    // regard::Error naming the file, the line and the byte offset
  kReplace,  // each ill-formed sequence becomes U+FFFD
};

struct PairOptions {
  std::int64_t limit = 0;  // pairs to keep at most, the first ones; 0: all
  Utf8Policy utf8 = Utf8Policy::kError;
  bool reverse = false;  // swap source and target
};

// Something left out or changed: how often, and the line where it was first seen (from 1).
struct Occurrence {
  std::int64_t count = 0;
  std::int64_t first_line = 0;  // in catalogues: the number of the entry
  std::string first_file;
};

// What was read, so that it can be said.
struct PairReport {
  std::int64_t lines = 0;  // lines (or catalogue entries) looked at
  std::int64_t pairs = 0;  // pairs kept
  std::int64_t files = 0;
  bool catalogue = false;   // entries of catalogues, not lines
  Occurrence one_column;    // skipped: a line without a tab
  Occurrence empty_side;    // skipped: source or target blank
  Occurrence replaced;      // kept: ill-formed UTF-8 replaced
  Occurrence untranslated;  // catalogues, skipped: marked fuzzy, or without a translation
  Occurrence unreadable;    // catalogues of a folder, skipped: not a catalogue
  // One sentence for each kind that occurred, ready to be shown, such as
  // "data.tsv: 3 lines with one column skipped, the first is line 17".
  std::vector<std::string> Messages() const;
};

struct PairData {
  std::vector<Pair> pairs;
  PairReport report;
};

// All readers throw regard::Error, naming the file, when it is missing, a folder, unreadable, empty, not
// UTF-8 (unless replaced) or holds no pair at all.

// The first two columns, separated by a tab; further columns (an attribution) are ignored.
PairData ReadTsv(const std::string& path, const PairOptions& options = {});

// Line n of one file with line n of the other. Different numbers of lines are an error naming both.
PairData ReadParallel(const std::string& source_path, const std::string& target_path,
                      const PairOptions& options = {});

// gettext catalogues: one .mo or .po file, a folder (all its .mo and .po files, by name), or a language code
// such as "fr" (all installed catalogues: /usr/share/locale/fr/LC_MESSAGES). The header entry is left out, so
// are fuzzy and untranslated entries; contexts are dropped; of plural forms the singular is paired with the
// first form and the plural with the last; white space and line ends inside a message become one space.
// A pair seen twice is kept once.
PairData ReadCatalogues(const std::string& name, const PairOptions& options = {});

// Chooses by name: *.mo, *.po, a folder or a language code that is not a file -> ReadCatalogues;
// everything else -> ReadTsv. "-" is standard input (TSV).
PairData ReadPairs(const std::string& name, const PairOptions& options = {});

// Lines to translate: n lines in, n out, whatever is in them (empty and blank ones too). The last line counts
// whether or not it ends in LF; an empty stream has no line. name is used in messages.
std::vector<std::string> ReadLines(std::istream& in, const std::string& name,
                                   Utf8Policy utf8 = Utf8Policy::kError);
// The same from a file ("-": standard input); throws regard::Error when it cannot be read.
std::vector<std::string> ReadLines(const std::string& path, Utf8Policy utf8 = Utf8Policy::kError);

// Reads one line from in by the same rules; false at the end. line_number (from 1) and byte_offset (of the
// line's first byte) are updated for the next call and used in messages: start both at 0.
struct LineReader {
  std::istream& in;
  std::string name;
  Utf8Policy utf8 = Utf8Policy::kError;
  std::int64_t line_number = 0;
  std::int64_t byte_offset = 0;
  std::int64_t replaced = 0;  // lines in which something was replaced
  bool Next(std::string* line);
};

}  // namespace regard::data

#endif  // REGARD_DATA_PAIRS_H_
