#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "view/attention_view.h"
#include "view/color.h"
#include "view/markup.h"
#include "view/token_text.h"

namespace regard::view {

// view/page, built: see CMakeLists.txt.
extern const unsigned char kPageTemplate[];
extern const std::size_t kPageTemplateSize;

namespace {

using nlohmann::json;

std::string Base64(const std::vector<std::uint8_t>& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// float32, little endian
std::string WeightsText(const std::vector<float>& weights) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(weights.size() * 4);
  for (const float weight : weights) {
    const auto bits = std::bit_cast<std::uint32_t>(weight);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  return Base64(bytes);
}

// One bit a cell, the first in the lowest bit of the first byte
std::string MaskText(const std::vector<std::uint8_t>& masked) {
  std::vector<std::uint8_t> bytes((masked.size() + 7) / 8);
  for (std::size_t i = 0; i < masked.size(); ++i) {
    if (masked[i] != 0) bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 1U << (i % 8));
  }
  return Base64(bytes);
}

// A string where the token is shown as it is; else its verbatim text and the runs to show.
json TokenJson(const std::string& token) {
  const std::vector<TextRun> runs = ShownToken(token);
  if (runs.size() == 1 && !runs[0].symbol) return runs[0].text;
  json shown = json::array();
  for (const TextRun& run : runs) shown.push_back({run.text, run.symbol ? 1 : 0});
  return {{"verbatim", ValidUtf8(token)}, {"runs", shown}};
}

json TokensJson(const std::vector<std::string>& tokens) {
  json list = json::array();
  for (const std::string& token : tokens) list.push_back(TokenJson(token));
  return list;
}

json PanelJson(const AttentionPanel& panel) {
  json value = {{"title", ValidUtf8(panel.title)},
                {"queries", TokensJson(panel.queries)},
                {"keys", TokensJson(panel.keys)},
                {"weights", WeightsText(panel.weights)}};
  if (!panel.masked.empty()) value["masked"] = MaskText(panel.masked);
  return value;
}

json RampJson(const Ramp& ramp) {
  json list = json::array();
  for (const std::uint32_t color : ramp) list.push_back(HexColor(color));
  return list;
}

// JSON that no HTML parser can take for markup, nor an old script parser for the end of a line.
std::string EmbeddableJson(const json& value) {
  const std::string plain = value.dump(-1, ' ', false);
  std::string text;
  text.reserve(plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::string_view rest = std::string_view(plain).substr(i, 3);
    if (rest[0] == '<') {
      text += "\\u003c";
    } else if (rest == "\u2028" || rest == "\u2029") {
      text += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += plain[i];
    }
  }
  return text;
}

json DocumentJson(const AttentionDocument& document) {
  const Range range = SharedRange(document);
  json panels = json::array();
  for (const AttentionPanel& panel : document.panels) panels.push_back(PanelJson(panel));
  return {{"title", ValidUtf8(document.title)},
          {"queryAxis", ValidUtf8(document.query_axis)},
          {"keyAxis", ValidUtf8(document.key_axis)},
          {"columns", document.columns},
          {"range", {range.low, range.high}},
          {"ramps", {{"light", RampJson(kLightRamp)}, {"dark", RampJson(kDarkRamp)}}},
          {"panels", panels}};
}

}  // namespace

std::string PageHtml(const AttentionDocument& document) {
  Validate(document);
  constexpr std::string_view kTitle = "@@TITLE@@", kData = "@@DATA@@";
  const std::string_view page(reinterpret_cast<const char*>(kPageTemplate), kPageTemplateSize);
  const std::size_t title = page.find(kTitle), data = page.find(kData);
  std::string html(page.substr(0, title));
  html += document.title.empty() ? "Attention" : EscapeShown(ShownText(document.title));
  html += page.substr(title + kTitle.size(), data - title - kTitle.size());
  html += EmbeddableJson(DocumentJson(document));
  html += page.substr(data + kData.size());
  return html;
}

void WritePage(const AttentionDocument& document, const std::string& path) {
  const std::string html = PageHtml(document);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << html;
  file.close();
  if (!file) throw Error("cannot write the attention page " + path + ": " + std::strerror(errno));
}

}  // namespace regard::view
