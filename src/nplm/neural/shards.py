"""Which rows of the output layer a rank owns."""


def shard_range(rank: int, ranks: int, rows: int) -> range:
    """The output units of one rank: blocks of ceil(rows / ranks), the last ones shorter or empty (section 3.2)."""
    block = -(-rows // ranks)
    return range(min(rank * block, rows), min((rank + 1) * block, rows))
