#!/usr/bin/env python3
"""dependency_directions.py SOURCE_DIR: checks every #include of include/ and lib/ against the layers.

Dependencies point down only, and public headers include no third-party library but those of the interop headers.
"""

import pathlib
import re
import sys

# Layer -> the layers whose headers it may include, besides its own.
BELOW = {
    "core": set(),
    "storage": {"core"},
    "pattern": {"storage", "core"},
    "reorder": {"pattern", "storage", "core"},
    "files": {"storage", "pattern", "core"},
    "reference": {"pattern", "storage", "core"},
    "model": {"core"},
    "kernels": {"core"},
    "plan": {"kernels", "reorder", "model", "pattern", "storage", "core"},
    "pebble": {"plan", "model", "pattern", "core"},
    "attention": {"plan", "kernels", "model", "reorder", "pattern", "storage", "core"},
    "interop": {"storage", "pattern", "core"},
}

# Layers of those public headers that have no source of their name; others belong to the layer of lib/<layer>/<stem>.cpp.
# Headers of include/cobble/interop/ are "interop"; cobble.hpp may include all but those.
PUBLIC = {
    "attention": "attention",
    "bsr": "storage",
    "cobble": "everything",
    "convert": "storage",
    "coo": "storage",
    "cost_model": "model",
    "csr": "storage",
    "files": "files",
    "half": "core",
    "workspace": "core",
}

# Third-party libraries, told by their headers, and the only layers that may include them.
THIRD_PARTY = {
    "Eigen": (r"(unsupported/)?Eigen/", {"interop"}),
    "oneTBB": (r"(oneapi/)?tbb/|tbb\.h", {"attention", "core"}),
    "hwloc": (r"hwloc", {"model"}),
    "libzip": (r"zip\.h", {"files"}),
    "Highway": (r"hwy/", {"kernels"}),
    "SuiteSparse": (r"(suitesparse/)?(cholmod|GraphBLAS|amd|colamd|metis|camd|ccolamd|SuiteSparse)\w*\.h", {"interop", "pattern", "reorder"}),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of_header(root, name):
    """The layer of an included header of ours, None when it is not ours."""
    parts = name.split("/")
    if parts[0] == "cobble" and len(parts) == 2:
        stem = parts[1].removesuffix(".hpp")
        sources = [source.parent.name for source in (root / "lib").glob(f"*/{stem}.cpp")]
        return PUBLIC.get(stem) or (sources[0] if len(sources) == 1 else f"unknown (public header {name})")
    if parts[0] == "cobble":
        return parts[1]
    return parts[0] if parts[0] in BELOW and len(parts) > 1 else None


def check_file(root, path, layer, is_public):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        name = include.group(2)
        target = layer_of_header(root, name)
        if target is None:
            for library, (headers, layers) in THIRD_PARTY.items():
                if re.match(headers, name) and (layer not in layers or (is_public and layer != "interop")):
                    yield f"{path}:{number}: {library} must not be included here ({name})"
            continue
        if is_public and not name.startswith("cobble/"):
            yield f"{path}:{number}: a public header includes {name}, which is not installed"
        if layer == "everything":
            if target == "interop":
                yield f"{path}:{number}: cobble.hpp must not include {name}"
        elif layer not in BELOW:
            yield f"{path}: its layer is not known to this check: {layer}"
            return
        elif target != layer and target not in BELOW[layer]:
            yield f"{path}:{number}: {layer} must not depend on {target} ({name})"


def check_tree(root):
    for path in sorted((root / "include").rglob("*.hpp")):
        yield from check_file(root, path, layer_of_header(root, str(path.relative_to(root / "include"))), True)
    for path in sorted((root / "lib").rglob("*.[ch]pp")):
        yield from check_file(root, path, path.relative_to(root / "lib").parts[0], False)


def main():
    faults = list(check_tree(pathlib.Path(sys.argv[1])))
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
