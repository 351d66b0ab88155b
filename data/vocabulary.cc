#include "data/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "data/tokenizer.h"
#include "engine/base/error.h"

namespace regard::data {

const std::string& ReservedToken(std::int64_t id) {
  static const std::array<std::string, kReserved> kTokens = {"<pad>", "<bos>", "<eos>", "<unk>"};
  return kTokens.at(static_cast<std::size_t>(id));
}

Vocabulary Vocabulary::FromCounts(const std::map<std::string, std::int64_t>& counts, std::int64_t min_count,
                                  std::int64_t max_size) {
  std::vector<std::string> tokens;
  for (std::int64_t id = 0; id < kReserved; ++id) tokens.push_back(ReservedToken(id));
  const std::vector<std::string> reserved = tokens;
  std::vector<std::pair<std::int64_t, std::string>> kept;
  for (const auto& [token, count] : counts) {
    const bool is_reserved = std::find(reserved.begin(), reserved.end(), token) != reserved.end();
    if (count >= min_count && !is_reserved) kept.emplace_back(-count, token);
  }
  std::sort(kept.begin(), kept.end());
  for (auto& [count, token] : kept) {
    if (max_size > 0 && static_cast<std::int64_t>(tokens.size()) >= max_size) break;
    tokens.push_back(std::move(token));
  }
  return Vocabulary(std::move(tokens));
}

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (std::int64_t id = 0; id < kReserved; ++id) {
    if (id >= size() || tokens_[static_cast<std::size_t>(id)] != ReservedToken(id)) {
      throw Error(fmt::format("token {} of the vocabulary is not {}", id, ReservedToken(id)));
    }
  }
  for (std::int64_t id = kReserved; id < size(); ++id) {
    const std::string& token = tokens_[static_cast<std::size_t>(id)];
    const auto [first, added] = ids_.emplace(token, id);
    if (!added) {
      throw Error(
          fmt::format("token \"{}\" comes twice in the vocabulary, as {} and {}", token, first->second, id));
    }
  }
}

std::int64_t Vocabulary::Id(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? kUnk : found->second;
}

const std::string& Vocabulary::Token(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(fmt::format("token number {} is not in the vocabulary; expected 0 to {}", id, size() - 1));
  }
  return tokens_[static_cast<std::size_t>(id)];
}

}  // namespace regard::data
