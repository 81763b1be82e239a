"""The kinds of network: an encoder of the context, the output layers it can be joined to, and how it is trained.

Light to import: planning a run needs no torch.
"""

from collections.abc import Callable

from nplm.kinds import BOOLEAN, TEXT, Key, Kind, choice, number, whole_number

OUTPUTS = ("softmax",)
"""Output layers; see nplm.neural.outputs."""
OBJECTIVES = ("likelihood",)
"""What an output layer is trained for; see nplm.neural.objectives."""
PRECISIONS = ("auto", "float32", "bfloat16", "float64")
NETWORK_ORDER = Key(
    "n", whole_number(2, 65), "order: the network sees the n − 1 words before the one it predicts", column="n"
)
FEATURES = Key("m", whole_number(1), "features of a word", column="m")
TRAINING = (
    Key("epsilon_0", number(0, exclusive=True), "initial learning rate per example", 0.01, shared=True),
    Key("r", number(0), "learning rate after t examples: epsilon_0 / (1 + r t)", 1e-8, shared=True),
    Key("weight_decay", number(0), "on all weights, not on biases", 1e-4, shared=True),
    Key("K", whole_number(1), "examples per update (section 3.2)", 128, shared=True),
    Key("epochs", whole_number(1), "at most", 20, shared=True),
    Key(
        "patience",
        whole_number(1, or_null=True),
        "stop after this many epochs without a better validation perplexity; null = never",
        5,
        shared=True,
    ),
)


def network(
    name: str,
    title: str,
    source: str,
    encoder: str,
    keys: tuple[Key, ...],
    outputs: tuple[str, ...] = OUTPUTS,
    objectives: tuple[str, ...] = OBJECTIVES,
    precisions: tuple[str, ...] = PRECISIONS,
    strategies: tuple[str, ...] = ("output-parallel", "shared-memory"),
    devices: tuple[str, ...] = ("auto", "cpu", "cuda"),
    shows: tuple[str, ...] = ("features",),
    label: str = "",
    check: Callable[[dict], str | None] = lambda row: None,
) -> Kind:
    """A kind of network: its own keys, then those of every network.

    encoder: the module that has its `architecture`. outputs, objectives, precisions, strategies, devices: what it can
    be combined with, the default first.
    """
    return Kind(
        name=name,
        title=title,
        source=source,
        own_keys=(
            *keys,
            Key("output", choice(*outputs), "output layer that the encoder is joined to", outputs[0]),
            Key("objective", choice(*objectives), "what the output layer is trained for", objectives[0]),
            *TRAINING,
            Key("precision", choice(*precisions), "operands of the large products", precisions[0], shared=True),
            Key(
                "strategy",
                choice(*strategies),
                "what the ranks share out: the outputs (section 3.2) or the examples (section 3.1, without locks)",
                strategies[0],
                shared=True,
            ),
            Key("device", choice(*devices), "auto: a GPU where there is one and ranks is 1", devices[0], shared=True),
        ),
        code=encoder,
        family="network",
        random=True,
        epochs=True,
        ranks=True,
        shows=shows,
        label=label,
        check=check,
    )


def _feed_forward_has_input(row: dict) -> str | None:
    if row["h"] == 0 and not row["direct"]:
        return "a network with h = 0 and no direct connections has no input; set h > 0 or direct: true"
    return None


KINDS = (
    network(
        "nplm",
        "the paper's feed-forward network",
        "Bengio et al. 2003, section 2",
        "nplm.neural.encoders.feed_forward",
        (
            NETWORK_ORDER,
            Key("h", whole_number(0), "hidden units; 0 = no hidden layer", column="h"),
            FEATURES,
            Key("direct", BOOLEAN, "direct connections W from features to outputs", column="direct"),
        ),
        label="mlp",
        check=_feed_forward_has_input,
    ),
    network(
        "energy",
        "the energy network, whose exact gradient passes every word of the vocabulary through the hidden layer",
        "Bengio et al. 2003, section 5.1",
        "nplm.neural.energy",
        (
            NETWORK_ORDER,
            Key("h", whole_number(1), "hidden units", column="h"),
            FEATURES,
            Key(
                "held_out",
                whole_number(0),
                "words that it is trained without, drawn from the middle of the vocabulary",
                0,
            ),
            Key("held_out_seed", whole_number(0), "of the draw of these words", 1),
        ),
        outputs=("energy",),
        precisions=("auto", "float32", "float64"),
        strategies=("output-parallel",),
        devices=("auto", "cpu"),
    ),
    Kind(
        name="unseen_words",
        title="an energy network whose held-out words got features after its training",
        source="Bengio et al. 2003, section 5.1",
        own_keys=(
            Key("network", TEXT, "row of an energy network that holds out words", refers_to=("energy",)),
            Key(
                "features",
                choice("contexts", "random", "rare"),
                "expected features in contexts of the word, random ones, or those of <rare>",
                "contexts",
            ),
            Key("contexts", whole_number(1), "how many of the word's first contexts in train are used", 4),
        ),
        code="nplm.neural.unseen_words",
        family="network",
        reads=("network",),
        random=True,
        shows=("unseen_words",),
    ),
)
