// Translations as pictures of attention.
#ifndef REGARD_CLI_PICTURES_H_
#define REGARD_CLI_PICTURES_H_

#include <torch/types.h>

#include <string>
#include <vector>

#include "train/translation_run.h"
#include "view/attention_view.h"

namespace regard::cli {

// weights [L, S] of L queries and S keys.
view::AttentionPanel PanelOf(const torch::Tensor& weights, const std::vector<std::string>& queries,
                             const std::vector<std::string>& keys, const std::string& title);

// Target pieces (rows) over source pieces (columns). The translation needs its weights. `title`: of the
// panel.
view::AttentionPanel PanelOf(const train::Translation& translation, const std::string& title);

// Writes text to a file that is replaced as a whole. Throws regard::Error naming it.
void WritePicture(const std::string& path, const std::string& text);

// "file:///home/me/page.html": what a browser opens and many terminals let one click.
std::string FileUrl(const std::string& path);

}  // namespace regard::cli

#endif  // REGARD_CLI_PICTURES_H_
