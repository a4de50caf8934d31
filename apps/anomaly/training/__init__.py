"""Training: models of telemetry learnt, compared, published, kept, and watched."""
