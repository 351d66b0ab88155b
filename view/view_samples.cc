// Writes the documents that the page's tests look at: view_samples DIRECTORY
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "view/attention_view.h"

namespace {

using regard::view::AttentionDocument;
using regard::view::AttentionPanel;
using Strings = std::vector<std::string>;

Strings Words(const std::string& text) {
  std::istringstream stream(text);
  Strings words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Softmax of score(i, j) over each row.
AttentionPanel Panel(const std::string& title, Strings queries, Strings keys,
                     const std::function<double(std::size_t, std::size_t)>& score) {
  AttentionPanel panel{title, std::move(queries), std::move(keys), {}, {}};
  for (std::size_t i = 0; i < panel.queries.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < panel.keys.size(); ++j) sum += std::exp(score(i, j));
    for (std::size_t j = 0; j < panel.keys.size(); ++j) {
      panel.weights.push_back(static_cast<float>(std::exp(score(i, j)) / sum));
    }
  }
  return panel;
}

// Query i looks at key centers[i], `sharpness` times as far as it looks at the neighbours.
AttentionPanel Aligned(const std::string& title, const Strings& queries, const Strings& keys,
                       const std::vector<double>& centers, double sharpness) {
  return Panel(title, queries, keys, [&](std::size_t i, std::size_t j) {
    const double noise = 0.7 * std::sin(static_cast<double>(12 * i + 7 * j));
    return noise - sharpness * std::abs(static_cast<double>(j) - centers[i]);
  });
}

AttentionPanel Date(const std::string& title, double sharpness) {
  return Aligned(title, Words("2 0 2 7 - 0 3 - 0 3 </s>"), Words("the third of March 2 0 2 7 </s>"),
                 {4, 5, 6, 7, 3.4, 3, 3, 2, 1, 1, 8}, sharpness);
}

AttentionPanel Sentence(const std::string& title, double sharpness) {
  return Aligned(title, Words("L’ accord sur la zone économique européenne a été signé en août 1992 . </s>"),
                 Words("The agreement on the European Economic Area , as it is now known , was signed in "
                       "August 1992"),
                 {0, 1, 2, 3, 6, 5, 4, 13, 13.5, 14, 15, 16, 17, 12, 7}, sharpness);
}

AttentionDocument Many() {
  AttentionDocument document{"Dates held out of training", "normalised", "as written", {}};
  const Strings sources = {"the third of March 2 0 2 7", "Tue 3 Mar 2 7",      "0 3 / 0 3 / 2 0 2 7",
                           "le 1 4 juillet 1 7 8 9",     "July 4 , 1 7 7 6",   "2 1 . 0 7 . 1 9 6 9",
                           "premier janvier 2 0 0 0",    "9 November 1 9 8 9", "mercredi 2 9 février 2 0 1 2",
                           "the twelfth of May 1 9 1 2"};
  const Strings targets = {"2 0 2 7 - 0 3 - 0 3", "2 0 2 7 - 0 3 - 0 3", "2 0 2 7 - 0 3 - 0 3",
                           "1 7 8 9 - 0 7 - 1 4", "1 7 7 6 - 0 7 - 0 4", "1 9 6 9 - 0 7 - 2 1",
                           "2 0 0 0 - 0 1 - 0 1", "1 9 8 9 - 1 1 - 0 9", "2 0 1 2 - 0 2 - 2 9",
                           "1 9 1 2 - 0 5 - 1 2"};
  for (std::size_t n = 0; n < sources.size(); ++n) {
    const Strings keys = Words(sources[n]), queries = Words(targets[n]);
    std::vector<double> centers;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const auto last = static_cast<double>(keys.size() - 1);
      centers.push_back(i < 4 ? last - 3 + static_cast<double>(i)
                              : last * (9.0 - static_cast<double>(i)) / 9);
    }
    document.panels.push_back(
        Aligned(sources[n], queries, keys, centers, 0.6 + 0.25 * static_cast<double>(n)));
  }
  return document;
}

// Case 1 to 3: text that other viewers took for markup.
AttentionDocument Hostile() {
  const std::string script = "</script><script>window.hacked=1</script>";
  const Strings tokens = {"hello", "world", "entrar<!--#exec", "cmd", "\"ls", "-->"};
  const Strings more = {script,    "<img src=x onerror=window.hacked=2>",
                        "</s>",    "<pad>",
                        "&amp;",   "@@DATA@@",
                        "<!--",    "<script",
                        "a\u2028b"};
  return {script + "<!-- <script>",
          "<b>target</b>",
          "&lt;source&gt;",
          {Panel(script, tokens, tokens, [](auto i, auto j) { return i == j ? 2.0 : 0.0; }),
           Panel("<img src=x onerror=window.hacked=3>", more, more, [](auto i, auto j) { return i == j; })}};
}

