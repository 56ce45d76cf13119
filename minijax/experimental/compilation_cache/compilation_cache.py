"""The folder of compiled programs."""

from __future__ import annotations

from minijax.core.config import config


def set_cache_dir(path: str | None) -> None:
    """Keeps compiled programs in a folder, for other processes too.

    Source: mirrors jax.experimental.compilation_cache.compilation_cache.set_cache_dir (0.10).

    Example:
        >>> from minijax.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.set_cache_dir("programs")
        >>> jax.config.compilation_cache_dir
        'programs'
        >>> compilation_cache.set_cache_dir(None)
    """
    config.update("compilation_cache_dir", path)


def reset_cache() -> None:
    """Does nothing: which folder is used is looked up whenever a program is compiled.

    Source: mirrors jax.experimental.compilation_cache.compilation_cache.reset_cache (0.10).

    Example:
        >>> from minijax.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.reset_cache()
    """


__all__ = ["reset_cache", "set_cache_dir"]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
