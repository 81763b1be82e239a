# What models of other kinds build on: the bins of contexts, and the classes of words.
#
# Inputs:  results/{experiment}/{train,valid}.safetensors
# Outputs: results/{experiment}/context_bins/{split}.safetensors   how often each token's context was seen in train
#          results/{experiment}/classes/{classes}/classes.tsv      word, class, count
#          results/{experiment}/classes/{classes}/likelihood.csv   of train, after every sweep of the clustering


rule bin_contexts:
    """Put every token of a split into the bin of its context's frequency in train."""
    input:
        train="results/{experiment}/train.safetensors",
        split="results/{experiment}/{split}.safetensors",
    output:
        bins="results/{experiment}/context_bins/{split}.safetensors",
    log:
        "results/{experiment}/logs/bin_contexts/{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/bin_contexts/{split}.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.ngram", "bin_contexts"),
    shell:
        "nplm bin-contexts --train {input.train:q} --split {input.split:q} --output {output.bins:q} 2>&1 | tee {log:q}"


rule cluster_words:
    """Put the words into classes by the exchange algorithm."""
    input:
        train="results/{experiment}/train.safetensors",
        vocabulary="results/{experiment}/vocabulary.tsv",
    output:
        classes="results/{experiment}/classes/{classes}/classes.tsv",
        likelihood="results/{experiment}/classes/{classes}/likelihood.csv",
    log:
        "results/{experiment}/logs/cluster_words/{classes}.log",
    benchmark:
        "results/{experiment}/benchmarks/cluster_words/{classes}.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.classes", "cluster_words"),
        options=clustering_options,
    shell:
        "nplm cluster-words --train {input.train:q} --vocabulary {input.vocabulary:q} --classes {wildcards.classes}"
        " {params.options} --output {output.classes:q} --likelihood {output.likelihood:q} 2>&1 | tee {log:q}"
