"""Work queues: jobs that are done although workers crash."""
