"""Loop nests as LLVM IR with explicit vectors."""
