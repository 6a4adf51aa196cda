"""Responses of the system under evaluation: where they come from, and their journal. No judging and no storage."""
