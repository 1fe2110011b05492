"""The tool worker in shell, against the transcripts for plain implementations."""

import unittest

from support import ROOT, replay


class Shell(unittest.TestCase):
    def test_shell_tools_match_every_plain_transcript(self):
        for name in replay.names("plain"):
            with self.subTest(name):
                replay.replay(name, ["sh", str(ROOT.parent / "shell" / "tools.sh")], is_plain=True)


if __name__ == "__main__":
    unittest.main()
