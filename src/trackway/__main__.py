"""``python -m trackway`` is the command line."""

from trackway.cli import main

if __name__ == "__main__":
    main()
