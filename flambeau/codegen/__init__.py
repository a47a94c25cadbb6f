"""From loops to LLVM IR: text builder, targets, nests, templates of heavy kernels."""
