# From the published corpus to encoded splits.
#
# Inputs:  the Brown corpus as published, or any files of text or newswire SGML (config key `corpus`)
# Outputs: resources/brown/                               the 500 files, and where they came from
#          results/{experiment}/tokens.txt                one sentence a line
#          results/{experiment}/tokens.json               what was read, and how
#          results/{experiment}/mapped.txt                the same with tokens mapped to fewer, where the experiment has
#                                                         a mapping; with mapped.json, proper_nouns.tsv
#          results/{experiment}/vocabulary.tsv            id, word, count
#          results/{experiment}/{split}.safetensors       word ids of train, valid and test
#          results/{experiment}/corpus.json               the corpus card


rule retrieve_corpus:
    """Get the Brown corpus as published and verify it."""
    output:
        directory=directory("resources/brown"),
    log:
        "resources/logs/retrieve_corpus.log",
    benchmark:
        "resources/benchmarks/retrieve_corpus.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.corpus", "retrieve_corpus"),
        options=retrieval_options,
    shell:
        "nplm retrieve-corpus --source brown {params.options} --output {output.directory:q} 2>&1 | tee {log:q}"


rule tokenize_corpus:
    """Write the corpus as tokens, one sentence a line."""
    input:
        files=corpus_files,
    output:
        tokens="results/{experiment}/tokens.txt",
        record="results/{experiment}/tokens.json",
    log:
        "results/{experiment}/logs/tokenize_corpus.log",
    benchmark:
        "results/{experiment}/benchmarks/tokenize_corpus.tsv"
    conda:
        "../../envs/nplm.yaml"
    threads: 4
    params:
        code=code_of("nplm.cli.corpus", "tokenize_corpus"),
        options=tokenization_options,
    shell:
        "nplm tokenize-corpus {params.options} --processes {threads}"
        " --output {output.tokens:q} --record {output.record:q} 2>&1 | tee {log:q}"


rule map_tokens:
    """Map tokens to fewer: numbers and proper nouns to symbols, the rest to lower case."""
    input:
        tokens="results/{experiment}/tokens.txt",
    output:
        mapped="results/{experiment}/mapped.txt",
        record="results/{experiment}/mapped.json",
        proper_nouns="results/{experiment}/proper_nouns.tsv",
    log:
        "results/{experiment}/logs/map_tokens.log",
    benchmark:
        "results/{experiment}/benchmarks/map_tokens.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.mapping", "map_tokens"),
        options=mapping_options,
    shell:
        "nplm map-tokens --tokens {input.tokens:q} {params.options} --output {output.mapped:q}"
        " --record {output.record:q} --proper-noun-table {output.proper_nouns:q} 2>&1 | tee {log:q}"


rule build_vocabulary:
    """List the words that have an id; all others become the rare word."""
    input:
        tokens=final_tokens,
    output:
        vocabulary="results/{experiment}/vocabulary.tsv",
    log:
        "results/{experiment}/logs/build_vocabulary.log",
    benchmark:
        "results/{experiment}/benchmarks/build_vocabulary.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.corpus", "build_vocabulary"),
        options=vocabulary_options,
    shell:
        "nplm build-vocabulary --tokens {input.tokens:q} {params.options} --output {output.vocabulary:q}"
        " 2>&1 | tee {log:q}"


rule encode_corpus:
    """Split the stream of word ids into train, valid and test, and write the corpus card."""
    input:
        tokens=final_tokens,
        record="results/{experiment}/tokens.json",
        mapping_record=mapping_record,
        vocabulary="results/{experiment}/vocabulary.tsv",
    output:
        train="results/{experiment}/train.safetensors",
        valid="results/{experiment}/valid.safetensors",
        test="results/{experiment}/test.safetensors",
        card="results/{experiment}/corpus.json",
    log:
        "results/{experiment}/logs/encode_corpus.log",
    benchmark:
        "results/{experiment}/benchmarks/encode_corpus.tsv"
    conda:
        "../../envs/nplm.yaml"
    params:
        code=code_of("nplm.cli.corpus", "encode_corpus"),
        directory=lambda wildcards, output: Path(output.card).parent,
        mapping_record=lambda wildcards, input: options(mapping_record=list(input.mapping_record)),
        options=split_options,
    shell:
        "nplm encode-corpus --tokens {input.tokens:q} --record {input.record:q} {params.mapping_record}"
        " --vocabulary {input.vocabulary:q} {params.options}"
        " --output-directory {params.directory:q} 2>&1 | tee {log:q}"
