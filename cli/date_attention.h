// Whether a date translator looks at the right part of its source.
#ifndef REGARD_CLI_DATE_ATTENTION_H_
#define REGARD_CLI_DATE_ATTENTION_H_

#include <array>
#include <cstddef>
#include <vector>

#include "data/dates.h"
#include "data/tokenizer.h"
#include "train/translation_run.h"

namespace regard::cli {

enum DatePart : std::size_t { kYear, kMonth, kDay, kDateParts };
using PartShares = std::array<double, kDateParts>;

// For each part of "2027-03-03" (year: the first four characters, and so on) the share of the attention
// weight of its digits that lies on source pieces inside the part of the source that it comes from; the mean
// over the digits. A translation shorter than a date has share 0 in what it lacks. It needs its weights, and
// a target tokeniser of characters.
PartShares SharesOnRightPart(const train::Translation& translation, const data::DatePair& date,
                             const std::vector<data::Piece>& source_pieces);

// Whether each part has more than half of its weight on the right part.
bool MostlyRight(const PartShares& shares);

}  // namespace regard::cli

#endif  // REGARD_CLI_DATE_ATTENTION_H_
