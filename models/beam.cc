#include "models/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"

namespace regard::models {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A token of some hypotheses, with a way back to the first.
struct Node {
  std::int64_t parent = -1;  // node before it
  std::int64_t token = 0;
  std::int64_t step = 0;
  std::int64_t row = 0;  // of that step's attention
};

// A row of the beam, or what has left it.
struct Path {
  double log_prob = kNever;  // kNever: an empty place
  std::int64_t node = -1;
};

struct Candidate {
  double log_prob;
  std::int64_t row, token;
};

struct Sentence {
  std::int64_t number = 0;  // in the order asked for
  std::vector<Path> beam;
  Path best;  // of those that ended
  double best_rank = kNever;
};

class Search {
 public:
  Search(BeamModel& model, std::int64_t sentences, std::int64_t max_length, const DecodeOptions& options)
      : model_(model), max_length_(max_length), options_(options), results_(sentences), active_(sentences) {
    for (std::int64_t i = 0; i < sentences; ++i) {
      active_[i].number = i;
      active_[i].beam.resize(options.beam);
      active_[i].beam[0].log_prob = 0;
    }
  }

  std::vector<Hypothesis> Run() {
    for (step_ = 0; step_ < max_length_ && !active_.empty(); ++step_) {
      const torch::Tensor scores = model_.Step(Tokens()).to(torch::kFloat32).contiguous();
      if (options_.attention) attention_.push_back(model_.Attention());
      std::vector<std::int64_t> parents(active_.size() * options_.beam);
      for (std::size_t i = 0; i < active_.size(); ++i) Advance(i, scores, parents);
      Leave(parents);
    }
    return std::move(results_);
  }

 private:
  double Rank(double log_prob, std::int64_t length) const {
    return log_prob / std::pow(static_cast<double>(length), options_.length_penalty);
  }

  torch::Tensor Tokens() const {
    std::vector<std::int64_t> tokens;
    for (const Sentence& sentence : active_) {
      for (const Path& path : sentence.beam) tokens.push_back(path.node < 0 ? kBos : nodes_[path.node].token);
    }
    return torch::tensor(tokens, torch::kInt64);
  }

  // The best continuations of sentence i, best first.
  std::vector<Candidate> Continuations(std::size_t i, const torch::Tensor& scores) const {
    std::vector<Candidate> best;
    const std::int64_t vocabulary = scores.size(1);
    for (std::int64_t b = 0; b < options_.beam; ++b) {
      const double so_far = active_[i].beam[b].log_prob;
      if (so_far == kNever) continue;
      const std::int64_t row = static_cast<std::int64_t>(i) * options_.beam + b;
      const float* next = scores.data_ptr<float>() + row * vocabulary;
      for (std::int64_t token = 0; token < vocabulary; ++token) {
        const Candidate c{so_far + next[token], row, token};
        const bool full = static_cast<std::int64_t>(best.size()) == options_.beam;
        // A NaN is never better
        if (full ? !(c.log_prob > best.back().log_prob) : !(c.log_prob > kNever)) continue;
        if (token == kPad || token == kBos) continue;
        if (full) best.pop_back();
        const auto place = std::find_if(best.begin(), best.end(),
                                        [&](const Candidate& other) { return c.log_prob > other.log_prob; });
        best.insert(place, c);
      }
    }
    return best;
  }

  // Moves sentence i on by one token; parents: the row that each of its new rows continues.
  void Advance(std::size_t i, const torch::Tensor& scores, std::vector<std::int64_t>& parents) {
    Sentence& sentence = active_[i];
    const auto before = sentence.beam;
    const std::int64_t first = static_cast<std::int64_t>(i) * options_.beam;
    const auto candidates = Continuations(i, scores);
    std::fill(parents.begin() + first, parents.begin() + first + options_.beam, first);
    std::int64_t place = 0;
    std::fill(sentence.beam.begin(), sentence.beam.end(), Path());
    for (const Candidate& c : candidates) {
      const Path path{c.log_prob, static_cast<std::int64_t>(nodes_.size())};
      nodes_.push_back({before[c.row - first].node, c.token, step_, c.row});
      if (c.token == kEos) {
        const double rank = Rank(c.log_prob, step_ + 1);
        if (rank > sentence.best_rank) {
          sentence.best = path;
          sentence.best_rank = rank;
        }
      } else {
        parents[first + place] = c.row;
        sentence.beam[place++] = path;
      }
    }
  }

  // Nothing in the beam can end better than what has ended. A path's log-probability only falls, so its rank
  // is bounded by that of the same log-probability at whichever length is divided by the most favourable
  // power.
  bool Decided(const Sentence& sentence) const {
    const double best = sentence.beam[0].log_prob;  // they are sorted
    if (best == kNever || step_ + 1 == max_length_) return true;
    const double bound = std::max(Rank(best, step_ + 2), Rank(best, max_length_));
    return sentence.best_rank >= bound;
  }

  Hypothesis Result(const Sentence& sentence) const {
    Hypothesis result;
    result.ended = sentence.best.node >= 0;
    const Path& path = result.ended ? sentence.best : sentence.beam[0];
    result.log_prob = path.log_prob;
    std::vector<torch::Tensor> weights;
    for (std::int64_t n = path.node; n >= 0; n = nodes_[n].parent) {
      const Node& node = nodes_[n];
      if (node.token != kEos) result.tokens.push_back(node.token);
      if (options_.attention && attention_[node.step].defined()) {
        weights.push_back(attention_[node.step][node.row].to(torch::kFloat32));
      }
    }
    std::reverse(result.tokens.begin(), result.tokens.end());
    std::reverse(weights.begin(), weights.end());
    if (!weights.empty()) result.attention = torch::stack(weights);
    return result;
  }

  // Takes the decided sentences out and tells the model how the rest goes on.
  void Leave(const std::vector<std::int64_t>& parents) {
    std::vector<std::int64_t> sentences, rows;
    std::vector<Sentence> rest;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (Decided(active_[i])) {
        results_[active_[i].number] = Result(active_[i]);
        continue;
      }
      sentences.push_back(static_cast<std::int64_t>(i));
      const auto first = parents.begin() + static_cast<std::int64_t>(i) * options_.beam;
      rows.insert(rows.end(), first, first + options_.beam);
      rest.push_back(std::move(active_[i]));
    }
    active_ = std::move(rest);
    if (!active_.empty()) {
      model_.Select(torch::tensor(sentences, torch::kInt64), torch::tensor(rows, torch::kInt64));
    }
  }

  BeamModel& model_;
  const std::int64_t max_length_;
  const DecodeOptions& options_;
  std::vector<Hypothesis> results_;
  std::vector<Sentence> active_;
  std::vector<Node> nodes_;
  std::vector<torch::Tensor> attention_;  // of each step
  std::int64_t step_ = 0;
};

}  // namespace

std::vector<Hypothesis> BeamSearch(BeamModel& model, std::int64_t sentences, std::int64_t max_length,
                                   const DecodeOptions& options) {
  if (options.beam < 1) throw Error("beam is " + std::to_string(options.beam) + ": expected 1 or more");
  if (max_length < 1) throw Error("max_length is " + std::to_string(max_length) + ": expected 1 or more");
  return Search(model, sentences, max_length, options).Run();
}

}  // namespace regard::models
