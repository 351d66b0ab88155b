#include "nn/multi_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "nn/attend_op.h"
#include "nn/gru_kernels.h"
#include "nn/run_attend.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// Heads side by side in one tensor [B, L, (H + 2G) D], those of q, k and v in turn.
struct PackedHeads {
  std::int64_t queries = 0, keys = 0;  // H, G

  // Views [B, H, L, D], [B, G, L, D] and [B, G, L, D].
  std::array<Tensor, 3> Split(const Tensor& qkv) const {
    const std::int64_t all = queries + 2 * keys;
    const Tensor heads = qkv.view({qkv.size(0), qkv.size(1), all, qkv.size(2) / all}).transpose(1, 2);
    return {heads.narrow(1, 0, queries), heads.narrow(1, queries, keys),
            heads.narrow(1, queries + keys, keys)};
  }
  // [B, L, H D] -> [B, H, L, D]
  Tensor SplitOut(const Tensor& out) const {
    return out.view({out.size(0), out.size(1), queries, out.size(2) / queries}).transpose(1, 2);
  }
};

// Attention within qkv, without a copy of it or of the output, forward and backward.
class PackedAttend : public torch::autograd::Function<PackedAttend> {
 public:
  using Context = torch::autograd::AutogradContext;

  // The engine on the CPU, a softmax, and no gradient but that of qkv.
  static bool Can(const Tensor& qkv, const AttendOptions& o) {
    const bool type = qkv.scalar_type() == torch::kFloat || qkv.scalar_type() == torch::kDouble;
    const auto constant = [](const Tensor& t) { return !t.defined() || !t.requires_grad(); };
    return qkv.is_cpu() && type && qkv.is_contiguous() && o.normalizer == NormalizerKind::kSoftmax &&
           !o.return_weights && !o.return_lse && constant(o.bias) && constant(o.additive_weight) &&
           constant(o.precision);
  }

  // Queries beside keys that are stored elsewhere, without a gradient; [B, L, H D].
  static Tensor RunApart(const Tensor& q, const KeyValues& memory, const PackedHeads& heads,
                         const AttendOptions& options) {
    return Compute({q, memory.keys, memory.values, options, options.seed}, heads).first;
  }

  // [B, L, H D]
  static Tensor Run(const Tensor& qkv, const PackedHeads& heads, const AttendOptions& options) {
    if (qkv.requires_grad() && torch::GradMode::is_enabled()) return apply(qkv, heads, options);
    return Compute(CallOf(qkv, heads, options), heads).first;
  }

  static Tensor forward(Context* ctx, const Tensor& qkv, const PackedHeads& heads,
                        const AttendOptions& options) {
    AttendCall call = CallOf(qkv, heads, options);
    call.options.return_lse = true;
    const auto [out, lse] = Compute(call, heads);
    ctx->save_for_backward({qkv, out, lse});
    ctx->saved_data["call"] = c10::IValue::make_capsule(c10::make_intrusive<Saved>(heads, options));
    return out;
  }

  static torch::autograd::variable_list backward(Context* ctx, torch::autograd::variable_list d) {
    const auto tensors = ctx->get_saved_variables();
    const auto saved = c10::static_intrusive_pointer_cast<Saved>(ctx->saved_data["call"].toCapsule());
    const PackedHeads& heads = saved->heads;
    const AttendCall call = CallOf(tensors[0], heads, saved->options);
    Tensor dqkv = torch::empty_like(tensors[0]);
    AttendUpstream up;
    up.out = heads.SplitOut(tensors[1]);
    up.lse = tensors[2];
    up.dout = heads.SplitOut(d[0].contiguous());
    up.needs = {true, true, true};
    const auto [dq, dk, dv] = heads.Split(dqkv);
    EngineAttendBackward(call, up, {dq, dk, dv});
    return {dqkv, Tensor(), Tensor()};
  }

 private:
  struct Saved : torch::CustomClassHolder {
    Saved(const PackedHeads& heads_, AttendOptions options_) : heads(heads_), options(std::move(options_)) {}
    PackedHeads heads;
    AttendOptions options;
  };

  static AttendCall CallOf(const Tensor& qkv, const PackedHeads& heads, const AttendOptions& options) {
    const auto [q, k, v] = heads.Split(qkv);
    return {q, k, v, options, options.seed};
  }

  static std::pair<Tensor, Tensor> Compute(const AttendCall& call, const PackedHeads& heads) {
    CheckAttendCall(call);
    const Tensor& q = call.q;
    Tensor out = torch::empty({q.size(0), q.size(2), q.size(1) * q.size(3)}, q.options());
    AttendOutputs outputs = EngineAttend(call, heads.SplitOut(out));
    return {std::move(out), std::move(outputs[kLse])};
  }
};

