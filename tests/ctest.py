"""What CTest hears of a test in Python: if a part of it was skipped it is skipped, not passed, and says why.

CTest knows that by the exit code; kumo_add_python_test in CMakeLists.txt registers these tests.
"""
import sys
import unittest

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(arguments=()):
    """Runs the tests of the main program, or those of them that `arguments` name, and ends it."""
    ended = unittest.main("__main__", argv=[sys.argv[0], *arguments], exit=False, verbosity=2).result
    sys.stderr.flush()
    for test, why in ended.skipped:
        print(f"skipped: {test.id().removeprefix('__main__.')}: {why}")
    failed = not ended.wasSuccessful() or not ended.testsRun
    sys.exit(1 if failed else SKIPPED if ended.skipped else 0)
