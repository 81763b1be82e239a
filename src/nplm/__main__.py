"""`python -m nplm`, the form that MPI launchers and `python -m mpi4py -m nplm` need."""

from nplm.cli import main

main()
