"""The anomaly detection application."""
