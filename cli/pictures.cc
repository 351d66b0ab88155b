#include "cli/pictures.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "data/file.h"

namespace regard::cli {

view::AttentionPanel PanelOf(const torch::Tensor& weights, const std::vector<std::string>& queries,
                             const std::vector<std::string>& keys, const std::string& title) {
  const torch::Tensor shown = weights.to(torch::kFloat32).contiguous();
  const float* first = shown.data_ptr<float>();
  return {.title = title,
          .queries = queries,
          .keys = keys,
          .weights = {first, first + shown.numel()},
          .masked = {}};
}

view::AttentionPanel PanelOf(const train::Translation& translation, const std::string& title) {
  return PanelOf(translation.attention, translation.target_pieces, translation.source_pieces, title);
}

void WritePicture(const std::string& path, const std::string& text) { data::WriteFileAtomically(path, text); }

std::string FileUrl(const std::string& path) {
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  std::string url = "file://";
  for (const char c : absolute) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += fmt::format("%{:02X}", byte);
    }
  }
  return url;
}

}  // namespace regard::cli
