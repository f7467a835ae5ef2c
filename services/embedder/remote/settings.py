"""Settings of a remote provider."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class OpenAISettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_EMBEDDER_OPENAI_ and its name in capitals.

    Times are in seconds. The defaults suit OpenAI; other servers (vLLM, text-embeddings-inference, Ollama, …) need
    `url` and `model`.
    """

    model_config = SettingsConfigDict(env_prefix="MEMORYD_EMBEDDER_OPENAI_", frozen=True, hide_input_in_errors=True)

    url: str = Field(
        default="https://api.openai.com/v1", description="The API; embeddings are asked for at URL/embeddings."
    )
    api_key: SecretStr | None = Field(default=None, description="Sent as bearer token; absent: none is sent.")
    model: str = Field(default="text-embedding-3-small", description="The model's name at the provider.")
    dimensions: PositiveInt | None = Field(
        default=None, description="Asked for with each text, where the model can shorten its vectors; absent: its own."
    )
    window: PositiveInt = Field(default=8191, description="Longest text in tokens, prompt included.")
    query_prompt: str = Field(default="", description="Stands before every query.")
    passage_prompt: str = Field(default="", description="Stands before every passage.")
    unrelated: float = Field(default=0.1, ge=-1, le=1, description="Typical cosine of unrelated texts.")
    related: float = Field(default=0.6, ge=-1, le=1, description="Typical cosine of a question and its answer.")
    tokenizer: Path | None = Field(
        default=None,
        description="The model's tokenizer.json or SentencePiece model, to count tokens and weigh words by; absent: "
        "that of the default local model, which counts nearly alike.",
    )
    encoding: Literal["base64", "float"] = Field(default="base64", description="How vectors come over the wire.")
    request_texts: PositiveInt = Field(default=128, description="Most texts of one request.")
    request_tokens: PositiveInt = Field(default=100_000, description="Most tokens of one request, about.")
    concurrency: PositiveInt = Field(default=4, description="Bulk requests in flight; as many more for queries.")
    timeout: PositiveFloat = Field(default=30.0, description="How long one request may take.")
    attempts: PositiveInt = Field(default=4, description="How often a request is sent, within the call's deadline.")

    @field_validator("url")
    @classmethod
    def _well_formed(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
            raise ValueError("it must be http:// or https://, a host, and the path of the API; no user, no query")
        return url.rstrip("/")

    @property
    def host(self) -> str:
        """The provider's host: how it is named in answers."""
        return urlsplit(self.url).netloc
