"""Agents → events, live: the recorder, the episode, the tool decorator.

Misuse raises; trouble with disks and encodings never reaches the agent: it is counted, told at the end of the episode,
and shown by ``trackway doctor``.
"""
