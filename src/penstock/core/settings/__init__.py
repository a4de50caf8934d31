"""The settings of a deployment: values, their layers, and which of them are secret."""
