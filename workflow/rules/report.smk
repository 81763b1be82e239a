# The report: tables, figures, provenance, and the page that gathers them.
#
# Inputs:  results/{experiment}/: perplexities, mixtures, training histories, corpus card, benchmarks
#          workflow/paper/: the paper's figures
# Outputs: results/{experiment}/configuration.json   the experiment's configuration, complete
#          results/{experiment}/comparisons.csv      every two models on test, with the interval of their ratio
#          reports/{experiment}/                     the tables (csv, md, tex), figures (svg), provenance.{json,md}
#          reports/{experiment}/README.md            all of it on one page
#          reports/{experiment}/index.html           the same, with everything in it


rule write_configuration:
    """Write the experiment's configuration, complete, for the report and the record."""
    output:
        configuration="results/{experiment}/configuration.json",
    log:
        "results/{experiment}/logs/write_configuration.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        configuration=lambda wildcards: json.dumps(experiment(wildcards), indent=2, ensure_ascii=False),
    shell:
        "printf '%s\\n' {params.configuration:q} > {output.configuration:q} 2> {log:q}"


rule compare_models:
    """Compare every two models and mixtures on test, by a paired block bootstrap."""
    input:
        configuration="results/{experiment}/configuration.json",
        scores=test_scores,
    output:
        comparisons="results/{experiment}/comparisons.csv",
    log:
        "results/{experiment}/logs/compare_models.log",
    benchmark:
        "results/{experiment}/benchmarks/compare_models.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "compare_models"),
        scores=lambda wildcards, input: options(scores=list(input.scores)),
        options=comparison_options,
    shell:
        "nplm compare-models --configuration {input.configuration:q} {params.scores} {params.options}"
        " --output {output.comparisons:q} 2>&1 | tee {log:q}"


rule tabulate:
    """Set our perplexities beside the paper's."""
    input:
        configuration="results/{experiment}/configuration.json",
        perplexity="results/{experiment}/perplexity.csv",
        comparisons="results/{experiment}/comparisons.csv",
        paper=paper_file("paper"),
    output:
        csv=report(
            "reports/{experiment}/{table}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "{table}: ours beside the paper's"},
        ),
        markdown="reports/{experiment}/{table}.md",
        latex="reports/{experiment}/{table}.tex",
    log:
        "results/{experiment}/logs/tabulate/{table}.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        paper=lambda wildcards, input: options(paper=list(input.paper)),
    shell:
        "nplm tabulate --configuration {input.configuration:q} --perplexity {input.perplexity:q}"
        " --comparisons {input.comparisons:q} {params.paper} --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule tabulate_extra:
    """Tabulate the models and mixtures that the paper's table lacks."""
    input:
        configuration="results/{experiment}/configuration.json",
        perplexity="results/{experiment}/perplexity.csv",
        comparisons="results/{experiment}/comparisons.csv",
        paper=paper_file("paper"),
    output:
        csv=report(
            "reports/{experiment}/extra.csv",
            caption="../report/extra.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "extra: what the paper's table lacks"},
        ),
        markdown="reports/{experiment}/extra.md",
    log:
        "results/{experiment}/logs/tabulate_extra.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_extra"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        paper=lambda wildcards, input: options(paper=list(input.paper)),
    shell:
        "nplm tabulate-extra --configuration {input.configuration:q} --perplexity {input.perplexity:q}"
        " --comparisons {input.comparisons:q} {params.paper} --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule check_claims:
    """Check what the paper claims, claim by claim."""
    input:
        claims=paper_file("claims"),
        configuration="results/{experiment}/configuration.json",
        tables=tables,
        comparisons="results/{experiment}/comparisons.csv",
        histories=histories,
    output:
        csv=report(
            "reports/{experiment}/claims.csv",
            caption="../report/claims.rst",
            category="Summary",
            labels={"experiment": "{experiment}", "file": "the paper's claims, with verdicts"},
        ),
        markdown="reports/{experiment}/claims.md",
    log:
        "results/{experiment}/logs/check_claims.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "check_claims"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        files=lambda wildcards, input: options(
            claims=list(input.claims), table=input.tables[0], extra=input.tables[1], history=list(input.histories)
        ),
    shell:
        "nplm check-claims --configuration {input.configuration:q} {params.files} --comparisons {input.comparisons:q}"
        " --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule tabulate_corpus:
    """Set our corpus's counts beside the paper's."""
    input:
        card="results/{experiment}/corpus.json",
        paper=paper_file("corpus"),
    output:
        csv=report(
            "reports/{experiment}/corpus.csv",
            caption="../report/corpus.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "corpus"},
        ),
        markdown="reports/{experiment}/corpus.md",
    log:
        "results/{experiment}/logs/tabulate_corpus.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_corpus"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        paper=lambda wildcards, input: options(paper=list(input.paper), **corpus_names(wildcards)),
    shell:
        "nplm tabulate-corpus --card {input.card:q} {params.paper} --output-directory {params.directory:q}"
        " 2>&1 | tee {log:q}"


