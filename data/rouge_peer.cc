// Scores the cases of rouge_peer_test.py: {"words", "cases"} on standard input, {"stems", "scores"} on
// standard output.
#include <iostream>
#include <nlohmann/json.hpp>

#include "data/porter.h"
#include "data/rouge.h"

namespace data = regard::data;

namespace {

nlohmann::json Json(const data::Rouge& rouge) {
  const auto triple = [](const data::RougeScore& score) {
    return nlohmann::json{score.precision, score.recall, score.f};
  };
  return {
      {"rouge1", triple(rouge.rouge1)}, {"rouge2", triple(rouge.rouge2)}, {"rougeL", triple(rouge.rougel)}};
}

}  // namespace

int main() {
  const nlohmann::json input = nlohmann::json::parse(std::cin);
  nlohmann::json stems = nlohmann::json::array(), scores = nlohmann::json::array();
  for (const nlohmann::json& word : input.at("words")) stems.push_back(data::PorterStem(word));
  for (const nlohmann::json& item : input.at("cases")) {
    const std::vector<std::string> hypotheses = item.at("hypotheses");
    const std::vector<std::vector<std::string>> references = item.at("references");
    scores.push_back(Json(data::CorpusRouge(hypotheses, references, {.stem = item.at("stem")})));
  }
  std::cout << nlohmann::json{{"stems", stems}, {"scores", scores}}.dump();
}
