#include "engine/policies/mask.h"

#include <algorithm>

namespace regard::engine {
namespace {

using Index = std::int64_t;

// Dimensions of size 1 stand for any index.
template <std::size_t kRank, typename T>
void MakeBroadcast(TensorView<T, kRank>* t) {
  for (std::size_t d = 0; d < kRank; ++d) {
    if (t->shape[d] == 1) t->strides[d] = 0;
  }
}

Index Shift(Corner corner, Index L, Index S) { return corner == Corner::kTopLeft ? 0 : S - L; }

TileClass FromCounts(bool any, bool all) {
  if (!any) return TileClass::kEmpty;
  return all ? TileClass::kFull : TileClass::kPartial;
}

// The pair is allowed when both are.
TileClass Both(TileClass a, TileClass b) { return std::min(a, b); }

}  // namespace

MaskRule::MaskRule(const Mask& mask, Index L, Index S)
    : mask_(mask),
      S_(S),
      pairwise_(mask.segments || mask.blocks || mask.keep || mask.exclude_self || mask.custom) {
  if (mask_.causal) causal_shift_ = Shift(mask_.causal->corner, L, S);
  if (mask_.window) {
    window_shift_ = Shift(mask_.window->corner, L, S);
    const Index far = L + S;  // no key is further away
    left_ = std::clamp(mask_.window->left.value_or(far), -far, far);
    right_ = std::clamp(mask_.window->right.value_or(far), -far, far);
  }
  if (mask_.lengths) MakeBroadcast(&mask_.lengths->lengths);
  if (mask_.segments) {
    if (mask_.segments->query.shape[0] == 1) mask_.segments->query.strides[0] = 0;
    if (mask_.segments->key.shape[0] == 1) mask_.segments->key.strides[0] = 0;
  }
  if (mask_.blocks) MakeBroadcast(&mask_.blocks->map);
  if (mask_.keep) MakeBroadcast(&mask_.keep->keep);
}

MaskRule::Range MaskRule::KeysInRange(Index b, Index i) const {
  Range keys{0, S_};
  if (mask_.causal) keys.end = std::min(keys.end, i + causal_shift_ + 1);
  if (mask_.window) {
    keys.begin = std::max(keys.begin, i + window_shift_ - left_);
    keys.end = std::min(keys.end, i + window_shift_ + right_ + 1);
  }
  if (mask_.lengths) keys.end = std::min(keys.end, mask_.lengths->lengths(b, i));
  return keys;
}

TileClass MaskRule::ClassifyRanges(const Tile& t) const {
  bool any = false, all = true;
  for (Index i = t.i0; i < t.i1; ++i) {
    const Range keys = KeysInRange(t.b, i);
    any = any || std::max(keys.begin, t.j0) < std::min(keys.end, t.j1);
    all = all && keys.begin <= t.j0 && keys.end >= t.j1;
  }
  return FromCounts(any, all);
}

TileClass MaskRule::ClassifySegments(const Tile& t) const {
  const auto& query = mask_.segments->query;
  const auto& key = mask_.segments->key;
  Index query_low = query(t.b, t.i0), query_high = query_low;
  for (Index i = t.i0; i < t.i1; ++i) {
    query_low = std::min(query_low, query(t.b, i));
    query_high = std::max(query_high, query(t.b, i));
  }
  Index key_low = key(t.b, t.j0), key_high = key_low;
  for (Index j = t.j0; j < t.j1; ++j) {
    key_low = std::min(key_low, key(t.b, j));
    key_high = std::max(key_high, key(t.b, j));
  }
  const bool apart = query_high < key_low || key_high < query_low;
  const bool same = query_low == query_high && key_low == key_high && query_low == key_low;
  return FromCounts(!apart, same);
}

TileClass MaskRule::ClassifyBlocks(const Tile& t) const {
  const Blocks& blocks = *mask_.blocks;
  bool any = false, all = true;
  for (Index i = t.i0 / blocks.query_size; i <= (t.i1 - 1) / blocks.query_size; ++i) {
    for (Index j = t.j0 / blocks.key_size; j <= (t.j1 - 1) / blocks.key_size; ++j) {
      const bool allowed = blocks.map(t.b, t.h, i, j);
      any = any || allowed;
      all = all && allowed;
    }
  }
  return FromCounts(any, all);
}

TileClass MaskRule::ClassifyKeep(const Tile& t) const {
  const auto& keep = mask_.keep->keep;
  const Index stride = keep.strides[3];
  bool any = false, all = true;
  for (Index i = t.i0; i < (keep.strides[2] == 0 ? t.i0 + 1 : t.i1); ++i) {
    const bool* row = &keep(t.b, t.h, i, t.j0);
    Index count = 0;
    for (Index j = 0; j < t.j1 - t.j0; ++j) count += row[j * stride];
    any = any || count > 0;
    all = all && count == t.j1 - t.j0;
    if (any && !all) break;
  }
  return FromCounts(any, all);
}

TileClass MaskRule::Classify(const Tile& t) const {
  TileClass c = ClassifyRanges(t);
  if (c != TileClass::kEmpty && mask_.segments) c = Both(c, ClassifySegments(t));
  if (c != TileClass::kEmpty && mask_.blocks) c = Both(c, ClassifyBlocks(t));
  if (c != TileClass::kEmpty && mask_.keep) c = Both(c, ClassifyKeep(t));
  if (c != TileClass::kEmpty && mask_.custom) c = Both(c, mask_.custom->rows->Classify(t));
  const bool crosses_diagonal = std::max(t.i0, t.j0) < std::min(t.i1, t.j1);
  if (mask_.exclude_self && crosses_diagonal) c = Both(c, TileClass::kPartial);
  return c;
}

void MaskRule::TakeAway(Index b, Index h, Index i, Index j0, Index j1, std::uint8_t* allowed) const {
  if (mask_.exclude_self && i >= j0 && i < j1) allowed[i - j0] = 0;
  if (mask_.segments) {
    const Index own = mask_.segments->query(b, i);
    const Index* key = &mask_.segments->key(b, j0);
    const Index stride = mask_.segments->key.strides[1];
    for (Index j = 0; j < j1 - j0; ++j) allowed[j] &= static_cast<std::uint8_t>(key[j * stride] == own);
  }
  if (mask_.blocks) {
    const Blocks& blocks = *mask_.blocks;
    for (Index j = j0; j < j1;) {
      const Index end = std::min(j1, (j / blocks.key_size + 1) * blocks.key_size);
      if (!blocks.map(b, h, i / blocks.query_size, j / blocks.key_size)) {
        std::fill(allowed + (j - j0), allowed + (end - j0), std::uint8_t{0});
      }
      j = end;
    }
  }
  if (mask_.keep) {
    const bool* keep = &mask_.keep->keep(b, h, i, j0);
    const Index stride = mask_.keep->keep.strides[3];
    for (Index j = 0; j < j1 - j0; ++j) allowed[j] &= static_cast<std::uint8_t>(keep[j * stride]);
  }
  if (mask_.custom) mask_.custom->rows->TakeAway(PairRow{b, h, i, j0, j1 - j0}, allowed);
}

}  // namespace regard::engine
