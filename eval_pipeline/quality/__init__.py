"""The only home of great_expectations: suites of row rules, and the run that turns their failures into findings."""
