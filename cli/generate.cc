// regard generate: text from a trained language model, as it is written.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/threads.h"
#include "data/pairs.h"
#include "engine/base/error.h"
#include "train/interrupt.h"
#include "train/text_generator.h"
#include "train/text_run.h"

namespace regard::cli {
namespace {

struct GenerateOptions {
  Common common;
  std::string run, prompt = "\n", output = "-";
  bool prompt_given = false, interactive = false;
  std::int64_t tokens = 500, samples = 1, top_k = 0, seed = 0;
  double temperature = 0.8, top_p = 1, min_p = 0, repetition_penalty = 1;
  std::vector<std::string> stops;
};

train::GeneratorOptions OptionsOf(const GenerateOptions& o, std::int64_t sample) {
  return {
      .sampling = {.repetition_penalty = o.repetition_penalty,
                   .temperature = o.temperature,
                   .top_k = o.top_k,
                   .top_p = o.top_p,
                   .min_p = o.min_p},
      .stops = o.stops,
      // Every sample has numbers of its own.
      .seed = data::Mix(data::Mix(static_cast<std::uint64_t>(o.seed)) + static_cast<std::uint64_t>(sample))};
}

struct Written {
  train::TextEnd end;
  bool line_ended = false;  // by the model itself
};

// Writes up to the limit of tokens; the text appears as it comes, and ends with a line end.
Written Write(train::TextGenerator& generator, std::int64_t tokens, Output& out) {
  const train::InterruptGuard guard;
  bool line_ended = false;
  const train::TextEnd end = generator.Write(
      tokens,
      [&](const std::string& text) {
        if (text.empty()) return;
        out.Write(text);
        out.Flush();
        line_ended = text.back() == '\n';
      },
      [] { return train::InterruptGuard::Requested(); });
  if (!line_ended) out.Write("\n");
  out.Flush();
  return {end, line_ended};
}

void WriteSamples(train::TextRun& run, const GenerateOptions& o) {
  Output out(o.output);
  for (std::int64_t sample = 0; sample < o.samples; ++sample) {
    train::TextGenerator generator(run.model(), run.tokenizer(), OptionsOf(o, sample));
    generator.Read(o.prompt);
    if (sample > 0) out.Write("---------------\n");
    if (o.prompt_given) out.Write(o.prompt);
    if (Write(generator, o.tokens, out).end == train::TextEnd::kInterrupted) throw Error("interrupted");
  }
  out.Close();
}

// What is typed is added to the text as a line, and the model goes on from there.
void Converse(train::TextRun& run, const GenerateOptions& o) {
  const Messages messages(o.common.quiet);
  Output out(o.output);
  train::TextGenerator generator(run.model(), run.tokenizer(), OptionsOf(o, 0));
  const bool typed = IsTerminal(stdin);
  if (typed) messages.Say("What you type becomes a line of the text, and the model goes on. Ctrl-D ends.");
  data::LineReader reader{.in = std::cin, .name = "standard input"};
  std::string line;
  bool line_ended = true;  // of the text so far
  if (o.prompt_given) {
    generator.Read(o.prompt);
    line_ended = o.prompt.ends_with('\n');
  }
  for (;;) {
    if (typed && !o.common.quiet) std::fputs("> ", stderr);
    if (!reader.Next(&line)) break;
    try {
      generator.Read((line_ended ? "" : "\n") + line + "\n");
    } catch (const Error& error) {
      messages.Warn(error.what());
      continue;
    }
    line_ended = Write(generator, o.tokens, out).line_ended;
  }
  if (typed && !o.common.quiet) std::fputs("\n", stderr);
  out.Close();
}

void RunGenerate(const GenerateOptions& o) {
  if (o.interactive && o.samples > 1) throw UsageError("--interactive and --samples exclude each other");
  UseThreads(o.common);
  train::TextRun run = train::TextRun::Load(o.run);
  o.interactive ? Converse(run, o) : WriteSamples(run, o);
}

}  // namespace

void AddGenerate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  GenerateOptions& o = *options;
  CLI::App& command = AddCommand(
      app, "generate",
      "Write text with a trained language model\n\n"
      "The text appears as it is written. The rules apply in the order of the options: penalty, temperature, "
      "top-k, top-p, min-p.",
      "regard generate runs/bard --prompt 'ROMEO:' --tokens 300\n"
      "regard generate runs/bard --temperature 0 --stop JULIET\n"
      "regard generate runs/bard --interactive --top-p 0.9");
  AddText(command, "RUN", "", o.run, "Folder of the trained model")->required();
  CLI::Option* prompt =
      command.add_option("--prompt", o.prompt, "What the text begins with; without it, after a line end");
  prompt->type_name("TEXT");
  AddInteger(command, "-n,--tokens", "N", o.tokens, 1, "Tokens to write at most");
  AddInteger(command, "--samples", "N", o.samples, 1, "Texts, each from the prompt on");
  AddFlag(command, "--interactive", o.interactive, "Read lines from standard input and go on after each");
  AddReal(command, "--repetition-penalty", "X", o.repetition_penalty, {.min = 0},
          "Above 1: tokens that came before are less likely");
  AddReal(command, "--temperature", "X", o.temperature, {.min = 0},
          "Logits are divided by it; 0: always the most likely token");
  AddInteger(command, "--top-k", "N", o.top_k, 0, "Only the N most likely tokens; 0: all");
  AddReal(command, "--top-p", "X", o.top_p, {.min = 0, .max = 1},
          "Only the most likely tokens that together have this probability");
  AddReal(command, "--min-p", "X", o.min_p, {.min = 0, .max = 1},
          "Only tokens at least this likely, by the likeliest");
  command.add_option("--stop", o.stops, "End before this text, may be given again")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  AddInteger(command, "--seed", "N", o.seed, 0, "Of what is drawn: the same one writes the same text");
  AddText(command, "-o,--output", "FILE", o.output, "Where the text goes");
  AddCommon(command, o.common);
  command.callback([options, prompt] {
    options->prompt_given = prompt->count() > 0;
    RunGenerate(*options);
  });
}

}  // namespace regard::cli
