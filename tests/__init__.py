"""The tests; a package so that the crash suite can share its checkers."""
