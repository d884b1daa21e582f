#!/usr/bin/env python3
"""avx_leaks.py FILE...: fails when a weak function of an object, archive or shared library holds AVX code.

The linker keeps one copy of a weak function (an inline function, a template instantiation) for the whole program. A
copy compiled for a wider instruction set than the baseline would crash older machines.
"""

import re
import subprocess
import sys

# VEX and EVEX mnemonics start with v; verr, verw and the virtual machine instructions do too.
AVX = re.compile(r"^\s+[0-9a-f]+:\s+(v(?!err|erw|m(?:call|launch|resume|xoff|read|write|func|ptr|clear|run|mcall))\w+)")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weak_functions(path):
    """Names of weak defined symbols. In a shared library weak symbols are the exported ones of its own."""
    names = set()
    for line in run("nm", "--format=posix", "--defined-only", path).splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[1] in ("W", "V", "u"):
            names.add(fields[0])
    return names


def leaks(path):
    weak = weak_functions(path)
    function = None
    found = {}
    for line in run("objdump", "--disassemble", "--no-show-raw-insn", path).splitlines():
        header = FUNCTION.match(line)
        if header:
            function = header.group(1)
        elif function in weak:
            instruction = AVX.match(line)
            if instruction:
                found.setdefault(function, instruction.group(1))
    return found


def main():
    failed = False
    for path in sys.argv[1:]:
        for function, instruction in leaks(path).items():
            print(f"{path}: weak function {function} holds AVX code ({instruction})")
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
