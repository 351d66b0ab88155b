// A list of distinct tokens with their numbers; the first four are reserved.
#ifndef REGARD_DATA_VOCABULARY_H_
#define REGARD_DATA_VOCABULARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace regard::data {

// "<pad>", "<bos>", "<eos>", "<unk>" for 0..3.
const std::string& ReservedToken(std::int64_t id);

class Vocabulary {
 public:
  // The tokens seen at least min_count times, the most frequent first, equal ones in byte order; at most
  // max_size with the reserved ones (0: no limit).
  static Vocabulary FromCounts(const std::map<std::string, std::int64_t>& counts, std::int64_t min_count,
                               std::int64_t max_size);
  // All tokens in order, the reserved ones first. Throws regard::Error for a wrong reserved token or one that
  // comes twice.
  explicit Vocabulary(std::vector<std::string> tokens);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  // kUnk for a token that is not there, and for text that looks like a reserved token.
  std::int64_t Id(const std::string& token) const;
  // Throws regard::Error for an id outside 0..size()-1.
  const std::string& Token(std::int64_t id) const;
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t> ids_;  // without the reserved ones
};

}  // namespace regard::data

#endif  // REGARD_DATA_VOCABULARY_H_
