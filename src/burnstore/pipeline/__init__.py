"""How snapshots change on their way, still lazy."""
