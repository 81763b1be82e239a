# Score streams: one ln P per token, the only thing that the later stages know of a model.
#
# Inputs:  results/{experiment}/models/{model}/model.safetensors, results/{experiment}/{split}.safetensors
# Outputs: results/{experiment}/scores/{model or mixture}.{split}.safetensors
#          results/{experiment}/mixtures/{mixture}.json            the mixture's weights
#          results/{experiment}/perplexity.csv                     of every model and mixture on every split


rule score:
    """Score every token of a split with a model."""
    input:
        model="results/{experiment}/models/{model}/model.safetensors",
        split="results/{experiment}/{split}.safetensors",
    output:
        scores="results/{experiment}/scores/{model}.{split}.safetensors",
    log:
        "results/{experiment}/logs/score/{model}.{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/score/{model}.{split}.tsv"
    wildcard_constraints:
        model=models_made_by("fit", "output-parallel", "shared-memory"),
    conda:
        "../../envs/nplm.yaml"
    threads: lambda wildcards: MPI["threads"] if kind(wildcards).family == "network" else 1
    params:
        code=scoring_code,
    shell:
        "nplm score --model {input.model:q} --split {input.split:q} --name {wildcards.model:q} --output {output.scores:q}"
        " 2>&1 | tee {log:q}"


rule import_scores:
    """Make a score stream of another toolkit's log-probabilities."""
    input:
        log_probabilities=lambda wildcards: row(wildcards)[wildcards.split],
        split="results/{experiment}/{split}.safetensors",
    output:
        scores="results/{experiment}/scores/{model}.{split}.safetensors",
    log:
        "results/{experiment}/logs/import_scores/{model}.{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/import_scores/{model}.{split}.tsv"
    wildcard_constraints:
        model=models_made_by("import"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.scores", "import_scores"),
        options=external_options,
    shell:
        "nplm import-scores --log-probabilities {input.log_probabilities:q} --split {input.split:q} {params.options}"
        " --name {wildcards.model:q} --output {output.scores:q} 2>&1 | tee {log:q}"


rule fit_mixture:
    """Fit a mixture's weights on valid."""
    input:
        components=component_scores,
        bins=bins_of_mixture,
    output:
        mixture="results/{experiment}/mixtures/{mixture}.json",
    log:
        "results/{experiment}/logs/fit_mixture/{mixture}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_mixture/{mixture}.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.scores", "fit_mixture"),
        inputs=mixture_inputs,
        options=lambda wildcards: options(weights=experiment(wildcards)["mixtures"][wildcards.mixture]["weights"]),
    shell:
        "nplm fit-mixture {params.inputs} {params.options} --name {wildcards.mixture:q} --output {output.mixture:q}"
        " 2>&1 | tee {log:q}"


rule mix:
    """Mix the score streams of a split with a mixture's weights."""
    input:
        mixture="results/{experiment}/mixtures/{mixture}.json",
        components=component_scores,
        bins=bins_of_mixture,
    output:
        scores="results/{experiment}/scores/{mixture}.{split}.safetensors",
    log:
        "results/{experiment}/logs/mix/{mixture}.{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/mix/{mixture}.{split}.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.scores", "mix"),
        inputs=mixture_inputs,
    shell:
        "nplm mix --mixture {input.mixture:q} {params.inputs} --output {output.scores:q} 2>&1 | tee {log:q}"


rule evaluate_perplexity:
    """Tabulate the perplexity of every model and mixture on every split."""
    input:
        scores=all_scores,
    output:
        perplexity="results/{experiment}/perplexity.csv",
    log:
        "results/{experiment}/logs/evaluate_perplexity.log",
    benchmark:
        "results/{experiment}/benchmarks/evaluate_perplexity.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.scores", "evaluate_perplexity"),
        scores=lambda wildcards, input: options(scores=list(input.scores)),
    shell:
        "nplm evaluate-perplexity {params.scores} --output {output.perplexity:q} 2>&1 | tee {log:q}"
