// Calls of regard::attend with every score, mask and normaliser, for tests.
#ifndef REGARD_NN_ATTEND_TESTING_H_
#define REGARD_NN_ATTEND_TESTING_H_

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "nn/attend_op.h"

namespace regard::nn::attend_testing {

using torch::Tensor;

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::int64_t B = 2, H = 4, G = 2, L = 5, S = 7, D = 3, E = 4;

inline Tensor Random(at::IntArrayRef sizes, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(sizes, generator, torch::kDouble);
}

inline AttendCall MakeCall(const AttendOptions& options) {
  return {Random({B, H, L, D}, 1), Random({B, G, S, D}, 2), Random({B, G, S, E}, 3), options, options.seed};
}

struct Variant {
  std::string name;
  std::function<void(AttendOptions*)> set;
};

inline std::vector<Variant> Scores() {
  return {
      {"scaled_dot", [](AttendOptions* o) { o->score = ScoreKind::kScaledDot; }},
      {"dot",
       [](AttendOptions* o) {
         o->score = ScoreKind::kDot;
         o->scale = 0.7;
       }},
      {"cosine",
       [](AttendOptions* o) {
         o->score = ScoreKind::kCosine;
         o->scale = 3.0;
       }},
      {"additive",
       [](AttendOptions* o) {
         o->score = ScoreKind::kAdditive;
         o->additive_weight = Random({D}, 4);
       }},
      {"additive per head",
       [](AttendOptions* o) {
         o->score = ScoreKind::kAdditive;
         o->additive_weight = Random({H, D}, 4);
       }},
      {"gaussian",
       [](AttendOptions* o) {
         o->score = ScoreKind::kGaussian;
         o->precision = Random({1}, 5);
       }},
      {"gaussian per dimension",
       [](AttendOptions* o) {
         o->score = ScoreKind::kGaussian;
         o->precision = Random({D}, 5);
       }},
      {"boxcar",
       [](AttendOptions* o) {
         o->score = ScoreKind::kBoxcar;
         o->precision = torch::full({1}, 0.4, torch::kDouble);
       }},
      {"triangular",
       [](AttendOptions* o) {
         o->score = ScoreKind::kTriangular;
         o->precision = torch::full({}, 0.4, torch::kDouble);
       }},
      {"epanechnikov",
       [](AttendOptions* o) {
         o->score = ScoreKind::kEpanechnikov;
         o->precision = torch::full({1}, 0.4, torch::kDouble);
       }},
      {"tricube per dimension",
       [](AttendOptions* o) {
         o->score = ScoreKind::kTricube;
         o->precision = 0.3 * Random({D}, 5);
       }},
  };
}

inline std::vector<Variant> Extras() {
  return {
      {"plain", [](AttendOptions*) {}},
      {"softcap", [](AttendOptions* o) { o->softcap = 0.8; }},
      {"bias",
       [](AttendOptions* o) {
         o->bias = Random({B, 1, L, S}, 6);
       }},
      {"bias of a row",
       [](AttendOptions* o) {
         o->bias = Random({H, 1, S}, 6);
       }},
      {"alibi", [](AttendOptions* o) { o->alibi_slopes = Random({H}, 7).abs(); }},
      {"causal", [](AttendOptions* o) { o->causal = true; }},
      {"causal to the corner",
       [](AttendOptions* o) {
         o->causal = true;
         o->corner = Corner::kBottomRight;
       }},
      {"window",
       [](AttendOptions* o) {
         o->window_left = 1;
         o->window_right = 2;
       }},
      {"window with alibi, bottom right",
       [](AttendOptions* o) {
         o->window_left = 3;
         o->corner = Corner::kBottomRight;
         o->alibi_slopes = Random({H}, 7).abs();
       }},
      {"lengths",
       [](AttendOptions* o) {
         o->lengths = torch::tensor({0, 5});
       }},
      {"lengths per query",
       [](AttendOptions* o) {
         o->lengths = torch::tensor({{1, 2, 3, 4, 5}, {0, 7, 0, 6, 1}});
       }},
      {"segments",
       [](AttendOptions* o) {
         o->query_segments = torch::tensor({0, 0, 1, 1, 9});
         o->key_segments = torch::tensor({{0, 0, 0, 1, 1, 2, 2}, {1, 1, 1, 1, 0, 0, 0}});
       }},
      {"blocks",
       [](AttendOptions* o) {
         o->blocks = Random({H, 3, 3}, 8) > 0;
         o->block_queries = 2;
         o->block_keys = 3;
       }},
      {"keep",
       [](AttendOptions* o) {
         o->keep = Random({B, H, L, S}, 9) > 0.5;
       }},
      {"keep of width 1",
       [](AttendOptions* o) {
         o->keep = torch::tensor({1, 0, 1, 1, 0}).view({L, 1}) > 0;
       }},
      {"itself excluded", [](AttendOptions* o) { o->exclude_self = true; }},
      {"many",
       [](AttendOptions* o) {
         o->softcap = 2.0;
         o->bias = Random({L, S}, 6);
         o->causal = true;
         o->exclude_self = true;
         o->lengths = torch::tensor({4, 7});
         o->keep = Random({B, 1, L, S}, 10) > -0.5;
       }},
  };
}

inline std::vector<Variant> Normalizers() {
  return {
      {"softmax", [](AttendOptions*) {}},
      {"dropout",
       [](AttendOptions* o) {
         o->dropout = 0.4;
         o->seed = -12345678901234567;
       }},
      {"argmax", [](AttendOptions* o) { o->normalizer = NormalizerKind::kArgmax; }},
      {"sample",
       [](AttendOptions* o) {
         o->normalizer = NormalizerKind::kSample;
         o->seed = 99;
       }},
  };
}

// A number that depends on every output, with different factors for each element.
inline Tensor Loss(const AttendOutputs& r) {
  Tensor loss = torch::zeros({}, torch::kDouble);
  for (std::size_t n = 0; n < r.size(); ++n) {
    if (n == kIndex || r[n].numel() == 0) continue;
    const Tensor finite = torch::where(r[n].isfinite(), r[n], 0);
    loss = loss + (finite * Random(r[n].sizes(), 20 + n)).sum();
  }
  return loss;
}

// The outputs, and the gradients of Loss by every tensor that can have one (undefined: not given).
struct Trial {
  AttendOutputs outputs;
  std::vector<Tensor> gradients;
};

inline Trial TrialOf(const std::function<AttendOutputs(const AttendCall&)>& attend, AttendCall call) {
  std::vector<Tensor> inputs;
  for (std::size_t n = 0; n < AttendCall::kDifferentiable; ++n) {
    Tensor* tensor = call.Tensors()[n];
    if (!tensor->defined()) continue;
    *tensor = tensor->detach().clone().requires_grad_();
    inputs.push_back(*tensor);
  }
  Trial trial{attend(call), {}};
  const Tensor loss = Loss(trial.outputs);
  if (loss.requires_grad()) {
    trial.gradients = torch::autograd::grad({loss}, inputs, {}, {}, false, /*allow_unused=*/true);
  }
  trial.gradients.resize(inputs.size());
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    if (!trial.gradients[n].defined()) trial.gradients[n] = torch::zeros_like(inputs[n]);
  }
  return trial;
}

inline void ExpectSame(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_EQ(a.scalar_type(), b.scalar_type()) << what;
  EXPECT_TRUE(torch::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true)) << what << "\n"
                                                                               << a << "\n"
                                                                               << b << "\n";
}

inline void ForEachVariant(const std::function<void(const AttendCall&)>& test) {
  for (const Variant& score : Scores()) {
    for (const Variant& extra : Extras()) {
      for (const Variant& normalizer : Normalizers()) {
        SCOPED_TRACE(score.name + ", " + extra.name + ", " + normalizer.name);
        AttendOptions options;
        options.return_lse = options.return_weights = true;
        for (const Variant* variant : {&score, &extra, &normalizer}) variant->set(&options);
        test(MakeCall(options));
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace regard::nn::attend_testing

#endif  // REGARD_NN_ATTEND_TESTING_H_
