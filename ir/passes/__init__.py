"""Graph passes: valid IR in, valid IR out, one pass per file."""
