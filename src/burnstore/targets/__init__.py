"""Who takes tensors: live models seen as slots, one file a framework."""
