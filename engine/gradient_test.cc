// Gradients against differences of the loss.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "engine/testing/case.h"

namespace regard::engine {
namespace {

// dL/dx of every input, against (L(x + step) - L(x - step)) / 2 step.
TEST(Gradients, AreTheDifferencesOfTheLoss) {
  for (int score = 0; score <= static_cast<int>(TestScore::kOwnDot); ++score) {
    for (const Normalizer& normalizer :
         {Normalizer(Softmax{}), Normalizer(Argmax{}), Normalizer(Sample{3})}) {
      Spec spec{.B = 1, .L = 3, .S = 5, .D = 4, .E = 3, .score = static_cast<TestScore>(score)};
      spec.normalizer = normalizer, spec.mask = TestMask::kCausalBottomRight;
      spec.softcap = 2, spec.bias_shape = {{1, 0, 1, 0}}, spec.dropout = 0.2, spec.upstream_lse = true;
      const Case<double> c(spec);
      c.Run();
      const auto loss = [&] {
        EXPECT_TRUE(c.Forward().ok());
        double sum = 0;
        const auto add = [&](const auto& x, const auto& dx) {
          for (std::int64_t n = 0; n < x.size(); ++n) {
            if (std::isfinite(x.Element(n))) sum += x.Element(n) * dx.Element(n);
          }
        };
        add(c.out, c.dout), add(c.lse, c.dlse);
        if (c.soft()) add(c.weights, c.dweights);
        if (!c.soft()) add(c.log_prob, c.dlog_prob);
        return sum;
      };
      const auto check = [&](const char* name, const auto& x, const auto& dx) {
        constexpr double kStep = 1e-5;
        for (std::int64_t n = 0; n < x.size(); ++n) {
          const double here = x.Element(n);
          x.Element(n) = here + kStep;
          const double above = loss();
          x.Element(n) = here - kStep;
          const double below = loss();
          x.Element(n) = here;
          EXPECT_NEAR(dx.Element(n), (above - below) / (2 * kStep), 1e-8)
              << name << " " << n << " " << spec.Text();
        }
      };
      check("q", c.q, c.dq), check("k", c.k, c.dk), check("v", c.v, c.dv), check("bias", c.bias, c.dbias);
      check("w", c.w, c.dw), check("precision", c.precision, c.dprecision);
    }
  }
}

}  // namespace
}  // namespace regard::engine
