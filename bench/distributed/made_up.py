"""An embedder process that makes the vectors of passages up: what an import costs besides the model."""

from __future__ import annotations

from bench.distributed.embedders import serve_as
from bench.made_up import MadeUpPassages

if __name__ == "__main__":
    serve_as(MadeUpPassages)
