# The n-gram models: deleted interpolation, Kneser-Ney, Katz, and n-grams of word classes.
#
# Inputs:  results/{experiment}/{train,valid}.safetensors
# Outputs: results/{experiment}/models/{model}/model.safetensors
#          results/{experiment}/context_bins/{split}.safetensors   how often each token's context was seen in train
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


rule fit_deleted_interpolation:
    """Fit the interpolated trigram: its counts on train, its weights on valid."""
    input:
        train="results/{experiment}/train.safetensors",
        valid="results/{experiment}/valid.safetensors",
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
    log:
        "results/{experiment}/logs/fit_deleted_interpolation/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_deleted_interpolation/{model}.tsv"
    wildcard_constraints:
        model=models_of_kinds("deleted_interpolation"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.ngram", "fit_deleted_interpolation"),
    shell:
        "nplm fit-deleted-interpolation --train {input.train:q} --valid {input.valid:q} --output {output.model:q}"
        " 2>&1 | tee {log:q}"


rule fit_kneser_ney:
    """Fit a modified Kneser-Ney model, back-off or interpolated, on train."""
    input:
        train="results/{experiment}/train.safetensors",
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
    log:
        "results/{experiment}/logs/fit_kneser_ney/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_kneser_ney/{model}.tsv"
    wildcard_constraints:
        model=models_of_kinds("kneser_ney"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.ngram", "fit_kneser_ney"),
        options=backoff_options,
    shell:
        "nplm fit-kneser-ney --train {input.train:q} {params.options} --output {output.model:q} 2>&1 | tee {log:q}"


rule fit_katz:
    """Fit a Katz back-off model with Good-Turing discounts on train."""
    input:
        train="results/{experiment}/train.safetensors",
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
    log:
        "results/{experiment}/logs/fit_katz/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_katz/{model}.tsv"
    wildcard_constraints:
        model=models_of_kinds("katz"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.ngram", "fit_katz"),
        options=backoff_options,
    shell:
        "nplm fit-katz --train {input.train:q} {params.options} --output {output.model:q} 2>&1 | tee {log:q}"


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


rule fit_class_ngram:
    """Fit a modified Kneser-Ney model of the classes, and each word's share of its class."""
    input:
        train="results/{experiment}/train.safetensors",
        classes=word_classes,
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
    log:
        "results/{experiment}/logs/fit_class_ngram/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_class_ngram/{model}.tsv"
    wildcard_constraints:
        model=models_of_kinds("class_ngram"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.classes", "fit_class_ngram"),
        options=backoff_options,
    shell:
        "nplm fit-class-ngram --train {input.train:q} --classes {input.classes:q} {params.options}"
        " --output {output.model:q} 2>&1 | tee {log:q}"
