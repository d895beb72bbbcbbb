"""Tests of ``trackway.search``."""
