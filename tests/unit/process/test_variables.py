import pytest
import structlog
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.process.settings import ProcessSettings
from memoryd.process.variables import known_variables, mistyped, warn_of_mistyped


class Engine(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="MEMORYD_ENGINE_")

    password: str = ""


class Settings(ProcessSettings):
    engine: Engine = Field(default_factory=Engine)


def test_the_variables_of_sections_are_known() -> None:
    assert {"MEMORYD_NAMESPACE", "MEMORYD_GRPC_DRAIN", "MEMORYD_ENGINE_PASSWORD"} <= set(known_variables(Settings))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("MEMORYD_GRPC_DRIAN", "MEMORYD_GRPC_DRAIN"),
        ("MEMORYD_NAME_SPACE", "MEMORYD_NAMESPACE"),
        ("MEMORYD_ENGINE_PASWORD", "MEMORYD_ENGINE_PASSWORD"),
        ("MEMORYD_SERVRE", "MEMORYD_SERVER"),
    ],
)
def test_a_mistyped_name_is_told_from_the_one_that_was_meant(name: str, near: str) -> None:
    assert mistyped({name: "1"}, Settings) == {name: near}


@pytest.mark.parametrize("name", ["MEMORYD_GRPC_DRAIN", "MEMORYD_SEARCH_DEPTH", "MEMORYD_KEY", "GRPC_DRIAN", "HOME"])
def test_other_variables_are_left_alone(name: str) -> None:
    assert mistyped({name: "1"}, Settings) == {}


def test_the_warning_names_the_variable_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_ENGINE_PASWORD", "pa55")
    with structlog.testing.capture_logs() as logged:
        warn_of_mistyped(Settings)
    assert [(entry["log_level"], entry["variable"]) for entry in logged] == [("warning", "MEMORYD_ENGINE_PASWORD")]
    assert "pa55" not in str(logged)
