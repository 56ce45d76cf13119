"""Hooks of the build: one completes the metadata, the other adds the glossary to the wheel.

Hatchling runs them, because pyproject.toml names this file as both a metadata and a build hook.
The URL of the repository is configured there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_CODE = re.compile(r"(```.*?```)", re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s]+)\)")
_ABSOLUTE = re.compile(r"#|\w+:")


class PackageMetadata(MetadataHookInterface):
    """Adds the URLs, and the README as the description, with links that work outside of it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the fields `readme` and `urls` to `metadata`, which contains the version already."""
        repository, tag = self.config["repository"], f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, repository, tag),
        }
        metadata["urls"] = {
            "Repository": repository,
            "Documentation": f"{repository}/tree/{tag}/docs",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }


class GlossaryInWheel(BuildHookInterface[Any]):
    """Adds the glossary to the package, because `minijax.help` prints its entries."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the file, unless the installation is editable and reads it from the checkout."""
        if version != "editable":
            build_data["force_include"]["docs/glossary.md"] = "minijax/explain/display/glossary.md"


def with_absolute_links(text: str, repository: str, tag: str) -> str:
    """Returns Markdown in which relative links lead to files of the repository at a tag.

    Code blocks are left alone: `table[i](x)` looks like a link.
    """

    def absolute(link: re.Match[str]) -> str:
        if _ABSOLUTE.match(link["target"]):
            return link[0]
        # An image has to be the file itself, not the page that shows the file.
        view = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({repository}/{view}/{tag}/{link['target']})"

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(absolute, part) for part in parts[::2]]
    return "".join(parts)
