#include "engine/testing/case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

#include "engine/kernels/compact_reference.h"
#include "engine/kernels/reference.h"

namespace regard::engine {

std::string Spec::Text() const {
  std::ostringstream text;
  text << "B" << B << " H" << H << " G" << G << " L" << L << " S" << S << " D" << D << " E" << E << " score "
       << static_cast<int>(score) << " mask " << static_cast<int>(mask) << " normalizer "
       << normalizer.index() << " softcap " << softcap << " bias";
  if (bias_shape) {
    for (std::int64_t size : *bias_shape) text << " " << size;
  }
  text << " alibi " << alibi << " dropout " << dropout << " weights " << want_weights << " dlse "
       << upstream_lse << " layout " << static_cast<int>(layout) << " scale " << scale << " drift " << drift
       << " seed " << seed;
  return text.str();
}

namespace {

// Rounds to multiples of 1 / steps.
template <typename Tensor>
void RoundTo(double steps, const Tensor& t) {
  for (std::int64_t n = 0; n < t.size(); ++n) {
    auto& x = t.Element(n);
    x = static_cast<std::remove_reference_t<decltype(x)>>(
        static_cast<float>(std::round(static_cast<double>(x) * steps) / steps));
  }
}

// A precision with which about half of the keys are inside. It and (in MakeTensors) q and k are few-digit
// numbers, so that |precision ∘ (q - k)|² is exact in every type and order of summation: at the edge of a
// kernel log K makes a rounding of it as large as one likes, in any formula.
template <typename T>
void SetCompact(const Spec& s, CompactKernel kernel, std::int64_t numbers, TestRandom* random, Case<T>* c) {
  const double one = 1 / std::sqrt(std::max(1.0, static_cast<double>(s.D)));
  c->precision = random->Values<SumType<T>, 1>({numbers}, 0.3 * one, 1.2 * one).Copy(s.layout);
  RoundTo(64, c->precision);
  c->options.score = Compact<SumType<T>>{kernel, c->precision.view()};
}

struct OwnAdditive {
  auto operator()(auto q, auto k, auto w) const { return w * Tanh(q + k); }
};

template <typename T>
void SetScore(const Spec& s, TestRandom* random, Case<T>* c) {
  switch (s.score) {
    case TestScore::kScaledDot:
      c->options.score = ScaledDot{};
      break;
    case TestScore::kDot:
      c->options.score = Dot{0.75};
      break;
    case TestScore::kCosine:
      c->options.score = Cosine{4.0};
      break;
    case TestScore::kAdditive:
    case TestScore::kAdditivePerHead:
      c->w = random->Values<SumType<T>, 2>({s.score == TestScore::kAdditive ? 1 : s.H, s.D}).Copy(s.layout);
      c->options.score = Additive<SumType<T>>{c->w.view()};
      break;
    case TestScore::kGaussian:
    case TestScore::kGaussianPerDimension:
      c->precision =
          random->Values<SumType<T>, 1>({s.score == TestScore::kGaussian ? 1 : s.D}, 0.5, 1).Copy(s.layout);
      c->options.score = Gaussian<SumType<T>>{c->precision.view()};
      break;
    case TestScore::kBoxcar:
    case TestScore::kTriangular:
    case TestScore::kEpanechnikov:
    case TestScore::kTricube:
      SetCompact(s,
                 static_cast<CompactKernel>(static_cast<int>(s.score) - static_cast<int>(TestScore::kBoxcar)),
                 1, random, c);
      break;
    case TestScore::kTricubePerDimension:
      SetCompact(s, CompactKernel::kTricube, s.D, random, c);
      break;
    case TestScore::kOwnAdditive:
      c->w = random->Values<SumType<T>, 2>({s.H, s.D}).Copy(s.layout);
      c->options.score = CustomScore<SumType<T>>(OwnAdditive{}, c->w.view());
      break;
    case TestScore::kOwnDot:
      c->options.score = CustomScore<SumType<T>>([](auto q, auto k) { return 0.75f * q * k; });
      break;
  }
}

Tensor<std::int64_t, 2> RandomNumbers(const std::array<std::int64_t, 2>& shape, std::int64_t below,
                                      TestRandom* random) {
  Tensor<std::int64_t, 2> t(shape);
  for (std::int64_t n = 0; n < t.size(); ++n) t.Element(n) = random->Below(below);
  return t;
}

Tensor<bool, 4> RandomBooleans(const std::array<std::int64_t, 4>& shape, TestRandom* random) {
  Tensor<bool, 4> t(shape);
  for (std::int64_t n = 0; n < t.size(); ++n) t.Element(n) = random->Chance(0.6);
  return t;
}

template <typename T>
void SetMask(const Spec& s, TestRandom* random, Case<T>* c) {
  Mask& mask = c->options.mask;
  const auto is = [&](TestMask m) { return s.mask == m; };
  const bool many = is(TestMask::kMany);
  if (is(TestMask::kCausal)) mask.causal = Causal{};
  if (is(TestMask::kCausalBottomRight) || many) mask.causal = Causal{Corner::kBottomRight};
  if (is(TestMask::kWindow) || many) mask.window = Window{3, 70, Corner::kBottomRight};
  if (is(TestMask::kWindowOneSided)) mask.window = Window{2, std::nullopt, Corner::kTopLeft};
  if (is(TestMask::kLengths) || is(TestMask::kLengthsPerQuery) || many) {
    c->lengths = RandomNumbers({s.B, is(TestMask::kLengths) ? 1 : s.L}, s.S + 1, random).Copy(s.layout);
    mask.lengths = Lengths{c->lengths.view()};
  }
  if (is(TestMask::kSegments) || many) {
    c->query_segments = RandomNumbers({1, s.L}, 2, random).Copy(s.layout);
    c->key_segments = RandomNumbers({s.B, s.S}, 2, random).Copy(s.layout);
    // Long runs of one number, so that whole tiles are full or empty.
    for (std::int64_t j = 0; j < s.S / 2; ++j) c->key_segments.Element(j) = 1;
    mask.segments = Segments{c->query_segments.view(), c->key_segments.view()};
  }
  if (is(TestMask::kBlocks) || many) {
    const std::int64_t query_size = 3, key_size = 20;
    c->block_map =
        RandomBooleans({s.B, 1, (s.L + query_size - 1) / query_size, (s.S + key_size - 1) / key_size}, random)
            .Copy(s.layout);
    mask.blocks = Blocks{c->block_map.view(), query_size, key_size};
  }
  if (is(TestMask::kKeep) || is(TestMask::kKeepRow) || many) {
    c->keep =
        RandomBooleans({is(TestMask::kKeepRow) ? 1 : s.B, s.H, is(TestMask::kKeep) ? s.L : 1, s.S}, random)
            .Copy(s.layout);
    mask.keep = Keep{c->keep.view()};
  }
  mask.exclude_self = is(TestMask::kExcludeSelf) || many;
}

template <typename T>
void Drift(double drift, const Tensor<T, 4>& t) {
  const auto& shape = t.shape();
  for (std::int64_t n = 0; n < t.size(); n += shape[3]) {
    const double way = static_cast<double>(n / shape[3] % shape[2]) / static_cast<double>(shape[2]);
    t.Element(n) = static_cast<T>(static_cast<float>(t.Element(n)) + static_cast<float>(drift * way));
  }
}

template <typename T>
void MakeTensors(const Spec& s, TestRandom* random, Case<T>* c) {
  const std::array<std::int64_t, 4> pairs{s.B, s.H, s.L, s.S}, outs{s.B, s.H, s.L, s.E};
  const std::array<std::int64_t, 3> rows{s.B, s.H, s.L};
  c->q = random->Values<T, 4>({s.B, s.H, s.L, s.D}, s.scale).Copy(s.layout);
  c->k = random->Values<T, 4>({s.B, s.G, s.S, s.D}, s.scale).Copy(s.layout);
  if (s.drift != 0) Drift(s.drift, c->q), Drift(s.drift, c->k);
  if (std::holds_alternative<Compact<SumType<T>>>(c->options.score)) RoundTo(16, c->q), RoundTo(16, c->k);
  c->v = random->Values<T, 4>({s.B, s.G, s.S, s.E}).Copy(s.layout);
  using Sum = SumType<T>;
  const T mark = T(77);  // what is not written shows
  const Sum sum_mark = 77;
  c->out = Tensor<T, 4>(outs, mark, s.layout);
  c->weights = Tensor<T, 4>(pairs, mark, s.layout);
  c->lse = Tensor<Sum, 3>(rows, sum_mark, s.layout);
  c->log_prob = Tensor<Sum, 3>(rows, sum_mark, s.layout);
  c->index = Tensor<std::int64_t, 3>(rows, 77, s.layout);
  c->dout = random->Values<T, 4>(outs).Copy(s.layout);
  c->dweights = random->Values<T, 4>(pairs).Copy(s.layout);
  c->dlse = random->Values<Sum, 3>(rows).Copy(s.layout);
  c->dlog_prob = random->Values<Sum, 3>(rows).Copy(s.layout);
  c->dq = Tensor<T, 4>(c->q.shape(), mark, s.layout);
  c->dk = Tensor<T, 4>(c->k.shape(), mark, s.layout);
  c->dv = Tensor<T, 4>(c->v.shape(), mark, s.layout);
  c->dbias = Tensor<Sum, 4>(c->bias.shape(), sum_mark, s.layout);
  c->dw = Tensor<Sum, 2>(c->w.shape(), sum_mark, s.layout);
  c->dprecision = Tensor<Sum, 1>(c->precision.shape(), sum_mark, s.layout);
}

}  // namespace

template <typename T>
Case<T>::Case(const Spec& s) : spec(s) {
  TestRandom random(s.seed);
  options.normalizer = s.normalizer;
  options.threads = 1;
  if (s.softcap > 0) options.softcap = s.softcap;
  if (s.bias_shape) {
    std::array<std::int64_t, 4> shape = *s.bias_shape;
    const std::array<std::int64_t, 4> full{s.B, s.H, s.L, s.S};
    for (std::size_t d = 0; d < 4; ++d) shape[d] = shape[d] == 1 ? 1 : full[d];
    bias = random.Values<Sum, 4>(shape).Copy(s.layout);
    options.bias = bias.view();
  }
  if (s.alibi) {
    slopes = random.Values<Sum, 1>({s.H}, 0.2, 0.3).Copy(s.layout);
    options.alibi = Alibi<Sum>{slopes.view(), s.seed % 2 ? Corner::kTopLeft : Corner::kBottomRight};
  }
  if (s.dropout > 0) options.dropout = Dropout{s.dropout, s.seed};
  SetScore(s, &random, this);
  SetMask(s, &random, this);
  MakeTensors(s, &random, this);
}

template <typename T>
AttentionOutputs<T> Case<T>::Outputs() const {
  AttentionOutputs<T> o{out.view(), lse.view(), std::nullopt, std::nullopt, std::nullopt};
  if (spec.want_weights) o.weights = weights.view();
  if (!soft()) o.index = index.view(), o.log_prob = log_prob.view();
  return o;
}

template <typename T>
AttentionUpstream<T> Case<T>::Upstream() const {
  AttentionUpstream<T> u;
  u.out = out.view();
  u.lse = lse.view();
  u.dout = dout.view();
  if (spec.upstream_lse) u.dlse = dlse.view();
  if (spec.want_weights && soft()) u.dweights = dweights.view();
  if (!soft()) u.index = index.view(), u.dlog_prob = dlog_prob.view();
  return u;
}

template <typename T>
AttentionGradients<T> Case<T>::Gradients() const {
  AttentionGradients<T> g;
  g.dq = dq.view(), g.dk = dk.view(), g.dv = dv.view();
  if (options.bias) g.dbias = dbias.view();
  const auto* custom = std::get_if<CustomScore<Sum>>(&options.score);
  if (std::holds_alternative<Additive<Sum>>(options.score) || (custom && custom->rows->weighted()))
    g.dw = dw.view();
  if (std::holds_alternative<Gaussian<Sum>>(options.score) ||
      std::holds_alternative<Compact<Sum>>(options.score))
    g.dprecision = dprecision.view();
  return g;
}

template <typename T>
void Case<T>::Run() const {
  const Status forward = Forward();
  ASSERT_TRUE(forward.ok()) << forward.message();
  const Status backward = Backward();
  ASSERT_TRUE(backward.ok()) << backward.message();
}

template <typename T>
AttentionOptions<SumType<T>> Case<T>::BuiltIn() const {
  auto built_in = options;
  if (spec.score == TestScore::kOwnAdditive) built_in.score = Additive<Sum>{w.view()};
  if (spec.score == TestScore::kOwnDot) built_in.score = Dot{0.75};
  return built_in;
}

template <typename T>
std::string Case<T>::Bits() const {
  std::string bits;
  const auto add = [&](const auto& tensor) {
    const auto values = tensor.Values();
    bits.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  add(out), add(weights), add(lse), add(log_prob), add(index);
  add(dq), add(dk), add(dv), add(dbias), add(dw), add(dprecision);
  return bits;
}

template struct Case<float>;
template struct Case<double>;
template struct Case<BFloat16>;
template struct Case<Float16>;

namespace {

// The bound of the error of rounding x to T, relative to x, and below T's normal numbers.
struct Rounding {
  double relative = 0, smallest = 0;
};
template <typename T>
constexpr Rounding kStored = {};
template <>
constexpr Rounding kStored<BFloat16> = {0x1p-8, 0};
template <>
constexpr Rounding kStored<Float16> = {0x1p-11, 0x1p-25};

// The largest difference, beyond what rounding the right value may have made; +inf where one is NaN or
// infinite and the other not the same.
template <typename A>
double LargestError(const std::vector<A>& a, const std::vector<double>& right, Rounding rounding = {}) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    const double x = static_cast<double>(a[n]), y = right[n];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double error = std::abs(x - y);
    largest =
        std::max(largest, std::isfinite(error) ? error - std::abs(y) * rounding.relative - rounding.smallest
                                               : std::numeric_limits<double>::infinity());
  }
  return largest;
}

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (double x : values) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

// What a case gives, by name.
template <typename C>
struct NamedResult {
  const char* name;
  std::vector<C> values;
  Rounding rounding = {};  // beside those of the sums
};

// The formula written out in C.
template <typename C, typename T>
std::vector<NamedResult<C>> Formula(const Case<T>& c, const AttentionUpstream<T>& upstream) {
  auto f = ReferenceForward<C>(c.BuiltIn(), c.Inputs());
  auto b = ReferenceBackward<C>(c.BuiltIn(), c.Inputs(), upstream);
  return {{"out", f.out},         {"lse", f.lse},
          {"weights", f.weights}, {"log_prob", f.log_prob},
          {"dq", b.dq},           {"dk", b.dk},
          {"dv", b.dv},           {"dbias", b.dbias},
          {"dw", b.dw},           {"dprecision", b.dprecision}};
}

template <typename T>
std::vector<NamedResult<double>> Kernels(const Case<T>& c) {
  const auto sums = [](const auto& tensor) {
    const auto values = tensor.Values();
    return std::vector<double>(values.begin(), values.end());
  };
  return {{"out", sums(c.out), kStored<T>},
          {"lse", sums(c.lse)},
          {"weights", sums(c.weights), kStored<T>},
          {"log_prob", sums(c.log_prob)},
          {"dq", sums(c.dq), kStored<T>},
          {"dk", sums(c.dk), kStored<T>},
          {"dv", sums(c.dv), kStored<T>},
          {"dbias", sums(c.dbias)},
          {"dw", sums(c.dw)},
          {"dprecision", sums(c.dprecision)}};
}

// The upstream gradients with which ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij + dlse_i) is what it becomes when
// the sum is taken from out·dout, and out is stored in T: what rounding adds to the sum goes off dlse.
template <typename T>
AttentionUpstream<T> WithStoredOut(const Case<T>& c, const std::vector<double>& out) {
  AttentionUpstream<T> upstream = c.Upstream();
  if (sizeof(T) != 2 || !c.soft()) return upstream;
  for (std::int64_t row = 0; row < c.dlse.size(); ++row) {
    double added = 0;
    for (std::int64_t at = row * c.spec.E; at < (row + 1) * c.spec.E; ++at) {
      const double exact = out[static_cast<std::size_t>(at)];
      added += (static_cast<double>(T(static_cast<float>(exact))) - exact) *
               static_cast<double>(c.dout.Element(at));
    }
    float& dlse = c.dlse.Element(row);
    dlse = (upstream.dlse ? dlse : 0) - static_cast<float>(added);
  }
  upstream.dlse = c.dlse.view();
  return upstream;
}

// The largest error of each result of the formula written out in float32.
template <typename T>
std::vector<double> PlainErrors(const Spec& spec) {
  const Case<std::conditional_t<sizeof(T) == 2, T, float>> c(spec);
  const auto right = Formula<double>(c, c.Upstream());
  const auto plain = Formula<float>(c, WithStoredOut(c, right[0].values));
  std::vector<double> errors;
  for (std::size_t n = 0; n < plain.size(); ++n) {
    errors.push_back(LargestError(plain[n].values, right[n].values));
  }
  return errors;
}

// The same for result n, the largest over calls that differ in their numbers alone.
template <typename T>
double PlainErrorOfOthers(Spec spec, std::size_t n, int calls) {
  double largest = 0;
  for (int call = 0; call < calls; ++call) {
    spec.seed += std::uint64_t{1} << 32;
    largest = std::max(largest, PlainErrors<T>(spec)[n]);
  }
  return largest;
}

// The largest p_ij |ds_ij / du|, at least 1. It is large in a row all of whose keys are close to the edge of
// a compact kernel; of other scores it is not looked at.
template <typename T>
double LargestSlope(const Case<T>& c) {
  const auto* compact = std::get_if<Compact<SumType<T>>>(&c.options.score);
  if (compact == nullptr) return 1;
  auto options = c.options;
  options.normalizer = Softmax{};
  const auto p = ReferenceForward<double>(options, c.Inputs()).weights;
  const auto& a = compact->precision;
  const auto [B, H, G, L, S, D] = std::array{c.spec.B, c.spec.H, c.spec.G, c.spec.L, c.spec.S, c.spec.D};
  double largest = 1;
  for (std::size_t n = 0; n < p.size(); ++n) {
    if (!(p[n] > 0)) continue;
    const auto pair = static_cast<std::int64_t>(n);
    const std::int64_t j = pair % S, i = pair / S % L, h = pair / S / L % H, b = pair / S / L / H;
    double u2 = 0;
    for (std::int64_t d = 0; d < D; ++d) {
      const double az =
          static_cast<double>(a(a.shape[0] == 1 ? 0 : d)) *
          (static_cast<double>(c.q(b, h, i, d)) - static_cast<double>(c.k(b, h / (H / G), j, d)));
      u2 += az * az;
    }
    largest = std::max(largest, p[n] * std::abs(SlopeOfLog(compact->kernel, u2)));
  }
  return largest;
}

std::int64_t CountNonZero(const std::vector<double>& values) {
  return std::count_if(values.begin(), values.end(), [](double x) { return x != 0; });
}

}  // namespace

