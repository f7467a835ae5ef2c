"""The same model in the format that transformers and sentence-transformers load from a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from memoryd.models.checkpoint import Checkpoint
from memoryd.models.folder import TOKENIZER_FILE
from memoryd.models.spec import ModelSpec, Pooling

_MODULES = (
    ("0", "", "sentence_transformers.models.Transformer"),
    ("1", "1_Pooling", "sentence_transformers.models.Pooling"),
    ("2", "2_Normalize", "sentence_transformers.models.Normalize"),
)


def write_transformers_folder(checkpoint: Checkpoint, folder: Path, spec: ModelSpec) -> None:
    """Write everything but the tokenizer's own file."""
    sizes = checkpoint.architecture
    tokenizer = checkpoint.tokenizer
    roberta = sizes.first_position > 0
    padding = next((token for token in ("<pad>", "[PAD]") if tokenizer.token_to_id(token) is not None), "<pad>")
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in checkpoint.weights.items()}
    # The models have a pooler that is not used here; where it is missing, transformers warns of random weights.
    tensors["pooler.dense.weight"] = np.zeros((sizes.hidden, sizes.hidden), np.float32)
    tensors["pooler.dense.bias"] = np.zeros(sizes.hidden, np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    contents: dict[str, Any] = {
        "config.json": {
            "architectures": ["XLMRobertaModel" if roberta else "BertModel"],
            "model_type": "xlm-roberta" if roberta else "bert",
            "hidden_act": "gelu",
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "intermediate_size": sizes.feed_forward,
            "vocab_size": sizes.vocabulary,
            "max_position_embeddings": sizes.positions,
            "type_vocab_size": sizes.token_types,
            "layer_norm_eps": sizes.epsilon,
            "pad_token_id": sizes.first_position - 1 if roberta else tokenizer.token_to_id(padding) or 0,
            "torch_dtype": "float32",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "tokenizer_file": TOKENIZER_FILE,
            "model_max_length": spec.window,
            "pad_token": padding,
        },
        "modules.json": [
            {"idx": index, "name": name, "path": path, "type": kind}
            for index, (name, path, kind) in enumerate(_MODULES)
        ],
        "sentence_bert_config.json": {"max_seq_length": spec.window, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {"query": spec.query_prompt, "passage": spec.passage_prompt},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": sizes.hidden,
            "pooling_mode_mean_tokens": spec.pooling is Pooling.MEAN,
            "pooling_mode_cls_token": spec.pooling is Pooling.CLS,
        },
        "2_Normalize/config.json": {},
    }
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n")
