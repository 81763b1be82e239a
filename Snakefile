"""A Neural Probabilistic Language Model (Bengio et al. 2003): from raw text to the paper's tables."""

from snakemake.utils import min_version

min_version("9.27")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/ngram.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/scores.smk"
include: "workflow/rules/report.smk"


rule all:
    """Every experiment's report (config key `run`)."""
    default_target: True
    input:
        final_output(),
