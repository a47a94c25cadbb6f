"""What runs native code: compiler and cache, thread pool, entry points, memory."""