template <typename T>
void CheckAgainstReference(const Spec& spec) {
  SCOPED_TRACE(spec.Text());
  const Case<T> c(spec);
  c.Run();
  if (testing::Test::HasFatalFailure()) return;
  const auto right = Formula<double>(c, c.Upstream());
  const auto got = Kernels(c);
  if (!c.soft()) {
    EXPECT_EQ(c.index.Values(), (ReferenceForward<double>(c.BuiltIn(), c.Inputs()).index));
  }

  const std::vector<double> plain = PlainErrors<T>(spec);
  const double slope = LargestSlope(c);
  // exp(s - lse) errs by the rounding of s: of a large number, where K is small for all keys of a row.
  const bool compact = std::holds_alternative<Compact<SumType<T>>>(c.options.score);
  const double score = compact ? std::max(1.0, Largest(right[1].values)) : 1.0;
  constexpr double kEpsilon = std::numeric_limits<SumType<T>>::epsilon();
  constexpr double kFiner = kEpsilon / std::numeric_limits<float>::epsilon();  // 1 for float
  // In float64 the reference errs as well, as much as the formula written out does.
  constexpr double kFactor = std::is_same_v<T, double> ? 4 : 2;
  for (std::size_t n = 0; n < got.size(); ++n) {
    const char* name = got[n].name;
    if ((name == std::string("weights") && !spec.want_weights) ||
        (name == std::string("log_prob") && c.soft())) {
      continue;
    }
    ASSERT_EQ(got[n].values.size(), right[n].values.size()) << name;
    const double error = LargestError(got[n].values, right[n].values, got[n].rounding);
    // A gradient through the softmax is a difference, dp_ij - sum_j p_ij dp_ij, of numbers of the size of 1,
    // times the slope of the score.
    const bool difference = name[0] == 'd' && name != std::string("dv");
    const double size = std::max(Largest(right[n].values), difference ? slope : 0.0) *
                        (name == std::string("lse") ? 1.0 : score);
    const auto allowed = [&](double fair) { return kFactor * (fair * kFiner + kEpsilon * size); };
    if (error <= allowed(plain[n])) continue;
    // The formula may be lucky with these inputs, all the more where it gives only a few numbers: others are
    // asked as well.
    const int others = CountNonZero(right[n].values) < 16 ? 48 : 8;
    const double fair = std::max(plain[n], PlainErrorOfOthers<T>(spec, n, others));
    EXPECT_LE(error, allowed(fair)) << name << ", of values up to " << Largest(right[n].values);
  }
}

template void CheckAgainstReference<float>(const Spec&);
template void CheckAgainstReference<double>(const Spec&);
template void CheckAgainstReference<BFloat16>(const Spec&);
template void CheckAgainstReference<Float16>(const Spec&);

}  // namespace regard::engine
