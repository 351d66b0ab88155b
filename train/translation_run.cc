#include "train/translation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::train {
namespace {

constexpr char kKind[] = "translation", kSource[] = "source", kTarget[] = "target";

bool IsBlank(const std::string& line) { return line.find_first_not_of(" \t\r\v\f") == std::string::npos; }

// Tokens that are bytes can make anything: a line stays one line, and UTF-8.
std::string AsLine(const std::string& text) {
  std::string line = data::ReplaceInvalidUtf8(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::int64_t Entry(const nlohmann::json& config, const char* name, const std::string& origin) {
  const auto found = config.find(name);
  if (found == config.end() || !found->is_number_integer()) {
    throw Error(fmt::format("{}: \"{}\" is missing or no whole number", origin, name));
  }
  return found->get<std::int64_t>();
}

}  // namespace

TranslationRun TranslationRun::Create(const std::string& path, const TranslationSetup& setup, bool force) {
  RunDirectory::CheckVacant(path, force);
  torch::manual_seed(setup.seed);
  std::shared_ptr<models::TranslationModel> model = models::MakeTranslationModel(setup.model);
  nlohmann::json config = {{"model", model->config()},
                           {"tokenizers",
                            {{kSource, data::TokenizerKindName(setup.source->kind())},
                             {kTarget, data::TokenizerKindName(setup.target->kind())}}},
                           {"max_source", setup.max_source},
                           {"max_target", setup.max_target},
                           {"training", setup.training}};
  const auto add_files = [&](const std::string& folder) {
    setup.source->Save(folder, kSource);
    setup.target->Save(folder, kTarget);
  };
  TranslationRun run(
      RunDirectory::Create(path, kKind, std::move(config), WeightsOf(*model), add_files, force));
  run.model_ = std::move(model);
  run.source_ = setup.source;
  run.target_ = setup.target;
  run.max_source_ = setup.max_source;
  run.max_target_ = setup.max_target;
  return run;
}

TranslationRun TranslationRun::Load(const std::string& path) {
  TranslationRun run(RunDirectory::Open(path, kKind, {"model", "training"}));
  const nlohmann::json& config = run.directory_.config();
  const std::string origin = run.directory_.File("config.json");
  run.max_source_ = Entry(config, "max_source", origin);
  run.max_target_ = Entry(config, "max_target", origin);
  run.source_ = data::Tokenizer::Load(run.directory_.path(), kSource);
  run.target_ = data::Tokenizer::Load(run.directory_.path(), kTarget);
  run.model_ = models::MakeTranslationModel(config["model"]);
  const auto check = [&](const char* side, const char* entry, std::int64_t size) {
    const std::int64_t expected = Entry(config["model"], entry, origin);
    if (size != expected) {
      throw Error(fmt::format("{}: the {} vocabulary has {} entries, the model's weights expect {}",
                              run.directory_.path(), side, size, expected));
    }
  };
  check(kSource, "source_vocab", run.source_->size());
  check(kTarget, "target_vocab", run.target_->size());
  run.directory_.LoadWeights(*run.model_);
  run.model_->eval();
  return run;
}

EncodedPairs TranslationRun::Encode(const std::vector<data::Pair>& pairs) const {
  return EncodePairs(pairs, *source_, *target_, max_source_, max_target_);
}

Translations TranslationRun::Translate(const std::vector<std::string>& lines,
                                       const TranslateOptions& options) {
  torch::NoGradGuard no_grad;
  Translations result;
  result.lines.resize(lines.size());
  TokenLists sources;
  std::vector<std::size_t> positions;  // of each source among the lines
  for (std::size_t i = 0; i < lines.size(); ++i) {
    result.lines[i].ended = true;
    if (IsBlank(lines[i])) continue;
    std::vector<std::int64_t> tokens;
    for (const data::Piece& piece : source_->Pieces(lines[i])) {
      tokens.push_back(piece.id);
      result.lines[i].source_pieces.push_back(piece.text);
    }
    tokens.push_back(models::kEos);
    sources.push_back(std::move(tokens));
    positions.push_back(i);
  }
  if (max_source_ > 0) result.truncated = data::Truncate(sources, max_source_);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    lengths.push_back(static_cast<std::int64_t>(sources[i].size()));
    std::vector<std::string>& pieces = result.lines[positions[i]].source_pieces;
    pieces.resize(sources[i].size() - 1);
    pieces.push_back(source_->PieceText(models::kEos));
  }

  std::size_t done = 0;
  for (const auto& batch : SortedBatches(lengths, std::max<std::int64_t>(options.batch_size, 1))) {
    const SourceBatch input = MakeSourceBatch(sources, batch);
    std::vector<models::Hypothesis> found = model_->Translate(input.source, input.lengths, options.decode);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Translation& line = result.lines[positions[static_cast<std::size_t>(batch[k])]];
      line.text = AsLine(target_->Decode(found[k].tokens));
      line.ended = found[k].ended;
      line.log_prob = found[k].log_prob;
      line.target_pieces = target_->PieceTexts(found[k].tokens);
      if (line.ended) line.target_pieces.push_back(target_->PieceText(models::kEos));
      if (found[k].attention.defined()) {
        line.attention =
            found[k].attention.slice(-1, 0, static_cast<std::int64_t>(line.source_pieces.size()));
      }
      line.tokens = std::move(found[k].tokens);
    }
    done += batch.size();
    if (options.progress != nullptr) {
      options.progress->Update(static_cast<double>(done) / static_cast<double>(sources.size()),
                               [&] { return fmt::format("{}/{} sentences", done, sources.size()); });
    }
  }
  if (options.progress != nullptr) options.progress->Finish();
  return result;
}

}  // namespace regard::train