rule tabulate_mixture_weights:
    """List the weights of every mixture, and those of the interpolated trigram."""
    input:
        mixtures=mixture_files,
        trigrams=interpolated_trigrams,
        bins=lambda wildcards: context_bins(wildcards) if interpolated_trigrams(wildcards) else [],
    output:
        csv=report(
            "reports/{experiment}/mixture_weights.csv",
            caption="../report/mixture_weights.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "mixture weights"},
        ),
        markdown="reports/{experiment}/mixture_weights.md",
    log:
        "results/{experiment}/logs/tabulate_mixture_weights.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_mixture_weights"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        files=lambda wildcards, input: options(
            mixture=list(input.mixtures), trigram=list(input.trigrams), bins=list(input.bins)
        ),
    shell:
        "nplm tabulate-mixture-weights {params.files} --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule plot_perplexity:
    """Draw the test perplexity of every row, ours and the paper's."""
    input:
        tables=tables,
    output:
        figure=report(
            "reports/{experiment}/perplexity.svg",
            caption="../report/perplexity.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "perplexity of every row"},
        ),
    log:
        "results/{experiment}/logs/plot_perplexity.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_perplexity"),
        tables=lambda wildcards, input: options(table=list(input.tables)),
    shell:
        "nplm plot-perplexity {params.tables} --output {output.figure:q} 2>&1 | tee {log:q}"


rule plot_learning_curves:
    """Draw the perplexity of every network after each epoch."""
    input:
        configuration="results/{experiment}/configuration.json",
        histories=histories,
    output:
        figure=report(
            "reports/{experiment}/learning_curves.svg",
            caption="../report/learning_curves.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "learning curves"},
        ),
    log:
        "results/{experiment}/logs/plot_learning_curves.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_learning_curves"),
        histories=lambda wildcards, input: options(history=list(input.histories)),
    shell:
        "nplm plot-learning-curves --configuration {input.configuration:q} {params.histories} --output {output.figure:q}"
        " 2>&1 | tee {log:q}"


rule plot_mixture_weights:
    """Draw the weights of the binned mixtures by context-frequency bin."""
    input:
        weights="reports/{experiment}/mixture_weights.csv",
    output:
        figure=report(
            "reports/{experiment}/mixture_weights.svg",
            caption="../report/mixture_weights.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "mixture weights by bin"},
        ),
    log:
        "results/{experiment}/logs/plot_mixture_weights.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_mixture_weights"),
    shell:
        "nplm plot-mixture-weights --weights {input.weights:q} --output {output.figure:q} 2>&1 | tee {log:q}"


rule plot_classes:
    """Draw the test perplexity of the class-based models against the number of classes."""
    input:
        tables=tables,
    output:
        figure=report(
            "reports/{experiment}/classes.svg",
            caption="../report/classes.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "perplexity by number of classes"},
        ),
    log:
        "results/{experiment}/logs/plot_classes.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_classes"),
        tables=lambda wildcards, input: options(table=list(input.tables)),
    shell:
        "nplm plot-classes {params.tables} --output {output.figure:q} 2>&1 | tee {log:q}"


rule tabulate_gains:
    """Tabulate every model's gain over the baseline, by frequency of the context and of the word."""
    input:
        configuration="results/{experiment}/configuration.json",
        scores=test_scores,
        train="results/{experiment}/train.safetensors",
        split="results/{experiment}/test.safetensors",
        bins="results/{experiment}/context_bins/test.safetensors",
    output:
        csv=report(
            "reports/{experiment}/gains.csv",
            caption="../report/gains.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "gains over the baseline by frequency"},
        ),
    log:
        "results/{experiment}/logs/tabulate_gains.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_gains"),
        scores=lambda wildcards, input: options(scores=list(input.scores)),
    shell:
        "nplm tabulate-gains --configuration {input.configuration:q} {params.scores} --train {input.train:q}"
        " --split {input.split:q} --bins {input.bins:q} --output {output.csv:q} 2>&1 | tee {log:q}"


