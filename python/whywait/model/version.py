"""The version of the product, as files that it writes name it."""

from importlib.metadata import version

VERSION = version("whywait")