[[noreturn]] void Fail(const char* name, std::int64_t value, const std::string& expected) {
  throw Error(std::string(name) + " is " + std::to_string(value) + "; expected " + expected);
}

void ExpectWidth(const char* name, const Tensor& x, std::int64_t width) {
  if (x.dim() == 3 && x.size(2) == width) return;
  throw Error(c10::str(name, " has shape ", x.sizes(), "; expected [batch, positions, ", width, "]"));
}

MultiHeadOptions Completed(MultiHeadOptions o) {
  if (o.num_heads < 1) Fail("num_heads", o.num_heads, "1 or more");
  if (o.embed_dim < 1 || o.embed_dim % o.num_heads != 0) {
    Fail("embed_dim", o.embed_dim, "a multiple of the " + std::to_string(o.num_heads) + " heads");
  }
  if (o.num_key_heads == 0) o.num_key_heads = o.num_heads;
  if (o.num_key_heads < 1 || o.num_heads % o.num_key_heads != 0) {
    Fail("num_key_heads", o.num_key_heads, "a divisor of the " + std::to_string(o.num_heads) + " heads");
  }
  for (std::int64_t* size : {&o.query_size, &o.key_size, &o.value_size}) {
    if (*size == 0) *size = o.embed_dim;
  }
  const std::int64_t least = std::min({o.query_size, o.key_size, o.value_size});
  if (least < 1) Fail("a size of queries, keys or values", least, "1 or more");
  if (!o.scores.empty() && static_cast<std::int64_t>(o.scores.size()) != o.num_heads) {
    Fail("the number of scores", static_cast<std::int64_t>(o.scores.size()),
         "0 or the " + std::to_string(o.num_heads) + " heads");
  }
  internal::CheckedDropout(o.dropout);
  return o;
}

// The options of heads [begin, begin + count) alone.
AttendOptions OfHeads(AttendOptions options, std::int64_t begin, std::int64_t count) {
  for (Tensor* t : {&options.bias, &options.keep, &options.blocks}) {
    if (t->defined() && t->dim() >= 3 && t->size(-3) > 1) *t = t->narrow(-3, begin, count);
  }
  if (options.alibi_slopes.defined()) options.alibi_slopes = options.alibi_slopes.narrow(0, begin, count);
  // The engine counts the heads of each call from 0; their draws differ all the same.
  options.seed = static_cast<std::int64_t>(DeriveSeed(options.seed, begin) >> 1);
  return options;
}

}  // namespace

void KeyValueCache::Extend(torch::IntArrayRef shape, const torch::TensorOptions& options) {
  const std::int64_t end = length_ + shape[2];
  if (keys_.defined() &&
      (shape[0] != keys_.size(0) || shape[1] != keys_.size(1) || shape[3] != keys_.size(3))) {
    throw Error(c10::str("keys of shape ", shape, " come after keys of shape ", keys_.sizes()));
  }
  if (!keys_.defined() || end > keys_.size(2)) {
    // Doubled, so that a sequence is copied a bounded number of times.
    const std::int64_t capacity = std::max<std::int64_t>(end, keys_.defined() ? 2 * keys_.size(2) : 16);
    for (Tensor* buffer : {&keys_, &values_}) {
      const Tensor old = std::exchange(
          *buffer, torch::empty({shape[0], shape[1], capacity, shape[3]}, options.requires_grad(false)));
      if (old.defined()) buffer->narrow(2, 0, length_).copy_(old.narrow(2, 0, length_));
    }
  }
  length_ = end;
}

KeyValues KeyValueCache::Append(const Tensor& keys, const Tensor& values) {
  torch::NoGradGuard no_grad;
  const std::int64_t begin = length_;
  Extend(keys.sizes(), keys.options());
  const auto rows = [&](const Tensor& buffer) {
    return torch::as_strided(buffer, keys.sizes(), buffer.strides(), begin * buffer.stride(2));
  };
  rows(keys_).copy_(keys);
  rows(values_).copy_(values);
  return All();
}

KeyValues KeyValueCache::All() const { return {keys_.narrow(2, 0, length_), values_.narrow(2, 0, length_)}; }

void KeyValueCache::Select(const Tensor& rows) {
  if (!keys_.defined()) return;
  keys_ = keys_.index_select(0, rows);
  values_ = values_.index_select(0, rows);
}

