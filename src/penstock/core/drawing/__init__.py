"""The application graph as text, Mermaid and SVG."""