// Case 7 and 10: cells outside the colour range; white space and bytes.
AttentionDocument Special() {
  AttentionPanel cells = Panel("not a number, and masked", Words("a b c d"), Words("a b c d"),
                               [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
  cells.masked.assign(16, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      cells.masked[4 * i + j] = 1;
      cells.weights[4 * i + j] = 1e9F;
    }
  }
  cells.weights[4] = std::numeric_limits<float>::quiet_NaN();
  const Strings tokens = {"the", " the", "\n", "\t", "", "\xF0", "\xE2\x80\x8B", "東京", "a\x1B[31m"};
  return {"Cells and tokens that are not ordinary",
          "query",
          "key",
          {cells, Panel("told apart", tokens, tokens, [](auto i, auto j) { return i == j ? 2.0 : 0.0; })}};
}

// Case 5: 3 queries over 12 keys, the causal mask aligned to the end.
AttentionDocument Causal() {
  AttentionPanel panel =
      Panel("three new tokens over a cache of twelve", {"q0", "q1", "q2"},
            {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11"},
            [](auto i, auto j) { return j <= i + 9 ? 0.3 * static_cast<double>(j) : -1e30; });
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 12; ++j) panel.masked.push_back(j > i + 9);
  }
  return {"Decoding", "query", "key", {panel}};
}

AttentionDocument Long() {
  Strings tokens;
  for (int i = 0; i < 64; ++i)
    tokens.push_back((i % 3 == 0 ? "internationalisation" : "token") + std::to_string(i));
  tokens[5] = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft";
  return {"Long tokens, many of them", "query", "key", {Panel("", tokens, tokens, [](auto i, auto j) {
            return 6 * std::cos(0.1 * (static_cast<double>(i) - static_cast<double>(j))) +
                   std::sin(static_cast<double>(3 * i + 5 * j));
          })}};
}

// Layers by heads: some look back by so many tokens, some at the first, some at all.
AttentionDocument Grid() {
  constexpr std::int64_t kLayers = 4, kHeads = 6, kTokens = 12;
  std::vector<float> weights;
  for (std::int64_t n = 0; n < kLayers * kHeads; ++n) {
    const AttentionPanel panel = Panel("", Strings(kTokens), Strings(kTokens), [n](auto i, auto j) {
      const auto back = static_cast<double>(i) - static_cast<double>(j);
      if (back < 0) return -1e30;
      return n % 3 == 0   ? -std::abs(back - static_cast<double>(n) / 6)
             : n % 3 == 1 ? (j == 0 ? 3.0 : 0.0)
                          : 0.1 * back;
    });
    weights.insert(weights.end(), panel.weights.begin(), panel.weights.end());
  }
  const std::array<std::int64_t, 4> shape = {kLayers, kHeads, kTokens, kTokens};
  const Strings words = Words("the quick brown fox jumps over the lazy dog and runs away");
  const Strings layers = {"layer 1", "layer 2", "layer 3", "layer 4"};
  const Strings heads = {"head 1", "head 2", "head 3", "head 4", "head 5", "head 6"};
  AttentionDocument document =
      regard::view::GridFromWeights("Every head of a model", weights, shape, {layers, heads, words, words});
  document.query_axis = "query", document.key_axis = "key";
  return document;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: view_samples DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path directory = arguments[1];
  std::filesystem::create_directories(directory);
  const std::vector<float> pair = {0.9F, 0.1F};
  const std::vector<std::pair<std::string, AttentionDocument>> samples = {
      {"date", {"the third of March 2027 → 2027-03-03", "normalised", "as written", {Date("", 2.2)}}},
      {"sentence", {"The agreement on the European Economic Area", "French", "English", {Sentence("", 1.4)}}},
      {"many", Many()},
      {"hostile", Hostile()},
      {"special", Special()},
      {"causal", Causal()},
      {"long", Long()},
      {"grid", Grid()},
      {"pair",
       {"Two tokens", "query", "key",
        regard::view::PanelsFromWeights("", pair, std::vector<std::int64_t>{1, 1, 1, 2}, {"query"},
                                        {"left", "right"})}},
  };
  for (const auto& [name, document] : samples) {
    regard::view::WritePage(document, directory / (name + ".html"));
    std::ofstream(directory / (name + ".svg")) << regard::view::SvgDocument(document);
  }
  return 0;
}
