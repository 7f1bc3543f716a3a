"""The page: put together from its parts into one document that needs nothing else."""

import base64
import hashlib
from importlib.resources import files

SCRIPTS = ("store.js", "table.js", "strip.js", "log.js", "control.js", "main.js")


class Page:
    """Read once.

    The browser runs only the script and the style that are in it: their hashes are in the security
    policy, and nothing is loaded from anywhere else.
    """

    def __init__(self) -> None:
        folder = files(__package__) / "files"
        style = (folder / "page.css").read_text()
        script = "\n".join((folder / name).read_text() for name in SCRIPTS)
        html = (folder / "page.html").read_text()
        self.html = html.replace("/*style*/", style).replace("/*script*/", script).encode()
        self.security = "; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash(script)}",
                f"style-src {_hash(style)}",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
