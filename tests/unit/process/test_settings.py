import pytest
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.errors import ConfigError
from memoryd.process.settings import ProcessSettings, read, shown


class Engine(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="MEMORYD_ENGINE_")

    url: str = "nats://rod:pa55@127.0.0.1:4222,nats://other:4222"
    password: SecretStr = SecretStr("pa55")
    size: int = 1


class Settings(ProcessSettings):
    engine: Engine = Field(default_factory=Engine)


def test_sections_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_ENGINE_SIZE", "3")
    monkeypatch.setenv("MEMORYD_NAMESPACE", "blue")
    monkeypatch.setenv("MEMORYD_GRPC_ADDRESS", "127.0.0.1:1")
    settings = read(Settings)
    assert (settings.engine.size, settings.namespace, settings.grpc.address) == (3, "blue", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MEMORYD_ENGINE_SIZE", "many"), ("MEMORYD_NAMESPACE", "No Dots."), ("MEMORYD_LOG_LEVEL", "shouting")],
)
def test_a_variable_that_cant_be_used_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"the environment can't be used: {variable}: ") as failure:
        read(Settings)
    assert value not in str(failure.value)


def test_no_secret_is_shown() -> None:
    text = str(shown(read(Settings)))
    assert "pa55" not in text
    assert "nats://***@127.0.0.1:4222,nats://other:4222" in text