rule plot_gains:
    """Draw the gain over the baseline of the best network, the best network mixture and the best n-gram."""
    input:
        configuration="results/{experiment}/configuration.json",
        gains="reports/{experiment}/gains.csv",
        tables=tables,
    output:
        figure=report(
            "reports/{experiment}/gains.svg",
            caption="../report/gains.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "gains over the baseline by frequency"},
        ),
    log:
        "results/{experiment}/logs/plot_gains.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_gains"),
        tables=lambda wildcards, input: options(table=list(input.tables)),
    shell:
        "nplm plot-gains --configuration {input.configuration:q} --gains {input.gains:q} {params.tables}"
        " --output {output.figure:q} 2>&1 | tee {log:q}"


rule tabulate_trainings:
    """List what each network's training took and reached."""
    input:
        histories=histories,
    output:
        table=report(
            "reports/{experiment}/trainings.csv",
            caption="../report/trainings.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "trainings"},
        ),
        markdown="reports/{experiment}/trainings.md",
    log:
        "results/{experiment}/logs/tabulate_trainings.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_trainings"),
        directory=lambda wildcards, output: Path(output.table).parent,
        histories=lambda wildcards, input: options(history=list(input.histories)),
    shell:
        "nplm tabulate-trainings {params.histories} --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule plot_training_time:
    """Draw the minutes that an epoch of each network takes, by phase."""
    input:
        histories=histories,
    output:
        figure=report(
            "reports/{experiment}/training_time.svg",
            caption="../report/training_time.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "time of an epoch by phase"},
        ),
    log:
        "results/{experiment}/logs/plot_training_time.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_training_time"),
        histories=lambda wildcards, input: options(history=list(input.histories)),
    shell:
        "nplm plot-training-time {params.histories} --output {output.figure:q} 2>&1 | tee {log:q}"


rule tabulate_neighbours:
    """List the nearest neighbours of words in the features of the best network."""
    input:
        models=models_with_features,
        tables=tables,
        vocabulary="results/{experiment}/vocabulary.tsv",
    output:
        csv=report(
            "reports/{experiment}/neighbours.csv",
            caption="../report/neighbours.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "words with similar features"},
        ),
        markdown="reports/{experiment}/neighbours.md",
    log:
        "results/{experiment}/logs/tabulate_neighbours.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_neighbours"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        files=lambda wildcards, input: options(model=list(input.models), table=list(input.tables)),
        words=lambda wildcards: options(word=experiment(wildcards).get("words")),
    shell:
        "nplm tabulate-neighbours {params.files} --vocabulary {input.vocabulary:q} {params.words}"
        " --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule tabulate_word_classes:
    """List frequent words of some classes of the best class-based model."""
    input:
        configuration="results/{experiment}/configuration.json",
        classes=class_files,
        tables=tables,
    output:
        csv=report(
            "reports/{experiment}/word_classes.csv",
            caption="../report/word_classes.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "word classes"},
        ),
        markdown="reports/{experiment}/word_classes.md",
    log:
        "results/{experiment}/logs/tabulate_word_classes.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_word_classes"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        files=lambda wildcards, input: options(classes=list(input.classes), table=list(input.tables)),
    shell:
        "nplm tabulate-word-classes --configuration {input.configuration:q} {params.files} --output-directory {params.directory:q} 2>&1 | tee {log:q}"


rule tabulate_unseen_words:
    """Tabulate the perplexity of the tokens that are words a network was trained without."""
    input:
        models=models_with_unseen_words,
        scores=scores_of_unseen_words,
        split="results/{experiment}/test.safetensors",
    output:
        csv=report(
            "reports/{experiment}/unseen_words.csv",
            caption="../report/unseen_words.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "table": "words never seen in training"},
        ),
        markdown="reports/{experiment}/unseen_words.md",
    log:
        "results/{experiment}/logs/tabulate_unseen_words.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "tabulate_unseen_words"),
        directory=lambda wildcards, output: Path(output.csv).parent,
        files=lambda wildcards, input: options(model=list(input.models), scores=list(input.scores)),
    shell:
        "nplm tabulate-unseen-words {params.files} --split {input.split:q} --output-directory {params.directory:q}"
        " 2>&1 | tee {log:q}"


