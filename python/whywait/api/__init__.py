"""What users call, one module for each verb: `whywait` has their names."""
