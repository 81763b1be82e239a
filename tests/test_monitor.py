"""What a long training says of itself in a log."""

from nplm.cli import monitor


def test_a_rate_is_that_of_its_own_epoch(monkeypatch, capsys):
    """Also where epochs are shorter than the time between two lines: what lies between them is no training."""
    clock = iter([0.0, 14.0, 100.0, 114.0, 131.0, 145.0])
    monkeypatch.setattr(monitor.time, "monotonic", lambda: next(clock))
    log = monitor.LogMonitor(interval=30)
    for epoch, learned in ((1, 1000), (1, 8000), (2, 1000), (2, 8000), (2, 32000), (2, 40000)):
        log.examples(epoch, learned, 40000, 9.0)
    assert capsys.readouterr().out == "epoch 2: 32,000 of 40,000 examples, train perplexity 9.0, 1,000 tokens/s\n"
