# The models of every kind: one rule for fits on one process, one for trainings over ranks. What differs from kind to kind
# is data that the kinds declare (nplm.kinds).
#
# Inputs:  results/{experiment}/{train,valid}.safetensors, and what a kind reads besides
# Outputs: results/{experiment}/models/{model}/model.safetensors   of a network, the parameters of the best epoch
#          results/{experiment}/models/{model}/history.csv         of a network, a line an epoch
#
# Ranks, threads and launcher are resources: changing them changes no result and reruns nothing. Checkpoints lie in
# results/{experiment}/checkpoints/{model} and are no outputs, since Snakemake deletes those before it reruns a job.


rule fit_model:
    """Fit a model of any kind that one process fits."""
    input:
        unpack(fit_inputs),
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
    log:
        "results/{experiment}/logs/fit_model/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/fit_model/{model}.tsv"
    wildcard_constraints:
        model=models_made_by("fit"),
    conda:
        "../../envs/nplm.yaml"
    params:
        code=fitting_code,
        options=fit_options,
    shell:
        "nplm fit-model {params.options} --output {output.model:q} 2>&1 | tee {log:q}"


rule train_network:
    """Train a network, its output layer shared out among the ranks (section 3.2), with early stopping on valid."""
    input:
        train="results/{experiment}/train.safetensors",
        valid="results/{experiment}/valid.safetensors",
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
        history="results/{experiment}/models/{model}/history.csv",
    log:
        "results/{experiment}/logs/train_network/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/train_network/{model}.tsv"
    wildcard_constraints:
        model=models_made_by("output-parallel"),
    conda:
        "../../envs/nplm.yaml"
    # Cores that the job takes on this machine: one per rank, or the threads of the only one. Where ranks are tasks of
    # a scheduler that counts threads per task, its profile sets 1.
    threads: MPI["threads"] if MPI["ranks"] == 1 else MPI["ranks"]
    resources:
        **mpi_resources(MPI["ranks"], MPI["launcher"]),
        rank_count=MPI["ranks"],
        rank_threads=lambda wildcards, threads: threads if MPI["ranks"] == 1 else 1,
    params:
        checkpoints="results/{experiment}/checkpoints/{model}",
        code=training_code,
        options=training_options,
    shell:
        "{resources.launch} train-network --train {input.train:q} --valid {input.valid:q} {params.options}"
        " --ranks {resources.rank_count} --threads {resources.rank_threads} --checkpoints {params.checkpoints:q}"
        " --output {output.model:q} --history {output.history:q} 2>&1 | tee {log:q}"


use rule train_network as train_network_shared_memory with:
    """Train a network, its examples shared out among processes that write to the same parameters (section 3.1)."""
    wildcard_constraints:
        model=models_made_by("shared-memory"),
    threads: MPI["ranks"]
    resources:
        **mpi_resources(1, MPI["launcher"]),
        cpus_per_task=MPI["ranks"],
        rank_count=MPI["ranks"],
        rank_threads=1,
