#include "models/bahdanau.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "models/beam.h"
#include "models/config.h"
#include "models/evaluation_mode.h"
#include "models/smoothed_nll.h"
#include "nn/dropout.h"
#include "nn/gru_kernels.h"
#include "nn/gru_product.h"

namespace regard::models {
namespace {

using torch::Tensor;

// What a step's seed is derived for.
enum Use : std::uint64_t { kSourceEmbedding = 1, kEncoder, kTargetEmbedding, kDecoder, kInnerReadout };

// A linear layer that, without gradients, gives a row the same bits whatever is beside it.
Tensor Apply(torch::nn::Linear& linear, const Tensor& x) {
  if (torch::GradMode::is_enabled()) return linear->forward(x);
  return nn::PackedLinear(linear->weight, linear->bias)(x);
}

std::vector<std::int64_t> AsGiven(std::int64_t n) {
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void ExpectBatch(const std::string& name, const Tensor& tokens, const Tensor& lengths) {
  if (tokens.dim() == 2 && lengths.dim() == 1 && lengths.size(0) == tokens.size(0)) return;
  throw Error(name + " is " + c10::str(tokens.sizes()) + " with lengths " + c10::str(lengths.sizes()) +
              ": expected [sentences, steps] and [sentences]");
}

}  // namespace

BahdanauConfig BahdanauConfig::Read(const nlohmann::json& config) {
  const ConfigReader read(config);
  read.Choice("model", {"bahdanau"});
  BahdanauConfig c;
  c.source_vocab = read.Integer("source_vocab", kUnk + 1);
  c.target_vocab = read.Integer("target_vocab", kUnk + 1);
  c.embed_dim = read.Integer("embed_dim", 1);
  c.hidden_dim = read.Integer("hidden_dim", 1);
  c.num_layers = read.Integer("num_layers", 1);
  c.dropout = read.Probability("dropout", 0.0);
  c.attention_dropout = read.Probability("attention_dropout", c.dropout);
  c.embedding_dropout = read.Probability("embedding_dropout", 0.0);
  c.readout_dropout = read.Probability("readout_dropout", 0.0);
  c.bidirectional = read.Boolean("bidirectional", false);
  c.deep = read.Choice("readout", {"state", "deep"}, "state") == "deep";
  c.tied = read.Boolean("tied", false);
  c.max_source = read.Integer("max_source", 1);
  c.max_target = read.Integer("max_target", 1);
  if (c.tied && !c.deep) {
    throw Error("model configuration: \"tied\" is true with \"readout\" \"state\": expected \"deep\"");
  }
  return c;
}

Bahdanau::Bahdanau(const nlohmann::json& config) : config_(BahdanauConfig::Read(config)) {
  const auto& c = config_;
  const std::int64_t context = ContextSize(), h = c.hidden_dim, width = c.deep ? c.embed_dim : h;
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
    auto module = register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias)));
    torch::nn::init::xavier_uniform_(module->weight);
    return module;
  };
  source_embedding_ = register_module("source_embedding", torch::nn::Embedding(c.source_vocab, c.embed_dim));
  target_embedding_ = register_module("target_embedding", torch::nn::Embedding(c.target_vocab, c.embed_dim));
  encoder_ = register_module("encoder", nn::Gru(c.embed_dim, h, c.num_layers, c.bidirectional, c.dropout));
  decoder_ = register_module("decoder", nn::Gru(context + c.embed_dim, h, c.num_layers, false, c.dropout));
  for (auto* gru : {&encoder_, &decoder_}) {
    for (auto& p : (*gru)->named_parameters()) {
      if (p.value().dim() == 2) torch::nn::init::xavier_uniform_(p.value());
    }
  }
  query_ = linear("query", h, h, false);
  key_ = linear("key", context, h, false);
  score_ = linear("score", h, 1, false);
  if (c.bidirectional) bridge_ = linear("bridge", 2 * h, h, true);
  if (c.deep) readout_ = linear("readout", h + context + c.embed_dim, c.embed_dim, true);
  if (c.tied) {
    // Logits of size 1 at the start
    torch::nn::init::normal_(target_embedding_->weight, 0, 1 / std::sqrt(static_cast<double>(c.embed_dim)));
  } else {
    output_weight_ = register_parameter("output_weight", torch::empty({c.target_vocab, width}));
    torch::nn::init::xavier_uniform_(output_weight_);
  }
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  output_bias_ = register_parameter("output_bias", torch::empty({c.target_vocab}).uniform_(-bound, bound));
}

nlohmann::json Bahdanau::config() const {
  const auto& c = config_;
  return {{"model", "bahdanau"},
          {"source_vocab", c.source_vocab},
          {"target_vocab", c.target_vocab},
          {"embed_dim", c.embed_dim},
          {"hidden_dim", c.hidden_dim},
          {"num_layers", c.num_layers},
          {"dropout", c.dropout},
          {"attention_dropout", c.attention_dropout},
          {"embedding_dropout", c.embedding_dropout},
          {"readout_dropout", c.readout_dropout},
          {"bidirectional", c.bidirectional},
          {"readout", c.deep ? "deep" : "state"},
          {"tied", c.tied},
          {"max_source", c.max_source},
          {"max_target", c.max_target}};
}

Tensor Bahdanau::Drop(const Tensor& x, double probability, std::uint64_t seed) const {
  return is_training() ? nn::Dropout(x, probability, seed) : x;
}

nn::DecoderWeights Bahdanau::DecoderWeights() const {
  return {query_->weight, score_->weight.squeeze(0), decoder_->weights()};
}

