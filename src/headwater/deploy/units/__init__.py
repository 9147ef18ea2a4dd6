"""What a deployed flow runs: queries, jobs and alerts, what they are fed, where they are cut."""
