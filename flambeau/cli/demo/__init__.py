"""`flambeau demo`: a small network learns to read real handwritten digits while one watches."""
