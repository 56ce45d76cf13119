"""Communication between devices, or between the examples of a batch, along named axes.

`reductions` combines, `gathers` collects and scatters, `permutations` and `exchanges` send,
`ragged` sends slices of any length, `messages` has the two ends of messages apart, `asynchronous`
starts what is done later, `indices` says where one is, `casting` changes what types know.
"""
