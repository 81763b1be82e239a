# The networks.
#
# Inputs:  results/{experiment}/{train,valid}.safetensors
# Outputs: results/{experiment}/models/{model}/model.safetensors   the parameters of the best epoch
#          results/{experiment}/models/{model}/history.csv         a line an epoch
#
# Ranks, threads and launcher are resources: changing them changes no result and reruns nothing. Checkpoints lie in
# results/{experiment}/checkpoints/{model} and are no outputs, since Snakemake deletes those before it reruns a job.


rule train_nplm:
    """Train a network, its output layer shared out among the ranks (section 3.2), with early stopping on valid."""
    input:
        train="results/{experiment}/train.safetensors",
        valid="results/{experiment}/valid.safetensors",
    output:
        model="results/{experiment}/models/{model}/model.safetensors",
        history="results/{experiment}/models/{model}/history.csv",
    log:
        "results/{experiment}/logs/train_nplm/{model}.log",
    benchmark:
        "results/{experiment}/benchmarks/train_nplm/{model}.tsv"
    wildcard_constraints:
        model=networks_trained_by("output-parallel"),
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
        code=code_of("nplm.cli.neural", "train_nplm"),
        options=training_options,
    shell:
        "{resources.launch} train-nplm --train {input.train:q} --valid {input.valid:q} {params.options}"
        " --ranks {resources.rank_count} --threads {resources.rank_threads} --checkpoints {params.checkpoints:q}"
        " --output {output.model:q} --history {output.history:q} 2>&1 | tee {log:q}"


use rule train_nplm as train_nplm_shared_memory with:
    """Train a network, its examples shared out among processes that write to the same parameters (section 3.1)."""
    wildcard_constraints:
        model=networks_trained_by("shared-memory"),
    threads: MPI["ranks"]
    resources:
        **mpi_resources(1, MPI["launcher"]),
        cpus_per_task=MPI["ranks"],
        rank_count=MPI["ranks"],
        rank_threads=1,
