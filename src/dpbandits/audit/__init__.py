"""Is the promise kept: exact verification at small sizes, and statistical attack."""
