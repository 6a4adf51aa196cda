"""Sensors: what starts evaluations besides the clock."""

import dagster as dg

SENSORS: list[dg.SensorDefinition] = []
