"""A RoBERTa of two small layers with random weights and its tokenizer, written to disk: no network, no package."""

import numpy as np

GOOD = ("great", "fine", "lovely", "brilliant", "moving")
BAD = ("dull", "awful", "boring", "poor", "tired")
OTHER = ("a", "the", "film", "plot", "story", "actor", "with", "and", "very", "quite")


def make_tokenizer(folder, padding=True):
    """Write a tokenizer of whole words; returns how many it knows."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *GOOD, *BAD, *OTHER]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"} | (
        {"pad_token": "<pad>"} if padding else {}
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return len(words)


def make_roberta(folder, hidden=16, seed=0, labels=None):
    """Write config, safetensors and tokenizer; returns the folder as text. With `labels` it is a classifier of them."""
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaForSequenceClassification

    config = RobertaConfig(
        vocab_size=make_tokenizer(folder), hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=40, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        type_vocab_size=1, num_labels=labels or 2,
        # wide weights and no dropout: it learns within a few dozen steps
        initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return saved(RobertaForMaskedLM if labels is None else RobertaForSequenceClassification, config, folder, seed)


def make_gpt(folder, seed=0):
    """A tiny model that writes text, without a padding token, as such models come."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=make_tokenizer(folder, padding=False), n_embd=16, n_layer=1, n_head=2, n_positions=32,
        bos_token_id=0, eos_token_id=2, initializer_range=0.2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return saved(GPT2LMHeadModel, config, folder, seed)


def saved(kind, config, folder, seed):
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kind(config).save_pretrained(folder)
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
