"""Results on disk: written completely or not at all, and read back."""
