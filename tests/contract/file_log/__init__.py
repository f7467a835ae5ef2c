"""What every file log does: one suite, run on each adapter."""
