"""Communication between devices, or between the examples of a batch, along named axes.

`reductions` combines, `gathers` collects and scatters, `permutations` and `exchanges` send,
`indices` says where one is, `casting` changes what types know.
"""
