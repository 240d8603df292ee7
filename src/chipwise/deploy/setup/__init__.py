"""Takes an option; gives what must stand before its pods: storage, shared GPUs, claims, queues."""
