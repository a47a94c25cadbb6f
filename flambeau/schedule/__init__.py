"""From nests to kernels: fusion, loop order, vectors, chunks for threads, memory."""
