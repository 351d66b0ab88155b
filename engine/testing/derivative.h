// Gradients against differences of a loss.
#ifndef REGARD_ENGINE_TESTING_DERIVATIVE_H_
#define REGARD_ENGINE_TESTING_DERIVATIVE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "engine/testing/case.h"

namespace regard::engine {

// The loss that Case's upstream gradients belong to, but for that of weights.
inline double Loss(const Case<double>& c) {
  EXPECT_TRUE(c.Forward().ok());
  double loss = 0;
  for (std::int64_t n = 0; n < c.out.size(); ++n) loss += c.out.Element(n) * c.dout.Element(n);
  for (std::int64_t n = 0; n < c.lse.size(); ++n) {
    if (c.spec.upstream_lse) loss += c.lse.Element(n) * c.dlse.Element(n);
    if (!c.soft()) loss += c.log_prob.Element(n) * c.dlog_prob.Element(n);
  }
  return loss;
}

// The gradient that the loss has by x, against differences.
inline void CheckDerivative(const Case<double>& c, double& x, double derivative) {
  const double step = 1e-5, before = x;
  x = before + step;
  const double up = Loss(c);
  x = before - step;
  const double down = Loss(c);
  x = before;
  EXPECT_NEAR((up - down) / (2 * step), derivative, 1e-8 * (1 + std::abs(derivative))) << c.spec.Text();
}

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_DERIVATIVE_H_
