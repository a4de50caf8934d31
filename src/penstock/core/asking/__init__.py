"""What gateways ask of workers, and what these answer: values, and how they go over a wire."""
