#include "cli/date_attention.h"

#include <torch/torch.h>

#include <algorithm>

namespace regard::cli {

PartShares SharesOnRightPart(const train::Translation& translation, const data::DatePair& date,
                             const std::vector<data::Piece>& source_pieces) {
  struct Part {
    std::int64_t first, last;  // characters of the target
    data::ByteSpan span;
  };
  const Part parts[kDateParts] = {{0, 4, date.year}, {5, 7, date.month}, {8, 10, date.day}};
  const torch::Tensor weights = translation.attention.to(torch::kFloat32).contiguous();
  const std::int64_t T = weights.size(0), S = weights.size(1);
  const float* w = weights.data_ptr<float>();
  PartShares shares{};
  for (std::size_t p = 0; p < kDateParts; ++p) {
    const auto [first, last, span] = parts[p];
    for (std::int64_t t = first; t < std::min(last, T); ++t) {
      // Sources that were shortened have fewer columns than pieces; the last column is the end mark.
      const std::int64_t columns = std::min<std::int64_t>(S - 1, std::ssize(source_pieces));
      for (std::int64_t j = 0; j < columns; ++j) {
        const data::Piece& piece = source_pieces[static_cast<std::size_t>(j)];
        if (piece.begin >= span.begin && piece.end <= span.end) shares[p] += w[t * S + j];
      }
    }
    shares[p] /= static_cast<double>(last - first);
  }
  return shares;
}

bool MostlyRight(const PartShares& shares) {
  return std::all_of(shares.begin(), shares.end(), [](double share) { return share > 0.5; });
}

}  // namespace regard::cli
