"""What an episode is: events, canonical JSON and hashes, ids, format version. No I/O, no clock, no randomness."""