void KeyValueCache::Clear() {
  keys_ = values_ = Tensor();
  length_ = 0;
}

MultiHeadAttentionImpl::MultiHeadAttentionImpl(const MultiHeadOptions& options)
    : options_(Completed(options)), head_dim_(options_.embed_dim / options_.num_heads) {
  const MultiHeadOptions& o = options_;
  packed_ = o.query_size == o.key_size && o.key_size == o.value_size;
  const std::int64_t rows = Rows(kQuery) + Rows(kKey) + Rows(kValue);
  const auto weight = [&](const char* name, std::int64_t out, std::int64_t in) {
    return register_parameter(name, torch::nn::init::xavier_uniform_(torch::empty({out, in})));
  };
  if (packed_) {
    in_proj_weight = weight("in_proj_weight", rows, o.query_size);
  } else {
    q_proj_weight = weight("q_proj_weight", Rows(kQuery), o.query_size);
    k_proj_weight = weight("k_proj_weight", Rows(kKey), o.key_size);
    v_proj_weight = weight("v_proj_weight", Rows(kValue), o.value_size);
  }
  if (o.bias) in_proj_bias = register_parameter("in_proj_bias", torch::zeros({rows}));
  out_proj = register_module(
      "out_proj", torch::nn::Linear(torch::nn::LinearOptions(o.embed_dim, o.embed_dim).bias(o.bias)));
  if (o.bias) torch::nn::init::zeros_(out_proj->bias);
  const auto additive = std::count(o.scores.begin(), o.scores.end(), ScoreKind::kAdditive);
  if (additive > 0) {  // drawn as a linear layer's would be
    const double bound = 1 / std::sqrt(static_cast<double>(head_dim_));
    additive_weight =
        register_parameter("additive_weight", torch::empty({additive, head_dim_}).uniform_(-bound, bound));
  }
}

std::int64_t MultiHeadAttentionImpl::Rows(Part part) const {
  return head_dim_ * (part == kQuery ? options_.num_heads : options_.num_key_heads);
}

Tensor MultiHeadAttentionImpl::Project(const Tensor& x, Part part) const {
  const std::int64_t begin = part == kQuery ? 0 : Rows(kQuery) + (part == kValue ? Rows(kKey) : 0);
  const Tensor bias = in_proj_bias.defined() ? in_proj_bias.narrow(0, begin, Rows(part)) : Tensor();
  if (packed_) return torch::linear(x, in_proj_weight.narrow(0, begin, Rows(part)), bias);
  return torch::linear(x,
                       part == kQuery ? q_proj_weight
                       : part == kKey ? k_proj_weight
                                      : v_proj_weight,
                       bias);
}

// [B, L, heads D] -> [B, heads, L, D]
Tensor MultiHeadAttentionImpl::Heads(const Tensor& projected) const {
  return projected.unflatten(2, {projected.size(2) / head_dim_, head_dim_}).transpose(1, 2);
}

void MultiHeadAttentionImpl::ForTraining(AttendOptions* options) const {
  if (!is_training() || options_.dropout == 0) return;
  options->dropout = options_.dropout;
  if (options->seed == 0) options->seed = internal::DrawSeed();
}

AttendResult MultiHeadAttentionImpl::AttendHeads(const Tensor& queries, const KeyValues& memory,
                                                 const AttendOptions& options) const {
  const std::vector<ScoreKind>& scores = options_.scores;
  if (scores.empty()) return Attend(queries, memory.keys, memory.values, options);
  const std::int64_t heads = options_.num_heads, group = heads / options_.num_key_heads;
  std::vector<Tensor> out, weights;
  for (std::int64_t begin = 0, end = 0, additive = 0; begin < heads; begin = end) {
    while (end < heads && scores[end] == scores[begin]) ++end;
    AttendOptions own = OfHeads(options, begin, end - begin);
    own.score = scores[begin];
    if (own.score == ScoreKind::kAdditive) {
      own.additive_weight = additive_weight.narrow(0, additive, end - begin);
      additive += end - begin;
    }
    const auto keys_of = [&](const Tensor& x) {  // a run may begin or end within a group
      if (group == 1) return x.narrow(1, begin, end - begin);
      return x.index_select(1,
                            torch::arange(begin, end, x.options().dtype(torch::kLong)).floor_divide(group));
    };
    const AttendResult run =
        Attend(queries.narrow(1, begin, end - begin), keys_of(memory.keys), keys_of(memory.values), own);
    out.push_back(run.out);
    weights.push_back(run.weights);
  }
  AttendResult result;
  result.out = torch::cat(out, 1);
  if (options.return_weights) result.weights = torch::cat(weights, 1);
  return result;
}

