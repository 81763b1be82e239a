#!/usr/bin/env bash
# Runs once in the new conda environment, in Snakemake's working directory: the repository's root.
python -m pip install --no-deps --editable .
