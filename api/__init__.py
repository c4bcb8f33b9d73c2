"""Wengert: autograd with torch's names, and a compiler that shows its work."""
