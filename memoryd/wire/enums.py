"""Enums: the names of both sides agree but for the prefix, and 0 is the default."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor

from memoryd.errors import refuse

_E = TypeVar("_E", bound=StrEnum)


def member(field: str, number: int, descriptor: EnumDescriptor, default: _E) -> _E:
    """Find the domain's member of a proto enum's number. Raises InvalidInputError for a number without meaning."""
    return required(field, number, descriptor, type(default)) if number else default


def required(field: str, number: int, descriptor: EnumDescriptor, kind: type[_E]) -> _E:
    """Find the member, where no default stands for 0."""
    value = descriptor.values_by_number.get(number)
    if value is None or not number:
        names = ", ".join(f"{known.name} ({known.number})" for known in descriptor.values if known.number)
        refuse(field, number, f"{'is not known' if number else 'says nothing'}; it must be one of {names}")
    return kind[value.name.removeprefix(_prefix(descriptor))]


def number(member: StrEnum, descriptor: EnumDescriptor) -> Any:  # noqa: ANN401  (stubs make each enum a type)
    """Find the number of a member."""
    return descriptor.values_by_name[_prefix(descriptor) + member.name].number


def _prefix(descriptor: EnumDescriptor) -> str:
    return descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
