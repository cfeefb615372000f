"""Faces for programs written for other tool layers: the same core under their names and with their answers."""
