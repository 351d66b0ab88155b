#include "cli/pictures.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "data/file.h"

namespace regard::cli {

view::AttentionPanel PanelOf(const train::Translation& translation, const std::string& title) {
  const torch::Tensor weights = translation.attention.to(torch::kFloat32).contiguous();
  const float* first = weights.data_ptr<float>();
  return {.title = title,
          .queries = translation.target_pieces,
          .keys = translation.source_pieces,
          .weights = {first, first + weights.numel()},
          .masked = {}};
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
