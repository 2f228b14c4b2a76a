//! The backend interface: traits, registry, client, thunks.