rule plot_feature_map:
    """Draw the features of the best network on a map in two dimensions."""
    input:
        models=models_with_features,
        tables=tables,
        vocabulary="results/{experiment}/vocabulary.tsv",
    output:
        figure=report(
            "reports/{experiment}/feature_map.svg",
            caption="../report/feature_map.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "map of the features"},
        ),
    log:
        "results/{experiment}/logs/plot_feature_map.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_feature_map"),
        files=lambda wildcards, input: options(model=list(input.models), table=list(input.tables)),
        seed=lambda wildcards: configuration.derive_seed(experiment(wildcards)["seed"], "feature map"),
    shell:
        "nplm plot-feature-map {params.files} --vocabulary {input.vocabulary:q} --seed {params.seed}"
        " --output {output.figure:q} 2>&1 | tee {log:q}"


rule plot_features:
    """Draw the two features of every frequent word, of a network with m = 2."""
    input:
        model="results/{experiment}/models/{model}/model.safetensors",
        vocabulary="results/{experiment}/vocabulary.tsv",
    output:
        figure=report(
            "reports/{experiment}/features.{model}.svg",
            caption="../report/features.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "features of {model}"},
        ),
    log:
        "results/{experiment}/logs/plot_features/{model}.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "plot_features"),
    shell:
        "nplm plot-features --model {input.model:q} --vocabulary {input.vocabulary:q} --output {output.figure:q}"
        " 2>&1 | tee {log:q}"


rule record_provenance:
    """Record versions, commit, configuration, machine and the seconds of every stage, when all else is made."""
    input:
        configuration="results/{experiment}/configuration.json",
        vocabulary="results/{experiment}/vocabulary.tsv",
        retrieved=retrieval_record,
        histories=histories,
        tables=tables,
    output:
        json="reports/{experiment}/provenance.json",
        markdown=report(
            "reports/{experiment}/provenance.md",
            caption="../report/provenance.rst",
            category="Provenance",
            labels={"experiment": "{experiment}", "file": "provenance"},
        ),
    log:
        "results/{experiment}/logs/record_provenance.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "record_provenance"),
        benchmarks="results/{experiment}/benchmarks",
        directory=lambda wildcards, output: Path(output.json).parent,
        files=lambda wildcards, input: options(
            history=list(input.histories), retrieved=[f"{path}/retrieved.json" for path in input.retrieved]
        ),
        repository=source_file("."),
    shell:
        "nplm record-provenance --configuration {input.configuration:q} --vocabulary {input.vocabulary:q} {params.files}"
        " --benchmarks {params.benchmarks:q} --repository {params.repository:q} --output-directory {params.directory:q}"
        " 2>&1 | tee {log:q}"


rule write_report_page:
    """Gather tables, figures and provenance on one page."""
    input:
        configuration="results/{experiment}/configuration.json",
        tables=tables,
        comparisons="results/{experiment}/comparisons.csv",
        ledger=ledger,
        corpus="reports/{experiment}/corpus.csv",
        mixture_weights=mixture_table,
        neighbours=neighbour_table,
        word_classes=word_class_table,
        unseen_words=unseen_word_table,
        trainings=training_table,
        figures=figures,
        captions=captions,
        template=source_file("src/nplm/report/index.html.jinja"),
        provenance="reports/{experiment}/provenance.json",
    output:
        page=report(
            "reports/{experiment}/README.md",
            caption="../report/page.rst",
            category="Summary",
            labels={"experiment": "{experiment}", "file": "all on one page, as text"},
        ),
        html=report(
            "reports/{experiment}/index.html",
            caption="../report/page.rst",
            category="Summary",
            labels={"experiment": "{experiment}", "file": "all on one page"},
        ),
    log:
        "results/{experiment}/logs/write_report_page.log",
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.report", "write_report_page"),
        files=lambda wildcards, input: options(
            table=input.tables[0],
            extra=input.tables[1],
            claims=list(input.ledger),
            mixture_weights=list(input.mixture_weights),
            neighbours=list(input.neighbours),
            word_classes=list(input.word_classes),
            unseen_words=list(input.unseen_words),
            trainings=list(input.trainings),
            figure=list(input.figures),
            caption=list(input.captions),
        ),
    shell:
        "nplm write-report-page --configuration {input.configuration:q} {params.files} --corpus {input.corpus:q}"
        " --comparisons {input.comparisons:q} --provenance {input.provenance:q} --output {output.page:q}"
        " --html {output.html:q} 2>&1 | tee {log:q}"
