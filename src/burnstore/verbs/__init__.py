"""What the verbs do, a step a file; the verbs themselves are in `api` and `exporting`."""
