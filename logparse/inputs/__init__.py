"""Which bytes to read, and from where: files, folders, patterns, object stores, compressed or not."""
