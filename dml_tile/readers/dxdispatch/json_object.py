"""The base of the format's objects."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class JsonObject(BaseModel):
    """An object of a model: its keys are in camelCase, and unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)
