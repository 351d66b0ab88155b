#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace regard::train {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A run whose every update has to be left out will not recover.
constexpr std::int64_t kMostSkipped = 100;

// splitmix64 (Steele, Lea and Flood, 2014) of the three numbers in turn: the seed of one batch of one step.
std::uint64_t BatchSeed(std::uint64_t seed, std::int64_t step, std::int64_t part) {
  const auto mix = [](std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  };
  return mix(mix(mix(seed) + static_cast<std::uint64_t>(step)) + static_cast<std::uint64_t>(part));
}

// While it lives, operations of this thread stay on it. (Within a parallel region those of ATen do anyway,
// but MKL still divides its work among as many as before, one after the other.)
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

std::string Limit(std::int64_t limit) { return limit > 0 ? fmt::format("/{}", limit) : std::string(); }

}  // namespace

Trainer::Trainer(TrainingTask& task, const TrainOptions& options, RunDirectory* run, Progress* progress)
    : task_(task), options_(options), run_(run), progress_(progress), adam_(task.module(), options.adam) {
  if (options_.epochs <= 0 && options_.max_steps <= 0 && options_.max_minutes <= 0 &&
      options_.patience <= 0) {
    throw UsageError("training needs an end: a limit of epochs, steps or minutes, or patience");
  }
  if (options_.schedule.kind == Schedule::Kind::kCosine && options_.epochs <= 0 && options_.max_steps <= 0) {
    throw UsageError("the cosine schedule needs a number of epochs or steps to end at");
  }
  if (options_.accumulation < 1) {
    throw UsageError(fmt::format("accumulation is {}, expected at least 1", options_.accumulation));
  }
  if (options_.shares < 1) {
    throw UsageError(fmt::format("shares is {}, expected at least 1", options_.shares));
  }
}

std::int64_t Trainer::TotalSteps() const {
  const std::int64_t by_epochs = options_.epochs > 0 ? options_.epochs * state_.steps_per_epoch : 0;
  if (by_epochs == 0 || options_.max_steps == 0) return std::max(by_epochs, options_.max_steps);
  return std::min(by_epochs, options_.max_steps);
}

StopReason Trainer::Reason() const {
  if (options_.max_steps > 0 && state_.step >= options_.max_steps) return StopReason::kSteps;
  if (options_.epochs > 0 && state_.epoch >= options_.epochs) return StopReason::kEpochs;
  if (options_.max_minutes > 0 && state_.seconds >= options_.max_minutes * 60) return StopReason::kMinutes;
  if (options_.patience > 0 && state_.stale >= options_.patience) return StopReason::kPatience;
  return StopReason::kNone;
}

bool Trainer::ValidationDue(StopReason reason) const {
  if (state_.step == 0 || state_.validated_step == state_.step) return false;
  if (reason != StopReason::kNone) return true;
  return options_.validate_every > 0 ? state_.step % options_.validate_every == 0 : state_.batch == 0;
}

void Trainer::StartEpoch() {
  batches_ = task_.StartEpoch(state_.epoch, options_.seed);
  if (batches_ <= 0) throw Error("there is nothing to train on: the task has no batch");
  if (state_.steps_per_epoch == 0) {
    state_.steps_per_epoch = (batches_ + options_.accumulation - 1) / options_.accumulation;
  }
  state_.batches = batches_;
}

void Trainer::Resume() {
  const Checkpoint checkpoint = run_->LoadCheckpoint();
  const std::string origin = run_->File("optimizer.pt");
  try {
    state_ = checkpoint.state.get<State>();
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("{}: the training state is incomplete ({})", origin, e.what()));
  }
  CopyWeights(checkpoint.weights, task_.module(), origin);
  try {
    adam_.Load(checkpoint.optimizer);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", origin, e.what()));
  }
  const std::int64_t expected = state_.batches;
  StartEpoch();
  if (batches_ != expected) {
    throw Error(
        fmt::format("{} was training on {} batches an epoch, the data now gives {}: resume with the data and "
                    "the batch size of the run",
                    run_->path(), expected, batches_));
  }
  run_->TruncateMetrics(state_.step);
  saved_step_ = state_.step;
}

