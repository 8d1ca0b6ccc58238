"""Results on disk: written all or nothing, and read back."""