Context MultiHeadAttentionImpl::SelfHeads(const Tensor& x, AttendOptions options, KeyValueCache* cache) {
  if (!packed_) throw Error("self-attention of a module with queries, keys and values of several sizes");
  ExpectWidth("x", x, options_.query_size);
  ForTraining(&options);
  const Tensor qkv = torch::linear(x, in_proj_weight, in_proj_bias);
  const PackedHeads heads{options_.num_heads, options_.num_key_heads};
  const bool direct = options_.scores.empty() && PackedAttend::Can(qkv, options);
  const auto guarded = [](const auto& run) {
    try {
      return Context{run(), Tensor()};
    } catch (const c10::Error& error) {
      throw Error(error.what_without_backtrace());
    }
  };
  if (cache == nullptr && direct) return guarded([&] { return PackedAttend::Run(qkv, heads, options); });
  const auto [q, k, v] = heads.Split(qkv);
  const KeyValues memory = cache == nullptr ? KeyValues{k, v} : cache->Append(k, v);
  if (direct && !torch::GradMode::is_enabled()) {
    return guarded([&, &q = q] { return PackedAttend::RunApart(q, memory, heads, options); });
  }
  const AttendResult result = AttendHeads(q, memory, options);
  return {result.out.transpose(1, 2).flatten(2), result.weights};
}

Context MultiHeadAttentionImpl::HeadsOf(const Tensor& queries, const KeyValues& memory,
                                        AttendOptions options) {
  ExpectWidth("queries", queries, options_.query_size);
  ForTraining(&options);
  const AttendResult result = AttendHeads(Heads(Project(queries, kQuery)), memory, options);
  return {result.out.transpose(1, 2).flatten(2), result.weights};
}

Context MultiHeadAttentionImpl::SelfAttend(const Tensor& x, const AttendOptions& options,
                                           KeyValueCache* cache) {
  const Context heads = SelfHeads(x, options, cache);
  return {out_proj(heads.context), heads.weights};
}

KeyValues MultiHeadAttentionImpl::ProjectKeys(const Tensor& keys, const Tensor& values) {
  ExpectWidth("keys", keys, options_.key_size);
  ExpectWidth("values", values, options_.value_size);
  return {Heads(Project(keys, kKey)), Heads(Project(values, kValue))};
}

Context MultiHeadAttentionImpl::AttendTo(const Tensor& queries, const KeyValues& memory,
                                         const AttendOptions& options) {
  const Context heads = HeadsOf(queries, memory, options);
  return {out_proj(heads.context), heads.weights};
}

Context MultiHeadAttentionImpl::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                        const AttendOptions& options) {
  if (packed_ && queries.is_same(keys) && keys.is_same(values)) return SelfAttend(queries, options);
  return AttendTo(queries, ProjectKeys(keys, values), options);
}

void MultiHeadAttentionImpl::CopyFrom(const torch::nn::MultiheadAttention& other) {
  torch::NoGradGuard no_grad;
  if (other->bias_k.defined() || other->bias_v.defined() || other->options.add_zero_attn()) {
    throw Error("a torch::nn::MultiheadAttention with add_bias_kv or add_zero_attn cannot be converted");
  }
  if (other->options.num_heads() != options_.num_heads) {
    throw Error(c10::str("num_heads is ", other->options.num_heads(), " in the module to convert; expected ",
                         options_.num_heads));
  }
  const auto theirs = other->named_parameters();
  const auto own = named_parameters();
  for (const auto& item : own) {
    const Tensor* found = theirs.find(item.key());
    if (found == nullptr || found->sizes() != item.value().sizes() || theirs.size() != own.size()) {
      throw Error(c10::str("weight ", item.key(), " of the module to convert is ",
                           found == nullptr ? std::string("missing") : c10::str(found->sizes()),
                           "; expected ", item.value().sizes(), " of ", own.size(), " weights"));
    }
  }
  for (auto& item : own) item.value().copy_(theirs[item.key()]);
}

void MultiHeadAttentionImpl::pretty_print(std::ostream& stream) const {
  const MultiHeadOptions& o = options_;
  stream << "regard::nn::MultiHeadAttention(embed_dim=" << o.embed_dim << ", num_heads=" << o.num_heads
         << ", num_key_heads=" << o.num_key_heads << ", query_size=" << o.query_size
         << ", key_size=" << o.key_size << ", value_size=" << o.value_size << ", bias=" << o.bias
         << ", dropout=" << o.dropout << ")";
}

}  // namespace regard::nn
