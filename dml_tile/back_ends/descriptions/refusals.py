"""Why a node has no descriptors."""

from __future__ import annotations


class ProviderRefusalError(Exception):
    """The provider returns E_INVALIDARG before DirectML is asked."""


class OpenError(Exception):
    """The descriptors of a node are not known; ``operators`` are the names of those that it surely creates."""

    operators: tuple[str, ...] = ()


class KnownAtRunTimeError(OpenError):
    """The kernel is created when the node runs: a shape, or a value that it reads on the CPU, is not known before."""


class NotDescribedError(OpenError):
    """No description covers the operator at this release."""


def require(is_taken: object, reason: str) -> None:
    """Raise ProviderRefusalError with the reason, unless the provider takes it."""
    if not is_taken:
        raise ProviderRefusalError(reason)
