"""The eager tensor, its autograd engine and the recorder."""
