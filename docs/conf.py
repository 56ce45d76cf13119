"""What Sphinx has to know: `make docs` builds the site, with `tools/site`."""

import os
import sys
from pathlib import Path

import minijax

ROOT = Path(__file__).resolve().parents[1]
# Notebooks run the package of this checkout, and so does what Sphinx imports.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = str(ROOT)

project = "minijax"
author = "the authors of minijax"
version = release = minijax.__version__
language = "en"

extensions = ["myst_nb", "sphinx_copybutton", "tools.site.sources"]
source_suffix = {".md": "myst-nb"}
# No kind of warning is suppressed: each of them is an error.
suppress_warnings: list[str] = []

myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 4

nb_execution_mode = "cache"
nb_execution_cache_path = os.environ["MINIJAX_SITE_CACHE"]
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

html_theme = "sphinx_book_theme"
html_title = f"minijax {release}"
html_extra_path = [os.environ["MINIJAX_SITE_EXTRA"]]
html_static_path = [str(ROOT / "docs" / "static")]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    # The search of the sidebar is enough.
    "navbar_persistent": [],
    # A sidebar with every module and decision in it would take most of the time of a page.
    "navigation_depth": 2,
    "collapse_navigation": True,
}
# The title of a page says of which module its functions are.
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
python_maximum_signature_line_length = 80
add_module_names = False
