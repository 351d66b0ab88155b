#include "nn/row_kernels.h"

#include <cmath>

#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/row_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using engine::HWY_NAMESPACE::LoadFirst;
using engine::HWY_NAMESPACE::SumOf;
using Tag = engine::HWY_NAMESPACE::Lanes<float>;
using V = engine::HWY_NAMESPACE::Vector<float>;

// A tile's sums are kept in registers, of which AVX-512 has 32 and the others 16.
constexpr int kTileRows = 4, kTileColumns = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// How far ahead of their use weights are asked for: prefetching by the machine ends at each page.
constexpr std::int64_t kAhead = 1024;  // floats

template <int kRows, int kColumns>
void Tile(const RowProduct& p, std::int64_t row, std::int64_t column) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* HWY_RESTRICT x = p.x + row * p.inner;
  const float* HWY_RESTRICT w = p.weight + column * p.inner;
  V sums[kRows][kColumns];
  for (auto& of_row : sums) {
    for (V& sum : of_row) sum = hn::Zero(d);
  }
  const auto add = [&](const auto& load) HWY_ATTR {
    V rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = load(x + r * p.inner);
    for (int c = 0; c < kColumns; ++c) {
      const V weights = load(w + c * p.inner);
      for (int r = 0; r < kRows; ++r) sums[r][c] = hn::MulAdd(rows[r], weights, sums[r][c]);
    }
  };
  std::int64_t k = 0;
  for (; k + lanes <= p.inner; k += lanes, x += lanes, w += lanes) {
    if (row == 0) {
      for (int c = 0; c < kColumns; ++c) hwy::Prefetch(w + c * p.inner + kAhead);
    }
    add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (k < p.inner) {
    const auto rest = static_cast<std::size_t>(p.inner - k);
    add([&](const float* from) HWY_ATTR { return LoadFirst(from, rest); });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      float& y = p.y[(row + r) * p.columns + column + c];
      const float sum = SumOf<float>(sums[r][c]) + (p.bias == nullptr ? 0.F : p.bias[column + c]);
      y = p.add ? y + sum : sum;
    }
  }
}

template <int kRows, int kColumns>
void Rows(const RowProduct& p, std::int64_t row, std::int64_t column) {
  for (; row + kRows <= p.rows; row += kRows) Tile<kRows, kColumns>(p, row, column);
  if constexpr (kRows > 1) {
    if (row < p.rows) Rows<kRows / 2, kColumns>(p, row, column);
  }
}

void ProductOfRows(const RowProduct& p, std::int64_t begin, std::int64_t end) {
  for (; begin + kTileColumns <= end; begin += kTileColumns) Rows<kTileRows, kTileColumns>(p, 0, begin);
  for (; begin < end; ++begin) Rows<kTileRows, 1>(p, 0, begin);
}

void NormalizeRow(const RowNorm& norm, const float* HWY_RESTRICT x, float* HWY_RESTRICT y) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // sum of f(x) over the row
  const auto sum = [&](const auto& f) HWY_ATTR {
    V total = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes <= norm.width; i += lanes) total = hn::Add(total, f(hn::LoadU(d, x + i)));
    if (i < norm.width) {
      const auto rest = static_cast<std::size_t>(norm.width - i);
      total = hn::Add(total, hn::IfThenElseZero(hn::FirstN(d, rest), f(LoadFirst(x + i, rest))));
    }
    return SumOf<float>(total);
  };
  const auto width = static_cast<float>(norm.width);
  const float mean = sum([](V v) HWY_ATTR { return v; }) / width;
  const float variance = sum([&](V v) HWY_ATTR {
                           const V away = hn::Sub(v, hn::Set(d, mean));
                           return hn::Mul(away, away);
                         }) /
                         width;
  const auto scale = static_cast<float>(1 / std::sqrt(variance + norm.eps));
  for (std::int64_t i = 0; i < norm.width; ++i) {
    const float z = (x[i] - mean) * scale * norm.weight[i];
    y[i] = norm.bias == nullptr ? z : z + norm.bias[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace regard::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::nn {
HWY_EXPORT(ProductOfRows);
HWY_EXPORT(NormalizeRow);

void Product(const RowProduct& product, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(ProductOfRows)(product, begin, end);
}

void Normalize(const RowNorm& norm, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeRow)(norm, x, y);
}

}  // namespace regard::nn
#endif  // HWY_ONCE
