#!/usr/bin/env python3
"""Writes a small GPT-2 of random weights beside this file, as its reference implementation saves it (config.json,
model.safetensors), and the logits that it gives (expected.safetensors). train/gpt2_test.cc reads them.

    pip install transformers==4.57.1 && tests/data/gpt2/make.py

With a folder that `regard export` wrote, prints the reference's loss of the tokens that follow, in nats a token:

    tests/data/gpt2/make.py --loss FOLDER 20 21 22 23
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = pathlib.Path(__file__).parent


def loss(folder, tokens):
    tokens = torch.tensor([[int(token) for token in tokens]])
    with torch.no_grad():
        return GPT2LMHeadModel.from_pretrained(folder).eval()(tokens, labels=tokens).loss.item()


def make():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=30, n_positions=16, n_embd=12, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weight in model.parameters():  # large enough that every part matters
            weight.add_(torch.randn_like(weight), alpha=0.3)
        tokens = torch.randint(30, (2, 16))
        logits = model(tokens).logits
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink()
    save_file({"tokens": tokens, "logits": logits}, FOLDER / "expected.safetensors")


if __name__ == "__main__":
    print(loss(sys.argv[2], sys.argv[3:])) if sys.argv[1:2] == ["--loss"] else make()
