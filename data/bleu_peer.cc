// Scores the cases of bleu_peer_test.py: a JSON list on standard input, a JSON list on standard output.
#include <iostream>
#include <nlohmann/json.hpp>

#include "data/bleu.h"

int main() {
  namespace data = regard::data;
  nlohmann::json results = nlohmann::json::array();
  for (const nlohmann::json& item : nlohmann::json::parse(std::cin)) {
    data::BleuOptions options;
    options.tokenize = item.at("tokenize");
    options.lowercase = item.at("lowercase");
    options.smooth = item.at("smooth");
    options.effective_order = item.at("effective_order");
    options.max_order = item.at("max_order");
    const std::vector<std::string> hypotheses = item.at("hypotheses");
    const data::BleuScore score = data::CorpusBleu(
        hypotheses, item.at("references").get<std::vector<std::vector<std::string>>>(), options);
    std::vector<std::string> tokens;
    for (const std::string& line : hypotheses) tokens.push_back(data::BleuTokenize(line, options.tokenize));
    results.push_back({{"score", score.score},
                       {"precisions", score.precisions},
                       {"line", score.Line()},
                       {"signature", score.signature},
                       {"tokens", tokens}});
  }
  std::cout << results.dump();
}
