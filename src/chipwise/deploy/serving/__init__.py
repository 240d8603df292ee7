"""Takes an option that serves; gives its workload and what stands around it. Read `workload.py` first."""
