"""Regular expressions as Rust reads them; `regex` is where to begin."""
