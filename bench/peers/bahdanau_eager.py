"""Bahdanau translation in plain eager PyTorch, as "Dive into deep learning" (section 11.4) writes it.

The model and the setting are the book's: embedding and hidden width 32, two GRU layers, dropout .1, batches of 64,
10 steps, Adam with rate .005, gradients clipped to norm 1; a loop over time steps in Python, each with additive
attention in plain operations and one step of a GRU module. Trains on the first lines of a TSV of sentence pairs and
prints one line of JSON: target tokens per second, the loss of the last epoch, and the translations of four sentences.
"""

import argparse
import json
import re
import time
from collections import Counter

import torch
from torch import nn

STEPS = 10
PAD, BOS, EOS, UNK = range(4)
SENTENCES = ["go .", "i lost .", "he's calm .", "i'm home ."]


def tokenize(text):
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    return [t for t in re.sub(r"(?<! )([,.!?])", r" \1", text).split(" ") if t]


class Vocabulary:
    def __init__(self, lines, min_count=2):
        counts = Counter(t for line in lines for t in line)
        self.tokens = ["<pad>", "<bos>", "<eos>", "<unk>"] + sorted(t for t, n in counts.items() if n >= min_count)
        self.ids = {t: i for i, t in enumerate(self.tokens)}

    def encode(self, line):
        ids = [self.ids.get(t, UNK) for t in line[: STEPS - 1]] + [EOS]
        return ids + [PAD] * (STEPS - len(ids)), len(ids)


class AdditiveAttention(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.w_k = nn.Linear(hidden, hidden, bias=False)
        self.w_q = nn.Linear(hidden, hidden, bias=False)
        self.w_v = nn.Linear(hidden, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        features = torch.tanh(self.w_q(queries).unsqueeze(2) + self.w_k(keys).unsqueeze(1))
        scores = self.w_v(features).squeeze(-1)
        mask = torch.arange(keys.shape[1])[None, :] < valid_lens[:, None]
        weights = nn.functional.softmax(scores.masked_fill(~mask[:, None, :], -1e6), dim=-1)
        return torch.bmm(self.dropout(weights), values)


class Encoder(nn.Module):
    def __init__(self, vocab, embed, hidden, layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed)
        self.rnn = nn.GRU(embed, hidden, layers, dropout=dropout)

    def forward(self, x):
        return self.rnn(self.embedding(x.t()))


class Decoder(nn.Module):
    def __init__(self, vocab, embed, hidden, layers, dropout):
        super().__init__()
        self.attention = AdditiveAttention(hidden, dropout)
        self.embedding = nn.Embedding(vocab, embed)
        self.rnn = nn.GRU(embed + hidden, hidden, layers, dropout=dropout)
        self.dense = nn.Linear(hidden, vocab)

    def forward(self, x, outputs, state, valid_lens):
        results = []
        for y in self.embedding(x).permute(1, 0, 2):
            query = state[-1].unsqueeze(1)
            context = self.attention(query, outputs, outputs, valid_lens)
            out, state = self.rnn(torch.cat((context, y.unsqueeze(1)), dim=-1).permute(1, 0, 2), state)
            results.append(out)
        return self.dense(torch.cat(results)).permute(1, 0, 2), state


class Translator(nn.Module):
    def __init__(self, source, target, width=32, layers=2, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(source, width, width, layers, dropout)
        self.decoder = Decoder(target, width, width, layers, dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
            if isinstance(module, nn.GRU):
                for name, p in module.named_parameters():
                    if "weight" in name:
                        nn.init.xavier_uniform_(p)

    def forward(self, source, lengths, target):
        outputs, state = self.encoder(source)
        return self.decoder(target, outputs.permute(1, 0, 2), state, lengths)[0]

    @torch.no_grad()
    def translate(self, source, length):
        outputs, state = self.encoder(source)
        outputs, token, tokens = outputs.permute(1, 0, 2), torch.tensor([[BOS]]), []
        for _ in range(STEPS):
            logits, state = self.decoder(token, outputs, state, length)
            token = logits.argmax(2)
            if token.item() == EOS:
                break
            tokens.append(token.item())
        return tokens


def read(path, lines):
    with open(path, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for _, line in zip(range(lines), file)]
    sides = [[tokenize(pair[side]) for pair in pairs] for side in (0, 1)]
    vocabularies = [Vocabulary(side) for side in sides]
    tensors = []
    for side, vocabulary in zip(sides, vocabularies):
        ids, lengths = zip(*(vocabulary.encode(line) for line in side))
        tensors += [torch.tensor(ids), torch.tensor(lengths)]
    return vocabularies, tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--lines", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)

    vocabularies, (source, source_lengths, target, _) = read(args.data, args.lines)
    begin = torch.full((len(target), 1), BOS)
    inputs = torch.cat((begin, target[:, :-1]), 1)
    model = Translator(*(len(v.tokens) for v in vocabularies))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    cross_entropy = nn.CrossEntropyLoss(reduction="none")
    model.train()

    tokens = 0
    start = time.perf_counter()
    for _ in range(args.epochs):
        epoch_loss, epoch_tokens = 0.0, 0
        for rows in torch.randperm(len(source)).split(64):
            labels = target[rows]
            mask = labels != PAD
            optimizer.zero_grad()
            logits = model(source[rows], source_lengths[rows], inputs[rows])
            losses = cross_entropy(logits.permute(0, 2, 1), labels) * mask
            loss = losses.sum() / mask.sum()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            count = mask.sum().item()
            epoch_loss += loss.item() * count
            epoch_tokens += count
        tokens += epoch_tokens
    seconds = time.perf_counter() - start

    model.eval()
    translations = []
    for sentence in SENTENCES:
        ids, length = vocabularies[0].encode(tokenize(sentence))
        found = model.translate(torch.tensor([ids]), torch.tensor([length]))
        translations.append(" ".join(vocabularies[1].tokens[i] for i in found))
    steps = args.epochs * -(-len(source) // 64)
    print(
        json.dumps(
            {
                "tokens_per_second": tokens / seconds,
                "step_ms": 1000 * seconds / steps,
                "loss": epoch_loss / epoch_tokens,
                "translations": translations,
            },
            ensure_ascii=False,
        )
    )


if __name__ == "__main__":
    main()
