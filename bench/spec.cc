#include "bench/spec.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace regard::bench {

std::string Describe(const Spec& spec) {
  std::string text = fmt::format("{}, {}, {}, {}", spec.B, spec.H, spec.L, spec.D);
  if (spec.keys() != spec.L) text += fmt::format("; {} keys", spec.keys());
  if (spec.key_heads() != spec.H) text += fmt::format(" of {} heads", spec.key_heads());
  if (spec.value_width() != spec.D) text += fmt::format("; values {} wide", spec.value_width());
  if (spec.score == ScoreKind::kAdditive) text += "; additive";
  if (spec.score == ScoreKind::kGaussian) text += "; Gaussian";
  if (spec.type != at::kFloat) text += spec.type == at::kBFloat16 ? "; bfloat16" : "; float64";
  if (spec.causal) text += "; causal";
  if (spec.window) text += fmt::format("; window {} each side", *spec.window);
  if (!spec.lengths.empty()) text += fmt::format("; lengths {}", fmt::join(spec.lengths, " "));
  if (spec.dropout > 0) text += fmt::format("; dropout {}", spec.dropout);
  constexpr const char* kPasses[] = {"forward", "backward", "forward and backward"};
  return text + "; " + kPasses[static_cast<int>(spec.pass)];
}

double AllowedPairs(const Spec& spec) {
  double pairs = 0;
  for (std::int64_t b = 0; b < spec.B; ++b) {
    const std::int64_t keys = spec.lengths.empty() ? spec.keys() : spec.lengths[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < spec.L; ++i) {
      const std::int64_t first = spec.window ? std::max<std::int64_t>(0, i - *spec.window) : 0;
      std::int64_t end = spec.window ? std::min(keys, i + *spec.window + 1) : keys;
      if (spec.causal) end = std::min(end, i + 1);
      pairs += static_cast<double>(std::max<std::int64_t>(0, end - first));
    }
  }
  return pairs * static_cast<double>(spec.H);
}

double UsefulWork(const Spec& spec) {
  const auto D = static_cast<double>(spec.D), E = static_cast<double>(spec.value_width());
  double forward = 2 * (D + E), backward = 2 * (3 * D + 2 * E);
  if (spec.score == ScoreKind::kAdditive) forward = 4 * D + 2 * E, backward = 8 * D + 4 * E;
  if (spec.score == ScoreKind::kGaussian) forward = 3 * D + 2 * E, backward = 8 * D + 4 * E;
  return AllowedPairs(spec) * ((spec.has_forward() ? forward : 0) + (spec.has_backward() ? backward : 0));
}

double TensorBytes(const Spec& spec) {
  const double queries = static_cast<double>(spec.B * spec.H * spec.L);
  const double keys = static_cast<double>(spec.B * spec.key_heads() * spec.keys());
  const auto D = static_cast<double>(spec.D), E = static_cast<double>(spec.value_width());
  const double one_way = (queries + keys) * (D + E);  // q, out, k, v, and as many gradients
  return one_way * (spec.has_backward() ? 2 : 1) * static_cast<double>(at::elementSize(spec.type));
}

Tensors Tensors::To(at::ScalarType type) const {
  const auto as = [&](const at::Tensor& t) { return t.defined() ? t.to(type) : t; };
  return {as(q), as(k), as(v), as(parameter), as(dout), lengths};
}

Tensors MakeTensors(const Spec& spec) {
  auto generator = at::detail::createCPUGenerator(/*seed_val=*/4);
  const bool even = spec.score == ScoreKind::kGaussian;
  const auto draw = [&](at::IntArrayRef shape) {
    const at::Tensor t = at::empty(shape, at::kFloat);
    return (even ? t.uniform_(0, 1, generator) : t.normal_(0, 1, generator)).to(spec.type);
  };
  const double width = std::sqrt(static_cast<double>(spec.D));
  Tensors t;
  t.q = draw({spec.B, spec.H, spec.L, spec.D});
  t.k = draw({spec.B, spec.key_heads(), spec.keys(), spec.D});
  t.v = draw({spec.B, spec.key_heads(), spec.keys(), spec.value_width()});
  if (spec.score == ScoreKind::kAdditive) t.parameter = draw({spec.D}) / width;
  if (spec.score == ScoreKind::kGaussian) t.parameter = at::full({1}, 10 / width, spec.type);
  if (spec.has_backward()) t.dout = draw({spec.B, spec.H, spec.L, spec.value_width()});
  if (!spec.lengths.empty()) t.lengths = at::tensor(spec.lengths, at::kLong);
  return t;
}

}  // namespace regard::bench
