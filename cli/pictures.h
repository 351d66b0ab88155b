// Translations as pictures of attention.
#ifndef REGARD_CLI_PICTURES_H_
#define REGARD_CLI_PICTURES_H_

#include <string>

#include "train/translation_run.h"
#include "view/attention_view.h"

namespace regard::cli {

// Target pieces (rows) over source pieces (columns). The translation needs its weights. `title`: of the
// panel.
view::AttentionPanel PanelOf(const train::Translation& translation, const std::string& title);

// Writes text to a file that is replaced as a whole. Throws regard::Error naming it.
void WritePicture(const std::string& path, const std::string& text);

// "file:///home/me/page.html": what a browser opens and many terminals let one click.
std::string FileUrl(const std::string& path);

}  // namespace regard::cli

#endif  // REGARD_CLI_PICTURES_H_
