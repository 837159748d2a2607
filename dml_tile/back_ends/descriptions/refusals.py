"""Why a node has no descriptors: raised by descriptions, and caught by ``described_node``."""

from __future__ import annotations


class ProviderRefusal(Exception):  # noqa: N818  # an outcome, not an error of the package's
    """The provider returns E_INVALIDARG before DirectML is asked."""


class OpenDescription(Exception):  # noqa: N818  # an outcome, not an error of the package's
    """The descriptors of a node are not known; ``operators`` are the names of those that it surely creates."""

    operators: tuple[str, ...] = ()


class KnownAtRunTime(OpenDescription):  # an outcome, not an error of the package's
    """The kernel is created when the node runs: a shape, or a value that it reads on the CPU, is not known before."""


class NotDescribed(OpenDescription):  # an outcome, not an error of the package's
    """No description covers the operator at this release."""


def require(is_taken: object, reason: str) -> None:
    """Raise ProviderRefusal with the reason, unless the provider takes it."""
    if not is_taken:
        raise ProviderRefusal(reason)
