// regard evaluate of a language model.
#ifndef REGARD_CLI_EVALUATE_TEXT_H_
#define REGARD_CLI_EVALUATE_TEXT_H_

#include <string>

#include "cli/console.h"

namespace regard::cli {

struct EvaluateTextOptions {
  std::string run, file;
  bool json = false, replace_invalid = false;
};

// Prints loss, perplexity and bits per character of the text.
void EvaluateText(const EvaluateTextOptions& options, const Messages& messages);

}  // namespace regard::cli

#endif  // REGARD_CLI_EVALUATE_TEXT_H_
