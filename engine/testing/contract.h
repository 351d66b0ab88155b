// What the tests of the contract share.
#ifndef REGARD_ENGINE_TESTING_CONTRACT_H_
#define REGARD_ENGINE_TESTING_CONTRACT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/testing/case.h"

namespace regard::engine {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename Tensor>
inline bool AllFinite(const Tensor& t) {
  const auto values = t.Values();
  return std::all_of(values.begin(), values.end(), [](auto x) { return std::isfinite(x); });
}

inline bool AllResultsFinite(const Case<float>& c) {
  return AllFinite(c.out) && AllFinite(c.dq) && AllFinite(c.dk) && AllFinite(c.dv) && AllFinite(c.dbias) &&
         AllFinite(c.dw) && AllFinite(c.dprecision);
}

template <typename T>
std::vector<T> Row(const Tensor<T, 4>& t, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<T> row;
  for (std::int64_t x = 0; x < t.shape()[3]; ++x) row.push_back(t(b, h, i, x));
  return row;
}

inline const std::vector<Normalizer> kNormalizers = {Softmax{}, Argmax{}, Sample{3}};
inline const std::vector<TestScore> kScores = {TestScore::kScaledDot, TestScore::kCosine,
                                               TestScore::kAdditive,  TestScore::kGaussian,
                                               TestScore::kTricube,   TestScore::kOwnAdditive};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_CONTRACT_H_
