"""What Slackwater itself costs: a decision, a gate, a quality cycle, a setting of the session."""
