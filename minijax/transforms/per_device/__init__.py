"""`shard_map`: a program that is written for one device, and runs on all of a mesh."""