Bahdanau::Encoded Bahdanau::Encode(const Tensor& source, const Tensor& lengths,
                                   const std::vector<std::int64_t>& order, std::uint64_t seed) {
  const auto packing = nn::Pack(lengths, source.size(1));
  const Tensor embedded = Drop(source_embedding_->forward(nn::PackRows(source, packing)),
                               config_.embedding_dropout, nn::DeriveSeed(seed, kSourceEmbedding));
  const auto encoded = encoder_->forward(embedded, packing, {}, nn::DeriveSeed(seed, kEncoder));
  Encoded result;
  result.keys = nn::UnpackRows(Apply(key_, encoded.output), packing, order);
  result.values = nn::UnpackRows(encoded.output, packing, order);
  result.lengths = lengths.index_select(0, torch::tensor(order, torch::kInt64));
  result.state = nn::ReorderRows(encoded.state, packing, order);
  if (config_.bidirectional) {
    // [layers 2, N, H] -> [layers, N, 2H]
    const Tensor both = result.state.unflatten(0, {config_.num_layers, 2}).transpose(1, 2).flatten(2);
    result.state = Apply(bridge_, both.flatten(0, 1)).tanh().unflatten(0, {config_.num_layers, both.size(1)});
  }
  return result;
}

Tensor Bahdanau::Logits(const Tensor& states, const Tensor& contexts, const Tensor& embeddings,
                        std::uint64_t seed) {
  Tensor x = states;
  if (config_.deep) x = readout_->forward(torch::cat({states, contexts, embeddings}, 1)).tanh();
  x = Drop(x, config_.readout_dropout, seed);
  return torch::linear(x, config_.tied ? target_embedding_->weight : output_weight_, output_bias_);
}

LossSum Bahdanau::Loss(const PairBatch& batch, double label_smoothing, std::uint64_t seed) {
  ExpectBatch("source", batch.source, batch.source_lengths);
  ExpectBatch("target", batch.target, batch.target_lengths);
  const std::int64_t steps = batch.target.size(1) - 1;
  const auto packing = nn::Pack(batch.target_lengths, steps);
  const Encoded source = Encode(batch.source, batch.source_lengths, packing.order, seed);
  const Tensor embedded =
      Drop(target_embedding_->forward(nn::PackRows(batch.target.slice(1, 0, steps), packing)),
           config_.embedding_dropout, nn::DeriveSeed(seed, kTargetEmbedding));
  nn::DecoderOptions options;
  if (is_training()) {
    options.dropout = config_.dropout;
    options.attention_dropout = config_.attention_dropout;
    options.seed = nn::DeriveSeed(seed, kDecoder);
  }
  const auto decoded =
      nn::DecodeSequence({embedded, source.keys, source.values, source.lengths, source.state},
                         DecoderWeights(), packing, options);
  const Tensor logits =
      Logits(decoded.states, decoded.contexts, embedded, nn::DeriveSeed(seed, kInnerReadout));
  const auto [sum, nats] =
      SmoothedNll(logits, nn::PackRows(batch.target.slice(1, 1), packing), label_smoothing);
  return {sum, nats, packing.total};
}

// The decoder as a beam search sees it.
class BahdanauBeam : public BeamModel {
 public:
  BahdanauBeam(const Bahdanau& model, Bahdanau::Encoded source, std::int64_t beam, bool attention)
      : model_(model),
        source_(std::move(source)),
        beam_(beam),
        keep_attention_(attention),
        stepper_(model.DecoderWeights(), model.ContextSize()),
        output_(model.config_.tied ? model.target_embedding_->weight : model.output_weight_,
                model.output_bias_) {
    if (model.config_.deep) {
      readout_ = std::make_unique<nn::PackedLinear>(model.readout_->weight, model.readout_->bias);
    }
    state_ = source_.state.repeat_interleave(beam, 1).contiguous();
  }

  Tensor Step(const Tensor& tokens) override {
    const Tensor embedded = model_.target_embedding_->weight.index_select(0, tokens);
    const auto out = stepper_.Step({embedded, source_.keys, source_.values, source_.lengths, state_}, beam_,
                                   keep_attention_);
    attention_ = out.attention;
    Tensor x = out.states;
    if (readout_) x = (*readout_)(torch::cat({out.states, out.contexts, embedded}, 1)).tanh();
    return torch::log_softmax(output_(x), 1);
  }

  Tensor Attention() override { return attention_; }

  void Select(const Tensor& sentences, const Tensor& rows) override {
    if (sentences.size(0) < source_.keys.size(0)) {
      source_.keys = source_.keys.index_select(0, sentences);
      source_.values = source_.values.index_select(0, sentences);
      source_.lengths = source_.lengths.index_select(0, sentences);
    }
    state_ = state_.index_select(1, rows);
  }

 private:
  const Bahdanau& model_;
  Bahdanau::Encoded source_;
  std::int64_t beam_;
  bool keep_attention_;
  nn::DecoderStepper stepper_;
  nn::PackedLinear output_;
  std::unique_ptr<nn::PackedLinear> readout_;
  Tensor state_, attention_;
};

std::vector<Hypothesis> Bahdanau::Translate(const Tensor& source, const Tensor& lengths,
                                            const DecodeOptions& options) {
  ExpectBatch("source", source, lengths);
  if (options.beam < 1) throw Error("beam is " + std::to_string(options.beam) + ": expected 1 or more");
  torch::NoGradGuard guard;
  const EvaluationMode mode(*this);
  BahdanauBeam beam(*this, Encode(source, lengths, AsGiven(source.size(0)), 0), options.beam,
                    options.attention);
  const std::int64_t limit = options.max_length > 0 ? options.max_length : config_.max_target;
  auto results = BeamSearch(beam, source.size(0), limit, options);
  return results;
}

}  // namespace regard::models
