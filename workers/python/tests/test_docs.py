"""The Python code of the tutorial, the guide and the README."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import ROOT

DOCS = ROOT.parent.parent / "docs"


def blocks(file):
    return re.findall(r"```python\n(.*?)```", file.read_text(), re.S)


def run(files, command):
    """Runs a command in a folder with these files. Returns its exit code and its output."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            pathlib.Path(folder, name).write_text(text)
        done = subprocess.run([sys.executable, *command], cwd=folder, env=os.environ, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Docs(unittest.TestCase):
    def test_tutorial_passes_its_own_tests(self):
        tools, mirror, test = blocks(DOCS / "tutorial-python.md")
        before, after = tools.split("app.run()")
        files = {"tools.py": f"{before}{mirror}\n\napp.run(){after}", "test_tools.py": test}
        code, output = run(files, ["test_tools.py"])
        self.assertEqual(code, 0, output)
        self.assertIn("Ran 3 tests", output)

    def test_guide_story_passes_its_own_test(self):
        tools, *_ = blocks(DOCS / "workers.md")
        test = next(block for block in blocks(DOCS / "workers.md") if "def test_deploy" in block)
        code, output = run({"tools.py": tools, "check.py": f"{test}\ntest_deploy()\n"}, ["check.py"])
        self.assertEqual(code, 0, output)

    def test_each_block_declares_its_tools(self):
        for file in (DOCS / "workers.md", ROOT / "README.md"):
            for number, block in enumerate(blocks(file)):
                if "from tools import" not in block:
                    with self.subTest(file=file.name, number=number):
                        code, output = run({"tools.py": block}, ["-c", "import tools; assert tools.app.entries() is not None"])
                        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
