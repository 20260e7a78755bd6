"""A RoBERTa of two small layers with random weights and its tokenizer, written to disk: no network, no package."""

import numpy as np

GOOD = ("great", "fine", "lovely", "brilliant", "moving")
BAD = ("dull", "awful", "boring", "poor", "tired")
OTHER = ("a", "the", "film", "plot", "story", "actor", "with", "and", "very", "quite")


def make_roberta(folder, hidden=16, seed=0):
    """Write config, safetensors and tokenizer; returns the folder as text."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

    from floral_learn.neural.encoders import quiet

    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *GOOD, *BAD, *OTHER]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    names = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=len(words), hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1,
        # wide weights and no dropout: it learns within a few dozen steps
        initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        RobertaForMaskedLM(config).save_pretrained(folder)
    return str(folder)


def make_reviews(n, seed=0):
    """n short texts and labels -1 / +1: each has words of one side and some that say nothing."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(n):
        sign = 1 if number % 2 else -1
        own = GOOD if sign > 0 else BAD
        words = [*rng.choice(own, 4), *rng.choice(OTHER, rng.integers(1, 7))]
        texts.append(" ".join(rng.permutation(words)))
        labels.append(sign)
    return texts, np.array(labels)
