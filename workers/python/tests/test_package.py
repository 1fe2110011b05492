"""The package: its imports, its size and its files."""

import ast
import io
import pathlib
import re
import sys
import tokenize
import unittest

from support import ROOT
import outlive

# The package may be installed elsewhere.
PACKAGE = pathlib.Path(outlive.__file__).parent
FILES = sorted(PACKAGE.glob("*.py"))


def code_lines(text):
    """Returns the number of lines without blank lines, comments and docstrings."""
    docs, lines = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
            docs.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


class Package(unittest.TestCase):
    def test_imports_are_of_the_standard_library_only(self):
        self.assertGreater(len(FILES), 5)
        for file in FILES:
            for node in ast.walk(ast.parse(file.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module]
                for name in names:
                    self.assertIn(name.split(".")[0], sys.stdlib_module_names, file.name)
        self.assertIn("dependencies = []", (ROOT / "pyproject.toml").read_text())

    def test_package_stays_small(self):
        sizes = {file.stem: code_lines(file.read_text()) for file in FILES}
        kit = sizes.pop("_test")
        self.assertLessEqual(sum(sizes.values()), 1020, sizes)
        self.assertLessEqual(kit, 300)
        for file in FILES:
            long = [line for line in file.read_text().splitlines() if len(line) > 140]
            self.assertEqual(long, [], file.name)

    def test_package_is_typed_and_has_one_version(self):
        self.assertTrue((PACKAGE / "py.typed").exists())
        version = re.search('^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
        self.assertIn(f'VERSION = "{version}"', (PACKAGE / "_worker.py").read_text())


if __name__ == "__main__":
    unittest.main()
