"""What trackway costs, measured in one run beside what stands next to it.

A figure alone says little: machines differ, and one machine differs from hour to hour. So every row names what else was
measured in the same minute (the plain system call, SQLite, OpenTelemetry) and the ratio between the two. Nothing here
asserts a time: `python -m benchmarks` prints what it found and whether the design's target was met.
"""
