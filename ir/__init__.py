"""The op catalogue, the SSA graph and everything that transforms it."""