TrainResult Trainer::Run(const std::function<bool()>& interrupted) {
  task_.module().train();
  if (batches_ < 0) StartEpoch();
  if (run_ != nullptr && saved_step_ < 0) {
    run_->TruncateMetrics(0);
    Save();  // finds out now whether the directory can be written
  }
  StopReason reason;
  Clock::time_point saved = Clock::now();
  for (;;) {
    reason = Reason();
    if (ValidationDue(reason)) {
      Validate(interrupted);
      if (state_.validated_step != state_.step) {
        reason = StopReason::kInterrupted;
        break;
      }
      reason = Reason();
    }
    if (reason != StopReason::kNone) break;
    if (interrupted()) {
      reason = StopReason::kInterrupted;
      break;
    }
    if (run_ != nullptr && saved_step_ != state_.step && SecondsSince(saved) >= options_.checkpoint_seconds) {
      Save();
      saved = Clock::now();
    }
    Step();
  }
  if (progress_ != nullptr) progress_->Finish();
  if (run_ != nullptr) Save();
  if (reason != StopReason::kInterrupted && state_.best_step >= 0) {
    if (!best_weights_.empty()) {
      CopyWeights(best_weights_, task_.module(), "best weights");
    } else if (run_ != nullptr) {
      run_->LoadWeights(task_.module());
    }
  }

  TrainResult result;
  result.reason = reason;
  result.steps = state_.step;
  result.epochs = state_.epoch + (state_.batch > 0 ? 1 : 0);
  result.tokens = state_.tokens;
  result.seconds = state_.seconds;
  result.step_seconds = state_.step_seconds;
  result.validation = state_.validation;
  result.best_step = state_.best_step;
  result.best = state_.best;
  result.skipped = state_.skipped;
  return result;
}

// Adds the gradients of the next `batches` batches; returns their nats.
double Trainer::Accumulate(std::int64_t batches, std::int64_t* tokens) {
  double nats = 0;
  for (std::int64_t part = 0; part < batches; ++part) {
    const std::uint64_t seed = BatchSeed(options_.seed, state_.step, part);
    torch::manual_seed(seed);
    const bool whole = options_.shares == 1;
    const LossSum loss =
        whole ? task_.Loss(state_.batch + part, {}, seed) : AddInShares(state_.batch + part, seed);
    const double value = loss.nats.item<double>();
    if (!std::isfinite(value)) {
      throw Error(fmt::format(
          "the loss is {} at step {} (epoch {}): try a smaller learning rate; {}", value, state_.step + 1,
          state_.epoch + 1,
          run_ == nullptr ? std::string("nothing was saved")
                          : fmt::format("{} keeps the checkpoint of step {}", run_->path(), saved_step_)));
    }
    if (whole) loss.sum.backward();
    nats += value;
    *tokens += loss.tokens;
  }
  return nats;
}

// Adds the gradients of a batch; `sum` of the result has none.
LossSum Trainer::AddInShares(std::int64_t batch, std::uint64_t seed) {
  std::vector<torch::Tensor> parameters;
  for (torch::Tensor& parameter : task_.module().parameters()) {
    if (parameter.requires_grad()) parameters.push_back(parameter);
  }
  const auto count = static_cast<std::size_t>(options_.shares);
  std::vector<LossSum> losses(count);
  std::vector<torch::autograd::variable_list> gradients(count);
  at::parallel_for(0, options_.shares, 1, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one;
    for (std::int64_t n = begin; n < end; ++n) {
      LossSum& loss = losses[static_cast<std::size_t>(n)];
      loss = task_.Loss(batch, {n, options_.shares}, BatchSeed(seed, n, 0));
      if (loss.tokens == 0) continue;
      gradients[static_cast<std::size_t>(n)] =
          torch::autograd::grad({loss.sum}, parameters, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                /*allow_unused=*/true);
    }
  });
  LossSum all{torch::Tensor(), torch::zeros({}, torch::kDouble), 0};
  for (std::size_t n = 0; n < count; ++n) {
    if (losses[n].tokens == 0) continue;
    all.nats += losses[n].nats;
    all.tokens += losses[n].tokens;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const torch::Tensor& gradient = gradients[n][i];
      if (!gradient.defined()) continue;
      torch::Tensor& sum = parameters[i].mutable_grad();
      sum = sum.defined() ? sum + gradient : gradient.contiguous();
    }
  }
  return all;
}

void Trainer::Step() {
  const Clock::time_point start = Clock::now();
  if (batches_ < 0) StartEpoch();
  const std::int64_t batches = std::min(options_.accumulation, batches_ - state_.batch);
  std::int64_t tokens = 0;
  adam_.ZeroGrad();
  const double nats = Accumulate(batches, &tokens);
  const double rate = options_.schedule.At(state_.step, TotalSteps());
  const StepReport report =
      adam_.Step(rate, static_cast<double>(std::max<std::int64_t>(tokens, 1)), options_.clip);
  if (report.applied) {
    state_.skipped_in_a_row = 0;
  } else {
    ++state_.skipped;
    ++state_.skipped_in_a_row;
    if (options_.non_finite == NonFinite::kStop || state_.skipped_in_a_row >= kMostSkipped) {
      throw Error(fmt::format("a gradient is not finite at step {} (epoch {}): try a smaller learning rate",
                              state_.step + 1, state_.epoch + 1));
    }
  }

  ++state_.step;
  state_.batch += batches;
  if (state_.batch >= batches_) {
    ++state_.epoch;
    state_.batch = 0;
    // The last epoch's successor is arranged too: a resumed run with a later limit goes on there.
    StartEpoch();
  }
  LogStep(rate, report.grad_norm, nats, tokens, SecondsSince(start));
}

