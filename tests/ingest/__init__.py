"""Tests of what files of other programs become."""
