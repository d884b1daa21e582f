"""Generated parts of written pages."""

import sys


def replace_marked(text, mark, lines):
    """Puts lines between <!-- mark --> and <!-- end of mark -->; the second is added when it is not there yet."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, after = text.partition(begin)
    if not found:
        sys.exit(f"no {begin}")
    if end in after:
        after = after.partition(end)[2]
    return before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + after