void Trainer::LogStep(double rate, double grad_norm, double nats, std::int64_t tokens, double seconds) {
  state_.tokens += tokens;
  state_.seconds += seconds;
  state_.step_seconds += seconds;
  state_.log_nats += nats;
  state_.log_tokens += tokens;
  state_.log_seconds += seconds;
  if (state_.step % std::max<std::int64_t>(options_.log_every, 1) == 0 || state_.step == 1) {
    const double count = static_cast<double>(std::max<std::int64_t>(state_.log_tokens, 1));
    shown_loss_ = state_.log_nats / count;
    shown_speed_ = state_.log_seconds > 0 ? count / state_.log_seconds : 0;
    if (run_ != nullptr) {
      nlohmann::ordered_json line = {{"step", state_.step},
                                     {"epoch", state_.epoch + (state_.batch > 0 ? 1 : 0)},
                                     {"loss", shown_loss_},
                                     {"lr", rate},
                                     {"grad_norm", grad_norm},
                                     {"tokens", state_.tokens},
                                     {"tokens_per_second", shown_speed_},
                                     {"seconds", state_.seconds}};
      if (state_.skipped > 0) line["skipped"] = state_.skipped;
      run_->AppendMetrics(line);
    }
    state_.log_nats = state_.log_seconds = 0;
    state_.log_tokens = 0;
  }
  ShowProgress();
}

void Trainer::ShowProgress() {
  if (progress_ == nullptr) return;
  const std::int64_t total = TotalSteps();
  double done = total > 0 ? static_cast<double>(state_.step) / static_cast<double>(total) : -1;
  if (options_.max_minutes > 0) done = std::max(done, state_.seconds / (options_.max_minutes * 60));
  progress_->Update(done, [&] {
    std::string text =
        fmt::format("epoch {}{}  step {}{}  loss {:.4f}", state_.epoch + (state_.batch > 0 ? 1 : 0),
                    Limit(options_.epochs), state_.step, Limit(total), shown_loss_);
    const auto found = state_.validation.find(options_.best);
    if (found != state_.validation.end()) {
      text += fmt::format("  validation {:.4f} (best {:.4f})", found->second, state_.best);
    }
    return text + fmt::format("  {:.0f} tokens/s", shown_speed_);
  });
}

void Trainer::Validate(const std::function<bool()>& stop) {
  const Clock::time_point start = Clock::now();
  Measures measures;
  {
    torch::NoGradGuard no_grad;
    task_.module().eval();
    measures = task_.Validate(stop);
    task_.module().train();
  }
  const bool nothing = measures.empty();
  if (nothing && stop()) return;
  state_.validated_step = state_.step;
  state_.seconds += SecondsSince(start);
  if (nothing) return;
  const auto found = measures.find(options_.best);
  if (found == measures.end()) {
    std::string known;
    for (const auto& [name, value] : measures) known += (known.empty() ? "" : ", ") + name;
    throw UsageError(
        fmt::format("unknown measure \"{}\" to keep the best by: expected one of {}", options_.best, known));
  }
  const double value = found->second;
  const bool better =
      std::isfinite(value) &&
      (state_.best_step < 0 || (options_.maximize ? value > state_.best : value < state_.best));
  state_.validation = measures;
  if (better) {
    state_.best = value;
    state_.best_step = state_.step;
    state_.stale = 0;
    best_weights_.clear();
    for (const auto& [name, tensor] : WeightsOf(task_.module())) {
      best_weights_.emplace_back(name, tensor.detach().clone());
    }
    best_unsaved_ = true;
  } else {
    ++state_.stale;
  }
  if (run_ != nullptr) {
    run_->AppendMetrics(nlohmann::ordered_json{{"step", state_.step},
                                               {"epoch", state_.epoch + (state_.batch > 0 ? 1 : 0)},
                                               {"validation", measures},
                                               {"best", better},
                                               {"seconds", state_.seconds}});
  }
  ShowProgress();
}

void Trainer::Save() {
  const NamedTensors weights = WeightsOf(task_.module());
  // The weights go first: should the checkpoint not follow, the resumed training makes the same weights
  // again.
  if (best_unsaved_) {
    run_->SaveWeights(best_weights_);
    best_unsaved_ = false;
  } else if (state_.best_step < 0) {
    run_->SaveWeights(weights);
  }
  run_->SaveCheckpoint({nlohmann::json(state_), weights, adam_.State()});
  saved_step_ = state_.step;
}

}  // namespace regard::train
