"""The shared transcripts, over real pipes."""

import sys
import unittest

from support import TESTS, replay


class Transcripts(unittest.TestCase):
    def replay_all(self, program):
        for name in replay.names("package"):
            with self.subTest(name):
                replay.replay(name, [sys.executable, str(TESTS / program)])

    def test_async_tools_match_every_transcript(self):
        self.replay_all("transcript_tools.py")

    def test_def_tools_match_every_transcript(self):
        self.replay_all("blocking_tools.py")

    def test_other_lines_do_not_match(self):
        expected = {"call": 1, "done": "build", "value": {"a": 1}, "kind": "$OPTIONAL", "text": "$ANY"}
        replay.check(expected, {"call": 1, "done": "build", "value": {"a": 1}, "text": ""}, "line", False)
        for change in ({"done": "push"}, {"value": {"a": 2}}, {"value": {"a": 1, "b": 2}}, {"value": {"a": True}}, {"more": 1}):
            with self.assertRaises(replay.Mismatch, msg=change):
                replay.check(expected, {"call": 1, "done": "build", "value": {"a": 1}, "text": "", **change}, "line", False)
        with self.assertRaisesRegex(replay.Mismatch, "lacks the member `text`"):
            replay.check(expected, {"call": 1, "done": "build", "value": {"a": 1}}, "line", False)


if __name__ == "__main__":
    unittest.main()
