// Settings by name: the options of `train pairs`, `train text` or `train images` that each stands for.
#ifndef REGARD_CLI_PRESETS_H_
#define REGARD_CLI_PRESETS_H_

#include <string>
#include <vector>

#include "cli/options.h"

namespace regard::cli {

struct Preset {
  std::string name;
  PresetValues values;
};

// "book": the published setting of d2l.ai's chapter on Bahdanau attention; with --limit 600 its data too.
// "book-transformer": the same chapter's setting for the transformer.
// "translation": a transformer for tens of thousands of sentence pairs.
// "summary": a transformer for long sources and short targets in one language.
// "dates": the generated dates, learnt in less than a minute; `quickstart` trains with it.
const std::vector<Preset>& Presets();

// Of `train text`. "shakespeare": the published small character model (nanoGPT's setting for a CPU).
const std::vector<Preset>& TextPresets();

// Of `train images`. "digits", "digits-hard": for small images such as the 8 x 8 pixels of digits.csv, in at
// most five minutes, with soft attention and with hard attention to a quarter of them.
const std::vector<Preset>& ImagePresets();

// Throws regard::UsageError naming the known ones.
const PresetValues& FindPreset(const std::string& name, const std::vector<Preset>& presets = Presets());

}  // namespace regard::cli

#endif  // REGARD_CLI_PRESETS_H_
