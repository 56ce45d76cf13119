"""The version of JAX whose interface minijax has."""

VERSION = "0.10.2"

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))
