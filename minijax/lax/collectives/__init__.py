"""Communication between devices, or between the examples of a batch, along named axes.

`arguments` has the family, names of axes, and where a device is along them; `reductions` combines,
`gathers` collects and scatters, `permutations` and `exchanges` send, `asynchronous` starts what is
done later.
"""
