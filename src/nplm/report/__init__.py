"""Tables, figures, provenance and the page that gathers them: made from files of numbers, never from models."""
